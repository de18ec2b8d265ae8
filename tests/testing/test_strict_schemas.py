"""Strict mode accepts only objects without additional properties."""

import pytest

from hermes.testing.strict_schemas import SchemaPart, strict_violation

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
def test_strict_mode_requires_objects_without_additional_properties(
    schema: SchemaPart, reason: str | None
) -> None:
    found = strict_violation(schema)
    assert found == reason or (reason is not None and reason in (found or ""))
