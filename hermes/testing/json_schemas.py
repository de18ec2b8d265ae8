"""JSON schemas as a model provider reads them: what it refuses, and JSON that conforms to one."""

from collections.abc import Iterator, Mapping
from typing import cast

SchemaPart = Mapping[str, object]


def conforming(schema: SchemaPart, facts: Mapping[str, object]) -> object:
    """JSON that conforms to the schema.

    A property is taken from `facts` by its name; the others get the simplest value of their type.
    """
    return _value(schema, schema, facts)


def strict_violation(schema: SchemaPart) -> str | None:
    """Why OpenAI refuses the schema in strict mode; None if it accepts it."""
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


def _value(schema: SchemaPart, root: SchemaPart, facts: Mapping[str, object]) -> object:
    schema = _resolved(schema, root)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return cast(list[object], schema["enum"])[0]
    if options := schema.get("anyOf") or schema.get("oneOf"):
        return _value(cast(list[SchemaPart], options)[0], root, facts)
    match _type(schema):
        case "object":
            properties = cast(Mapping[str, SchemaPart], schema.get("properties", {}))
            return {
                name: facts[name] if name in facts else _value(inner, root, facts)
                for name, inner in properties.items()
            }
        case "array":
            count = cast(int, schema.get("minItems", 1))
            return [_value(cast(SchemaPart, schema.get("items", {})), root, facts)] * count
        case "integer" | "number":
            return schema.get("minimum", 0)
        case "string":
            return "x" * cast(int, schema.get("minLength", 1))
        case other:
            return other == "boolean" or None


def _type(schema: SchemaPart) -> object:
    kind = schema.get("type", "object" if "properties" in schema else "string")
    return kind[0] if isinstance(kind, list) else kind


def _resolved(schema: SchemaPart, root: SchemaPart) -> SchemaPart:
    """The schema that a `$ref` leads to, within the same document."""
    while "$ref" in schema:
        found: object = root
        for name in str(schema["$ref"]).removeprefix("#/").split("/"):
            found = cast(SchemaPart, found)[name]
        schema = cast(SchemaPart, found)
    return schema


def _parts(value: object) -> Iterator[SchemaPart]:
    """The mappings in a schema, itself included; properties are not taken for keywords."""
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
