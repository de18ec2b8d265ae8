"""Schemas are refused as a provider refuses them, and answers conform to the others."""

import msgspec
import pytest

from hermes.testing.json_schemas import SchemaPart, conforming, strict_violation


class Line(msgspec.Struct, forbid_unknown_fields=True):
    item: str
    count: int
    price: float
    gift: bool
    note: str | None


class Order(msgspec.Struct, forbid_unknown_fields=True):
    id: str
    lines: list[Line]


def schema_of(kind: type) -> SchemaPart:
    (found,), parts = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    return {**found, "$defs": parts}


def test_nested_types_conform() -> None:
    answer = msgspec.convert(conforming(schema_of(Order), {}), Order)
    assert len(answer.lines) == 1


def test_facts_are_used_wherever_a_property_has_their_name() -> None:
    facts = {"id": "o7", "item": "tea", "count": 3, "unknown": 1}
    answer = msgspec.convert(conforming(schema_of(Order), facts), Order)
    assert (answer.id, answer.lines[0].item, answer.lines[0].count) == ("o7", "tea", 3)


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"const": 5}, 5),
        ({"enum": ["a", "b"]}, "a"),
        ({"anyOf": [{"type": "integer", "minimum": 3}, {"type": "null"}]}, 3),
        ({"type": ["string", "null"], "minLength": 2}, "xx"),
        ({"type": "array", "items": {"type": "boolean"}, "minItems": 2}, [True, True]),
        ({"type": "null"}, None),
    ],
)
def test_values_are_the_simplest_that_conform(schema: SchemaPart, expected: object) -> None:
    assert conforming(schema, {}) == expected


CLOSED = {
    "type": "object",
    "properties": {"required": {"type": "string"}},
    "required": ["required"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (CLOSED, None),
        ({**CLOSED, "additionalProperties": True}, "additionalProperties"),
        ({**CLOSED, "required": []}, "name every property"),
        ({"type": "array", "items": {**CLOSED, "required": []}}, "name every property"),
        ({"type": "array", "items": CLOSED}, None),
        ({"type": "object"}, "additionalProperties"),
    ],
)
def test_strict_mode_wants_closed_objects(schema: SchemaPart, reason: str | None) -> None:
    found = strict_violation(schema)
    assert found == reason or (reason is not None and reason in (found or ""))
