"""The rules of strict mode, in which OpenAI guarantees that an answer conforms to its schema."""

from collections.abc import Iterator, Mapping
from typing import cast

SchemaPart = Mapping[str, object]


def strict_violation(schema: SchemaPart) -> str | None:
    """Returns the reason why OpenAI refuses the schema in strict mode, or None if OpenAI accepts
    it."""
    for part in _parts(schema):
        properties = part.get("properties")
        if part.get("type") != "object" and properties is None:
            continue
        if part.get("additionalProperties") is not False:
            return "'additionalProperties' is required to be supplied and to be false"
        names = set(cast(SchemaPart, properties or {}))
        if names != set(cast(list[str], part.get("required", []))):
            return "'required' is required to be supplied and to name every property"
    return None


def _parts(value: object) -> Iterator[SchemaPart]:
    """Yields the schema and all schemas inside it. The mappings in `properties` and `$defs` are not
    schemas, because their keys are names: only the values of these mappings are yielded."""
    if isinstance(value, list):
        for one in value:
            yield from _parts(one)
    elif isinstance(value, Mapping):
        yield value
        for key, inner in value.items():
            if key in ("properties", "$defs", "definitions"):
                for schema in cast(SchemaPart, inner).values():
                    yield from _parts(schema)
            else:
                yield from _parts(inner)
