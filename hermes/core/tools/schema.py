"""Declares tools to models as plain JSON schemas, encoded once."""

from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import TypeAlias

import msgspec

from hermes.types.errors import ConfigError
from hermes.types.tools import AnyTool

Json: TypeAlias = "str | int | float | bool | list[Json] | Mapping[str, Json] | None"
JsonSchema: TypeAlias = Mapping[str, Json]
Declare = Callable[[AnyTool], Mapping[str, object]]
"""Writes a tool as a wire format declares it."""

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


def named_schema(tool: AnyTool) -> JsonSchema:
    """A tool with its name, its description and the schema of its arguments."""
    schema = schema_of(tool.arguments)
    return {"name": tool.name, "description": tool.description, "parameters": schema}


def function(tool: AnyTool) -> JsonSchema:
    """A tool in the form that most servers take."""
    return {"type": "function", "function": named_schema(tool)}


@lru_cache(maxsize=256)
def tools_json(tools: tuple[AnyTool, ...], declare: Declare = function) -> bytes:
    """The declarations of tools as a JSON array, encoded once per set of tools."""
    return msgspec.json.encode([declare(tool) for tool in tools])


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
