"""Converts JSON schemas to the subset that Anthropic's API can enforce."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from hermes.text.json_schema import resolved
from hermes.types.models import ModelRequest

_KINDS = frozenset({"type", "properties", "enum", "const", "$ref", "anyOf", "oneOf", "allOf"})
"""Keywords that say what values a schema allows. Anthropic's API can enforce only schemas with at
least one of them."""
_KEPT = frozenset({"type", "title", "description", "required", "enum", "const", "format", "$ref"})
_NO_SCHEMAS = ("$defs", "definitions", "enum", "const", "default", "examples")
"""Keywords whose values are not searched for recursion. The values are not schemas, or they are
schemas that are used only through references."""
_DROPPED = frozenset(
    {
        "$schema",
        "$id",
        "$comment",
        "default",
        "deprecated",
        "examples",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "multipleOf",
        "pattern",
        "readOnly",
        "uniqueItems",
        "writeOnly",
    }
)
"""Keywords that only narrow or describe a value. They are not sent to the API. Instead, the answer
is checked against the full schema afterwards."""
_FORMATS = frozenset(
    {
        "date",
        "date-time",
        "duration",
        "email",
        "hostname",
        "ipv4",
        "ipv6",
        "time",
        "uri",
        "uuid",
    }
)


def enforced_schema(request: ModelRequest) -> Mapping[str, object] | None:
    """Returns the schema of the request in a form that the endpoint can enforce. Returns None if
    the request has no schema or the endpoint can't enforce it."""
    wanted = request.response_format
    if wanted is None or wanted.kind != "json_schema":
        return None
    return _adapted(wanted.schema) if wanted.kind in request.choice.quirks.structured else None


class _Unsupported(Exception):
    """Raised if the schema allows values that Anthropic's schemas can't describe."""


@lru_cache(maxsize=64)
def _adapted(text: str) -> Mapping[str, object] | None:
    schema: dict[str, Any] = msgspec.json.decode(text)
    try:
        _refuse_recursion(schema, schema, (), set())
        return _schema(schema)
    except _Unsupported:
        return None


def _schema(schema: object) -> dict[str, object]:
    if not isinstance(schema, dict) or not _KINDS.intersection(schema):
        raise _Unsupported
    kinds = schema.get("type")
    if isinstance(kinds, list):
        return {"anyOf": [_schema(_of_kind(schema, kind)) for kind in kinds]}
    found: dict[str, object] = {}
    for name, value in schema.items():
        found |= _keyword(name, value)
    if "properties" in schema or kinds == "object":
        if not schema.get("properties"):
            raise _Unsupported
        found |= {"type": "object", "additionalProperties": False}
    return found


def _of_kind(schema: Mapping[str, object], kind: str) -> Mapping[str, object]:
    """Narrows a schema that allows several types to one of these types."""
    return {**schema, "type": kind} if kind != "null" else {"type": kind}


def _keyword(name: str, value: Any) -> dict[str, object]:
    """Converts one keyword of a schema."""
    match name:
        case "properties" | "$defs" | "definitions":
            return {name: {key: _schema(one) for key, one in value.items()}}
        case "anyOf" | "oneOf":
            return {"anyOf": [_schema(one) for one in value]}
        case "allOf":
            return {name: [_schema(one) for one in value]}
        case "items":
            return {name: _schema(value)}
    dropped = name in _DROPPED or (name == "format" and value not in _FORMATS)
    if dropped or (name == "additionalProperties" and value is False):
        return {}
    if name in _KEPT:
        return {name: value}
    raise _Unsupported


def _refuse_recursion(
    root: Mapping[str, object], place: object, within: tuple[str, ...], seen: set[str]
) -> None:
    """Raises _Unsupported if a part of the schema refers to itself, directly or indirectly."""
    if isinstance(place, list):
        for one in place:
            _refuse_recursion(root, one, within, seen)
    elif isinstance(place, dict):
        reference = place.get("$ref")
        if isinstance(reference, str):
            if reference in within or reference == "#":
                raise _Unsupported
            if reference not in seen:
                seen.add(reference)
                _refuse_recursion(root, resolved(root, reference), (*within, reference), seen)
        for name, value in place.items():
            if name not in _NO_SCHEMAS:
                _refuse_recursion(root, value, within, seen)
