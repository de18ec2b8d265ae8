"""The tools of an API client: reads their declarations and the tool choice of a request."""

import re
from typing import Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from hermes.entry.http.errors import bad_request
from hermes.types.client_tools import ClientTool, ToolChoice

MOST_TOOLS = 128
MOST_TOOL_BYTES = 256 * 1024
"""Maximum size of all declarations of a request together."""
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MODES: dict[str, Literal["auto", "none", "required"]] = {
    "auto": "auto",
    "none": "none",
    "required": "required",
}


class DeclaredFunction(msgspec.Struct):
    name: str
    """The name of the tool: 1 to 64 letters, digits, `_` or `-`."""
    description: str | None = None
    """A description that tells the model what the tool does."""
    parameters: Raw | UnsetType = UNSET
    """A JSON schema of the arguments."""
    strict: bool | None = None
    """Whether to ask the provider to enforce the schema."""


class RequestTool(msgspec.Struct):
    type: str = "function"
    """Always `function`."""
    function: DeclaredFunction | None = None
    """The declaration of the tool."""


class NamedFunction(msgspec.Struct):
    name: str
    """The name of one of the request's `tools`."""


class NamedTool(msgspec.Struct):
    type: str = "function"
    """Always `function`."""
    function: NamedFunction | None = None
    """The function that the model must call."""


def client_tools(declared: list[RequestTool] | None) -> tuple[ClientTool, ...]:
    """Returns the tools that a request declares. If a tool can't be used, raises an ApiError that
    names it."""
    declared = declared or []
    if len(declared) > MOST_TOOLS:
        raise bad_request(
            f"The request has more than {MOST_TOOLS} tools.", "too_many_tools", "tools"
        )
    found: dict[str, ClientTool] = {}
    size = 0
    for index, one in enumerate(declared):
        param = f"tools[{index}]"
        if one.type != "function" or one.function is None:
            message = f"Tools of type {one.type!r} are not supported; send functions."
            raise bad_request(message, "unsupported_tool_type", param)
        tool = _tool(one.function, param)
        if tool.name in found:
            raise bad_request(f"Two tools are named {tool.name!r}.", "invalid_tool", param)
        found[tool.name] = tool
        size += len(tool.description) + len(tool.parameters)
    if size > MOST_TOOL_BYTES:
        message = f"The tools take more than {MOST_TOOL_BYTES} bytes."
        raise bad_request(message, "tools_too_large", "tools")
    return tuple(found.values())


def tool_choice(
    chosen: str | NamedTool | None, parallel: bool | None, tools: tuple[ClientTool, ...]
) -> ToolChoice:
    """Returns the tool choice of a request. Raises ApiError if the choice is invalid, or if it
    requires a tool that the request does not declare."""
    match chosen:
        case str(mode) if mode in _MODES:
            if mode == "required" and not tools:
                raise bad_request(
                    "tool_choice is 'required', but there are no tools.", param="tool_choice"
                )
            return ToolChoice(mode=_MODES[mode] if tools else "auto", parallel=parallel)
        case None:
            return ToolChoice(parallel=parallel)
        case NamedTool(type="function", function=NamedFunction(name=name)):
            if all(tool.name != name for tool in tools):
                raise bad_request(f"There is no tool {name!r} in tools.", param="tool_choice")
            return ToolChoice(mode="named", name=name, parallel=parallel)
        case _:
            raise bad_request(
                "tool_choice must be 'auto', 'none', 'required' or name a function.",
                "unsupported_tool_choice",
                "tool_choice",
            )


def check_name(name: str, param: str) -> None:
    if not _NAME.fullmatch(name):
        raise bad_request(
            f"{name[:80]!r} can't be the name of a tool: use 1 to 64 letters, digits, '_' or '-'.",
            "invalid_tool",
            param,
        )


def _tool(function: DeclaredFunction, param: str) -> ClientTool:
    check_name(function.name, f"{param}.function.name")
    tool = ClientTool(
        name=function.name, description=function.description or "", strict=function.strict
    )
    if isinstance(function.parameters, UnsetType) or bytes(function.parameters) == b"null":
        return tool
    try:
        msgspec.json.decode(function.parameters, type=dict[str, object])
    except (msgspec.DecodeError, RecursionError) as error:
        message = "The parameters of a tool must be a JSON schema: an object."
        raise bad_request(message, "invalid_tool", f"{param}.function.parameters") from error
    return msgspec.structs.replace(tool, parameters=bytes(function.parameters).decode())
