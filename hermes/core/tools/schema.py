"""Declares tools to models as plain JSON schemas, encoded once."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from typing import TypeAlias

import msgspec

from hermes.types.client_tools import ClientTool
from hermes.types.errors import ConfigError
from hermes.types.tools import DeclaredTool

Json: TypeAlias = "str | int | float | bool | list[Json] | Mapping[str, Json] | None"
JsonSchema: TypeAlias = Mapping[str, Json]
Declare = Callable[[DeclaredTool], Mapping[str, object]]
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


def parameters_of(tool: DeclaredTool) -> JsonSchema | msgspec.Raw:
    """The JSON schema of a tool's arguments."""
    if isinstance(tool, ClientTool):
        return msgspec.Raw(tool.parameters.encode())
    return schema_of(tool.arguments)


def named_schema(tool: DeclaredTool) -> Mapping[str, object]:
    """A tool with its name, its description and the schema of its arguments."""
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": parameters_of(tool),
    }


def function(tool: DeclaredTool) -> Mapping[str, object]:
    """A tool in the form that most servers take."""
    declared = named_schema(tool)
    if isinstance(tool, ClientTool) and tool.strict is not None:
        declared = {**declared, "strict": tool.strict}
    return {"type": "function", "function": declared}


def tools_json(tools: Sequence[DeclaredTool], declare: Declare = function) -> bytes:
    """The declarations of tools as a JSON array. The agent's own are encoded once per set."""
    declared = [declare(tool) for tool in tools if isinstance(tool, ClientTool)]
    if not declared:
        return _own_json(tuple(tools), declare)
    own = tuple(tool for tool in tools if not isinstance(tool, ClientTool))
    theirs = msgspec.json.encode(declared)
    return _own_json(own, declare)[:-1] + b"," + theirs[1:] if own else theirs


@lru_cache(maxsize=256)
def _own_json(tools: tuple[DeclaredTool, ...], declare: Declare) -> bytes:
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
