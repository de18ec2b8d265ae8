"""Checks JSON schemas, and JSON against a schema, in limited time and without network access."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from functools import cache, lru_cache
from typing import Any

import msgspec

LONGEST_SCHEMA = 100_000
"""Maximum number of characters of a schema."""
DEEPEST_SCHEMA = 32
"""Maximum depth of schemas inside schemas."""
MOST_SCHEMAS = 1_000
"""Maximum number of schemas inside a schema, such as the schemas of its properties, items and
alternatives."""
CHECK_SECONDS = 2.0
"""Maximum CPU time in seconds for the check of one JSON text. There is a limit, because a small
schema can require endless work."""
LONGEST_PROBLEM = 300

UNSUPPORTED = frozenset(
    {
        "patternProperties",
        "unevaluatedItems",
        "unevaluatedProperties",
        "$dynamicRef",
        "$recursiveRef",
    }
)
"""Keywords that can't be checked in limited time."""
_NAMED_SCHEMAS = ("properties", "$defs", "definitions", "dependentSchemas")
"""Keywords whose value is a mapping from names to schemas."""
_DATA = ("enum", "const", "default", "examples")
"""Keywords whose value is never a schema, even if it looks like one."""
_DRAFTS = {
    "http://json-schema.org/draft-04/schema": "Draft4Validator",
    "http://json-schema.org/draft-06/schema": "Draft6Validator",
    "http://json-schema.org/draft-07/schema": "Draft7Validator",
    "https://json-schema.org/draft/2019-09/schema": "Draft201909Validator",
    "https://json-schema.org/draft/2020-12/schema": "Draft202012Validator",
}
_LATEST = "https://json-schema.org/draft/2020-12/schema"

_Schema = Mapping[str, Any]


@lru_cache(maxsize=64)
def schema_problem(text: str) -> str:
    """Returns the reason why the JSON text is not a schema or can't be supported, or "" if it is a
    supported schema."""
    if len(text) > LONGEST_SCHEMA:
        return f"it is longer than {LONGEST_SCHEMA} characters"
    try:
        schema = msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError) as error:
        return f"it is not a JSON object: {error}"
    if problem := _structure_problem(schema):
        return problem
    try:
        _validator_class(schema).check_schema(schema)
    except _jsonschema().SchemaError as invalid:
        return _told(invalid)
    except (RecursionError, OverflowError) as error:
        return f"one of its patterns can't be used: {error}"
    return ""


def json_problem(schema: str, text: str) -> str:
    """Returns the reason why the JSON text does not conform to the schema, or "" if it conforms.

    The schema must be valid. The call blocks for up to `CHECK_SECONDS`.
    """
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        return f"it is not valid JSON: {error}"
    _deadline.set(time.thread_time() + CHECK_SECONDS)
    try:
        wrong = next(_validator(schema).iter_errors(value), None)
    except OverflowError:
        return "it has a number that is too large"
    except (_OutOfTime, RecursionError):
        return "it can't be checked, because the schema asks for too many checks"
    return "" if wrong is None else _told(wrong)


class _OutOfTime(Exception):
    """Raised if the check of a text takes too long."""


_deadline: ContextVar[float] = ContextVar("deadline")
"""The check of a text is aborted when the CPU time of the thread reaches this number of seconds."""
_Keyword = Callable[[Any, Any, Any, Any], Iterable[Any] | None]


def _structure_problem(schema: _Schema) -> str:
    if _draft(schema) not in _DRAFTS:
        return f"its $schema is not known: {_draft(schema)[:100]!r}"
    identifier = "id" if "draft-04" in _draft(schema) else "$id"
    named = refers = False
    for count, (depth, one) in enumerate(_schemas(schema)):
        if count >= MOST_SCHEMAS:
            return f"it consists of more than {MOST_SCHEMAS} schemas"
        if depth > DEEPEST_SCHEMA:
            return f"it is nested more than {DEEPEST_SCHEMA} levels deep"
        if unsupported := UNSUPPORTED.intersection(one):
            return f"{min(unsupported)} is not supported"
        named = named or (depth > 1 and identifier in one)
        refers = refers or "$ref" in one
        if named and refers:
            return f"$ref is not supported beside an {identifier} that is not at the top"
        reference = one.get("$ref", "#")
        found = resolved(schema, reference) if isinstance(reference, str) else None
        if not isinstance(found, dict | bool):
            return f"its $ref {str(reference)[:100]!r} is not found in it"
    return ""


