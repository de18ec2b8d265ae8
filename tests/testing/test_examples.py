"""Example values conform to their schemas."""

from typing import Any

import msgspec
import pytest

from hermes.testing.examples import example_of
from hermes.text.json_schema import json_problem, schema_problem

SCHEMAS: list[dict[str, Any]] = [
    {"type": "string", "minLength": 9},
    {"type": "integer", "minimum": 5},
    {"type": ["number", "null"]},
    {"type": "boolean"},
    {"type": "null"},
    {"enum": ["a", "b"]},
    {"const": {"x": 1}},
    {"type": "array", "items": {"type": "string"}, "minItems": 3},
    {"anyOf": [{"type": "object"}, {"type": "string"}]},
    {
        "type": "object",
        "properties": {"next": {"$ref": "#/$defs/a~1b"}},
        "$defs": {"a/b": {"type": "string", "maxLength": 2}},
        "required": ["next"],
        "additionalProperties": False,
    },
]


@pytest.mark.parametrize("schema", SCHEMAS)
def test_an_example_conforms_to_its_schema(schema: dict[str, Any]) -> None:
    text = msgspec.json.encode(schema).decode()
    assert schema_problem(text) == ""
    assert json_problem(text, msgspec.json.encode(example_of(schema)).decode()) == ""


def test_a_property_gets_the_fact_of_the_same_name() -> None:
    line = {"type": "object", "properties": {"item": {"type": "string"}}}
    lines = {"type": "array", "items": {"$ref": "#/$defs/line"}}
    schema = {"properties": {"id": {"type": "string"}, "lines": lines}, "$defs": {"line": line}}
    facts = {"id": "o7", "item": "tea", "unknown": 1}
    assert example_of(schema, facts) == {"id": "o7", "lines": [{"item": "tea"}]}
