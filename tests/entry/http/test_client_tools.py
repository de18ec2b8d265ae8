"""A request can declare tools and a `tool_choice`."""

import msgspec
import pytest

from hermes.entry.http.client_tools import (
    MOST_TOOL_BYTES,
    MOST_TOOLS,
    NamedTool,
    RequestTool,
    client_tools,
    tool_choice,
)
from hermes.entry.http.errors import ApiError
from hermes.types.client_tools import ClientTool, ToolChoice

LOOK = ClientTool(name="look")


def declared(*tools: object) -> list[RequestTool]:
    return msgspec.json.decode(msgspec.json.encode(tools), type=list[RequestTool])


def function(name: str, **fields: object) -> dict[str, object]:
    return {"type": "function", "function": {"name": name, **fields}}


def test_a_function_keeps_the_schema_that_the_client_wrote() -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string", "title": "City"}}}
    (tool,) = client_tools(
        declared(function("weather", description="of a city", parameters=schema, strict=True))
    )
    assert (tool.name, tool.description, tool.strict) == ("weather", "of a city", True)
    assert msgspec.json.decode(tool.parameters) == schema


def test_a_function_without_parameters_gets_an_empty_schema() -> None:
    assert client_tools(declared(function("look"), function("see", parameters=None))) == (
        LOOK,
        ClientTool(name="see"),
    )
    assert client_tools(None) == ()


@pytest.mark.parametrize(
    ("tools", "code"),
    [
        ([{"type": "web_search"}], "unsupported_tool_type"),
        ([{"type": "function"}], "unsupported_tool_type"),
        ([function("two words")], "invalid_tool"),
        ([function("x" * 65)], "invalid_tool"),
        ([function("a"), function("a")], "invalid_tool"),
        ([function("a", parameters=[1])], "invalid_tool"),
        ([function(f"t{n}") for n in range(MOST_TOOLS + 1)], "too_many_tools"),
        ([function("a", description="x" * MOST_TOOL_BYTES)], "tools_too_large"),
    ],
)
def test_a_tool_that_can_not_be_used_is_refused(tools: list[object], code: str) -> None:
    with pytest.raises(ApiError) as caught:
        client_tools(declared(*tools))
    assert (caught.value.status, caught.value.code) == (400, code)


def named(name: str, kind: str = "function") -> NamedTool:
    return msgspec.convert({"type": kind, "function": {"name": name}}, NamedTool)


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        (None, ToolChoice(parallel=False)),
        ("auto", ToolChoice(parallel=False)),
        ("none", ToolChoice(mode="none", parallel=False)),
        ("required", ToolChoice(mode="required", parallel=False)),
        (named("look"), ToolChoice(mode="named", name="look", parallel=False)),
    ],
)
def test_every_form_of_tool_choice_is_accepted(
    chosen: str | NamedTool | None, expected: ToolChoice
) -> None:
    assert tool_choice(chosen, False, (LOOK,)) == expected


@pytest.mark.parametrize("chosen", ["sometimes", named("other"), named("look", "allowed_tools")])
def test_an_impossible_tool_choice_is_refused(chosen: str | NamedTool) -> None:
    with pytest.raises(ApiError) as caught:
        tool_choice(chosen, None, (LOOK,))
    assert (caught.value.status, caught.value.param) == (400, "tool_choice")


def test_without_client_tools_a_tool_choice_has_no_effect() -> None:
    assert tool_choice("none", None, ()) == tool_choice("auto", None, ()) == ToolChoice()
    with pytest.raises(ApiError):
        tool_choice("required", None, ())
