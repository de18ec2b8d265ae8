"""Schemas are checked, and JSON is checked against a schema."""

import json
import time

import pytest

from hermes.text.json_schema import (
    CHECK_SECONDS,
    DEEPEST_SCHEMA,
    LONGEST_PROBLEM,
    LONGEST_SCHEMA,
    MOST_SCHEMAS,
    json_problem,
    schema_problem,
)

PERSON = json.dumps(
    {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "age": {"type": "integer", "minimum": 0},
            "friends": {"type": "array", "items": {"$ref": "#"}, "uniqueItems": True},
            "role": {"$ref": "#/$defs/a~1role"},
        },
        "required": ["name", "age"],
        "additionalProperties": False,
        "$defs": {"a/role": {"enum": ["cook", "guest"]}},
    }
)
ADA = '{"name":"Ada","age":36}'


def nested(depth: int) -> str:
    return '{"items":' * (depth - 1) + "{}" + "}" * (depth - 1)


@pytest.mark.parametrize(
    "schema",
    [
        PERSON,
        "{}",
        nested(DEEPEST_SCHEMA),
        '{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"a":{}}}',
        '{"properties":{"$ref":{"type":"string"},"patternProperties":{}}}',
        '{"enum":[{"$ref":"http://elsewhere/"}],"default":{"unevaluatedItems":1}}',
        '{"type":"string","format":"date-time","x-vendor":{"any":1}}',
    ],
)
def test_a_schema_that_can_be_checked_has_no_problem(schema: str) -> None:
    assert schema_problem(schema) == ""


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ("[]", "not a JSON object"),
        ("{", "not a JSON object"),
        ('{"type":7}', "7 is not valid under any of the given schemas at $.type"),
        ('{"type":"text"}', "at $.type"),
        ('{"required":"x"}', "'x' is not of type 'array' at $.required"),
        ('{"properties":{"a":7}}', "at $.properties.a"),
        ('{"pattern":"("}', "regex"),
        ('{"$ref":"http://127.0.0.1:9/schema"}', "$ref 'http://127.0.0.1:9/schema' is not found"),
        ('{"$ref":"#/$defs/none"}', "is not found in it"),
        ('{"$ref":"#anchor"}', "is not found in it"),
        ('{"$ref":7}', "is not found in it"),
        ('{"items":{"patternProperties":{}}}', "patternProperties is not supported"),
        ('{"unevaluatedProperties":false}', "unevaluatedProperties is not supported"),
        ('{"$schema":"http://elsewhere/schema"}', "$schema is not known"),
        (nested(DEEPEST_SCHEMA + 1), "nested more than"),
        (nested(100_000)[:LONGEST_SCHEMA], "not a JSON object"),
        (json.dumps({"anyOf": [{}] * MOST_SCHEMAS}), "more than 1000 schemas"),
        (json.dumps({"title": "x" * LONGEST_SCHEMA}), "longer than"),
        (json.dumps({"pattern": "(" * 20_000 + ")" * 20_000}), "patterns can't be used"),
        ('{"pattern":"a{99999999999}"}', "patterns can't be used"),
        ('{"$ref":"#/title","title":"no schema"}', "not found"),
        ('{"properties":{"a":{"$id":"x:y","items":{"$ref":"#"}}}}', "beside an $id"),
    ],
)
def test_the_error_for_a_schema_that_can_not_be_checked_says_why(schema: str, problem: str) -> None:
    assert problem in schema_problem(schema)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (ADA, ""),
        ('{"name":"Ada","age":36,"role":"cook","friends":[' + ADA + "]}", ""),
        ('{"name":"Ada"}', "'age' is a required property"),
        ('{"name":"Ada","age":-1}', "-1 is less than the minimum of 0 at $.age"),
        ('{"name":"Ada","age":36,"role":"boss"}', "at $.role"),
        ('{"name":"Ada","age":36,"x":1}', "Additional properties are not allowed"),
        ('{"name":"Ada","age":36,"friends":[' + f"{ADA},{ADA}" + "]}", "not unique"),
        ('{"name":"Ada","age":36,"friends":[{"name":"Bo"}]}', "'age' is a required property"),
        ('{"name":"Ada","age":', "not valid JSON"),
        ("", "not valid JSON"),
        ("[" * 99_999, "not valid JSON"),
        ('"Ada"', "is not of type 'object'"),
    ],
)
def test_json_is_checked_against_the_schema(text: str, problem: str) -> None:
    found = json_problem(PERSON, text)
    assert problem in found
    assert bool(problem) == bool(found)


def test_the_description_of_a_problem_is_short() -> None:
    long = json.dumps({"name": "Ada", "age": "x" * 99_999})
    assert len(json_problem(PERSON, long)) < LONGEST_PROBLEM + 50


def test_a_small_schema_can_not_cause_endless_checks() -> None:
    doubling = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(60)}
    schema = {"$defs": {**doubling, "d60": {"type": "string"}}, "$ref": "#/$defs/d0"}
    text = json.dumps(schema)
    assert schema_problem(text) == ""
    begun = time.thread_time()
    assert "too many checks" in json_problem(text, "1")
    assert time.thread_time() - begun < 3 * CHECK_SECONDS


def test_the_check_of_an_endlessly_recursive_schema_stops() -> None:
    assert schema_problem('{"$ref":"#"}') == ""
    assert "too many checks" in json_problem('{"$ref":"#"}', "1")


def test_a_number_that_is_too_large_to_be_checked_is_a_problem() -> None:
    assert "too large" in json_problem('{"multipleOf":0.5}', "1" + "0" * 400)


def test_schemas_with_their_own_ids_are_checked() -> None:
    named = '{"properties":{"a":{"$id":"Name","type":"string"}}}'
    assert schema_problem(named) == ""
    assert "at $.a" in json_problem(named, '{"a":1}')


def test_a_regular_expression_is_not_run() -> None:
    """A regular expression could take years, and nothing could interrupt it."""
    slow = '{"type":"string","pattern":"(a+)+$"}'
    assert schema_problem(slow) == ""
    assert json_problem(slow, json.dumps("a" * 60 + "b")) == ""


def test_many_items_are_compared_in_linear_time() -> None:
    items = json.dumps([{"n": n} for n in range(30_000)])
    assert json_problem('{"uniqueItems":true}', items) == ""
