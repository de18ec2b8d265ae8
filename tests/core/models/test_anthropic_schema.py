"""JSON schemas are converted for Anthropic's API."""

import json
from typing import Any

import pytest
from anthropic import transform_schema
from msgspec.structs import replace

from hermes.core.models.anthropic_schema import enforced_schema
from hermes.testing.upstream import choice_of, request_to
from hermes.types.messages import ResponseFormat


def adapted(schema: dict[str, Any]) -> object:
    wanted = ResponseFormat(kind="json_schema", schema=json.dumps(schema), name="x")
    return enforced_schema(replace(request_to(choice_of("anthropic")), response_format=wanted))


POINT = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}


@pytest.mark.parametrize(
    "schema",
    [
        {**POINT, "title": "Point", "description": "A point."},
        {"type": "array", "items": {"enum": ["a", "b"]}},
        {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]},
        {"oneOf": [{"const": 1}, {"type": "boolean"}]},
        {"allOf": [POINT]},
        {"$ref": "#/$defs/P", "$defs": {"P": POINT, "Q": {"$ref": "#/$defs/P"}}},
    ],
)
def test_the_schema_is_the_same_as_in_the_package_of_anthropic(schema: dict[str, Any]) -> None:
    assert adapted(schema) == transform_schema(schema)


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "integer", "minimum": 1, "maximum": 3}, {"type": "integer"}),
        ({"type": "string", "pattern": "a+", "minLength": 2}, {"type": "string"}),
        ({"type": "string", "format": "phone"}, {"type": "string"}),
        (
            {"type": ["integer", "null"], "minimum": 1},
            {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        ),
        (POINT, {**POINT, "additionalProperties": False}),
        (
            {"properties": {"x": {"type": "null"}}},
            {
                "type": "object",
                "properties": {"x": {"type": "null"}},
                "additionalProperties": False,
            },
        ),
    ],
)
def test_keywords_that_only_restrict_a_value_are_left_out(
    schema: dict[str, Any], expected: object
) -> None:
    assert adapted(schema) == expected


LOOP = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Loop"}}}


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"description": "anything"},
        {"type": "object"},
        {"type": "object", "additionalProperties": {"type": "string"}},
        {**POINT, "additionalProperties": True},
        {"type": "array", "items": [{"type": "string"}, {"type": "integer"}]},
        {"type": "array", "items": True},
        {"not": {"type": "string"}},
        {"type": "object", "properties": {"a": {"$ref": "#"}}},
        {"$ref": "#/$defs/Loop", "$defs": {"Loop": LOOP}},
    ],
)
def test_a_schema_that_can_not_be_enforced_is_described_in_the_prompt(
    schema: dict[str, Any],
) -> None:
    assert adapted(schema) is None


def test_a_schema_with_many_references_is_converted_in_limited_time() -> None:
    defs = {
        f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]}
        for n in range(60)
    }
    assert adapted({"$ref": "#/$defs/d0", "$defs": {**defs, "d60": POINT}}) is not None
