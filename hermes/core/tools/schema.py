"""Declares tools to models as plain JSON schemas, encoded once."""

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import TypeAlias

import msgspec

from hermes.types.errors import ConfigError
from hermes.types.profile import Wire
from hermes.types.tools import AnyTool

Json: TypeAlias = "str | int | float | bool | list[Json] | Mapping[str, Json] | None"
JsonSchema: TypeAlias = Mapping[str, Json]

_REF = "$ref"
_MAPS = frozenset({"properties", "patternProperties"})
# Models don't need them, and some servers refuse a schema that has them.
_DROPPED = frozenset({"title", "discriminator"})


@cache
def schema_of(arguments: type[msgspec.Struct]) -> JsonSchema:
    """The JSON schema of a declaration, without references or titles."""
    (root,), parts = msgspec.json.schema_components([arguments], ref_template="{name}")
    schema = _inlined(root, parts, ())
    assert isinstance(schema, dict)
    return schema


@lru_cache(maxsize=256)
def tools_json(tools: tuple[AnyTool, ...], wire: Wire = "chat") -> bytes:
    """The `tools` array of a request, encoded once per set of tools."""
    return msgspec.json.encode([_declared(tool, wire) for tool in tools])


def _declared(tool: AnyTool, wire: Wire) -> JsonSchema:
    named = {"name": tool.name, "description": tool.description}
    schema = schema_of(tool.arguments)
    match wire:
        case "chat":
            return {"type": "function", "function": {**named, "parameters": schema}}
        case "responses":
            # A strict schema has no optional fields.
            return {"type": "function", **named, "parameters": schema, "strict": False}
        case "anthropic":
            return {**named, "input_schema": schema}


def _inlined(node: Json, parts: JsonSchema, within: tuple[str, ...]) -> Json:
    if isinstance(node, list):
        return [_inlined(item, parts, within) for item in node]
    if not isinstance(node, dict):
        return node
    if isinstance(name := node.get(_REF), str):
        if name in within:
            raise ConfigError(
                f"tool arguments {name!r} contain themselves: models need a finite schema"
            )
        return _inlined(parts[name], parts, (*within, name))
    return {
        key: _properties(value, parts, within) if key in _MAPS else _inlined(value, parts, within)
        for key, value in node.items()
        if key not in _DROPPED
    }


def _properties(node: Json, parts: JsonSchema, within: tuple[str, ...]) -> Json:
    # The keys are names of fields here: a field may well be called `title`.
    assert isinstance(node, dict)
    return {name: _inlined(value, parts, within) for name, value in node.items()}
