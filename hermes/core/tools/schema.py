"""Writes the declarations of tools as JSON schemas."""

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
"""Returns the declaration of a tool in a wire format."""

_REF = "$ref"
_MAPS = frozenset({"properties", "patternProperties"})
# Models don't need these keywords, and some servers refuse them.
_DROPPED = frozenset({"title", "discriminator"})


@cache
def schema_of(arguments: type[msgspec.Struct]) -> JsonSchema:
    """Returns the JSON schema of a type, without references or titles."""
    (root,), parts = msgspec.json.schema_components([arguments], ref_template="{name}")
    schema = _inlined(root, parts, ())
    assert isinstance(schema, dict)
    return schema


def parameters_of(tool: DeclaredTool) -> JsonSchema | msgspec.Raw:
    """Returns the JSON schema of a tool's arguments."""
    if isinstance(tool, ClientTool):
        return msgspec.Raw(tool.parameters.encode())
    return schema_of(tool.arguments)


def named_schema(tool: DeclaredTool) -> Mapping[str, object]:
    """Returns the name, the description and the argument schema of a tool."""
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": parameters_of(tool),
    }


def function(tool: DeclaredTool) -> Mapping[str, object]:
    """Returns the declaration of a tool in the format that most servers accept."""
    declared = named_schema(tool)
    if isinstance(tool, ClientTool) and tool.strict is not None:
        declared = {**declared, "strict": tool.strict}
    return {"type": "function", "function": declared}


def tools_json(tools: Sequence[DeclaredTool], declare: Declare = function) -> bytes:
    """Returns the declarations of the tools as a JSON array. The JSON of the agent's own tools is
    cached. The tools of an API client are encoded for every call."""
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
    # These keys are field names, so a key such as `title` must not be dropped.
    assert isinstance(node, dict)
    return {name: _inlined(value, parts, within) for name, value in node.items()}
