"""The declaration of a tool contains a simple JSON schema of its arguments."""

from typing import Annotated, Literal

import msgspec
import pytest

from hermes.core.tools.schema import named_schema, schema_of, tools_json
from hermes.types.errors import ConfigError
from hermes.types.tools import AnyTool, Tool, ToolContext


class Place(msgspec.Struct):
    title: str
    line: int = 1


class ByName(msgspec.Struct, tag="name"):
    name: str


class ByNumber(msgspec.Struct, tag="number"):
    number: int


class Search(msgspec.Struct, forbid_unknown_fields=True):
    """Looks for something."""

    query: Annotated[str, msgspec.Meta(description="what to look for")]
    where: list[Place] = []
    order: Literal["new", "old"] = "new"
    by: ByName | ByNumber | None = None


class Tree(msgspec.Struct):
    children: "list[Tree]" = []


async def run(_context: ToolContext, _arguments: msgspec.Struct) -> str:
    return "done"


def tool(name: str, arguments: type[msgspec.Struct]) -> AnyTool:
    return Tool(name=name, description="Looks.", arguments=arguments, handler=run)


def test_a_schema_has_no_references_and_no_titles() -> None:
    text = msgspec.json.encode(schema_of(Search)).decode()
    assert "$ref" not in text
    assert '"title":"' not in text
    assert "discriminator" not in text


def test_a_field_may_be_called_title() -> None:
    assert schema_of(Place) == {
        "type": "object",
        "properties": {"title": {"type": "string"}, "line": {"type": "integer", "default": 1}},
        "required": ["title"],
    }


def test_descriptions_and_choices_reach_the_model() -> None:
    text = msgspec.json.encode(schema_of(Search)).decode()
    assert '"description":"what to look for"' in text
    assert '"enum":["new","old"]' in text
    assert '"additionalProperties":false' in text


def test_a_schema_is_made_once() -> None:
    assert schema_of(Search) is schema_of(Search)


def test_the_error_for_a_schema_that_contains_itself_names_it() -> None:
    with pytest.raises(ConfigError, match="'Tree'"):
        schema_of(Tree)


def test_the_tools_array_has_the_usual_format_and_is_encoded_once() -> None:
    encoded = tools_json((tool("search", Search), tool("open", Place)))
    first, second = msgspec.json.decode(encoded)
    assert first["type"] == "function"
    assert first["function"]["name"] == "search"
    assert first["function"]["parameters"]["type"] == "object"
    assert second["function"]["description"] == "Looks."
    assert tools_json((tool("search", Search), tool("open", Place))) is encoded


def test_a_wire_format_may_declare_a_tool_in_another_form() -> None:
    tools = (tool("open", Place),)
    named = {"name": "open", "description": "Looks.", "parameters": schema_of(Place)}
    assert msgspec.json.decode(tools_json(tools, named_schema)) == [named]
    assert msgspec.json.decode(tools_json(tools)) == [{"type": "function", "function": named}]