def _schemas(schema: _Schema) -> Iterator[tuple[int, _Schema]]:
    """Yields the schema and all schemas in it, each with its depth."""
    waiting: list[tuple[int, object]] = [(1, schema)]
    while waiting:
        depth, found = waiting.pop()
        if isinstance(found, list):
            waiting += [(depth, one) for one in found]
        elif isinstance(found, dict):
            yield depth, found
            for name, value in found.items():
                if name in _NAMED_SCHEMAS and isinstance(value, dict):
                    waiting += [(depth + 1, one) for one in value.values()]
                elif name not in _DATA:
                    waiting.append((depth + 1, value))


def resolved(schema: _Schema, reference: str) -> object | None:
    """Returns the part of a schema that a `$ref` in it points to, or None if there is no such
    part."""
    fragment = reference.removeprefix("#")
    if fragment == reference or (fragment and not fragment.startswith("/")):
        return None
    place: object = schema
    for name in fragment.split("/")[1:]:
        key = name.replace("~1", "/").replace("~0", "~")
        if not isinstance(place, dict) or key not in place:
            return None
        place = place[key]
    return place


@lru_cache(maxsize=64)
def _validator(text: str) -> Any:
    from referencing import Registry  # noqa: PLC0415  # comes with jsonschema

    schema = msgspec.json.decode(text)
    # The registry is empty, because the default registry fetches schemas from other hosts.
    return _validator_class(schema)(schema, registry=Registry())


def _validator_class(schema: _Schema) -> Any:
    return _bounded(_DRAFTS[_draft(schema)])


def _draft(schema: _Schema) -> str:
    return str(schema.get("$schema", _LATEST)).removesuffix("#")


@cache
def _bounded(name: str) -> Any:
    """Returns a validator class for a draft. The validator stops at the deadline."""
    library = _jsonschema()
    base = getattr(library, name)
    keywords: dict[str, _Keyword] = {
        name: _timed(function) for name, function in base.VALIDATORS.items()
    }
    # Matching a regular expression can take years. So patterns are not checked here, but only by
    # providers that enforce the schema.
    keywords["pattern"] = lambda _validator, _value, _instance, _schema: ()
    keywords["uniqueItems"] = _timed(_unique_items)
    return library.validators.extend(base, keywords)


def _timed(function: _Keyword) -> _Keyword:
    def check(validator: Any, value: Any, instance: Any, schema: Any) -> Iterable[Any] | None:
        if time.thread_time() > _deadline.get():
            raise _OutOfTime
        return function(validator, value, instance, schema)

    return check


def _unique_items(validator: Any, value: Any, instance: Any, _schema: Any) -> Iterator[Any]:
    """Replaces jsonschema's check for unique items, which takes more than linear time."""
    if value and validator.is_type(instance, "array"):
        encoded = {msgspec.json.encode(one, order="deterministic") for one in instance}
        if len(encoded) < len(instance):
            yield _jsonschema().ValidationError("an array has items that are not unique")


def _jsonschema() -> Any:
    import jsonschema  # type: ignore[import-untyped]  # noqa: PLC0415  # 0.2 s, rarely needed

    return jsonschema


def _told(error: Any) -> str:
    where = "" if error.json_path == "$" else f" at {error.json_path}"
    message = str(error.message)
    short = message if len(message) <= LONGEST_PROBLEM else message[: LONGEST_PROBLEM - 1] + "…"
    return f"{short}{where[:LONGEST_PROBLEM]}"
