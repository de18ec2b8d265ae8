"""The file tools as a whole."""

from pathlib import Path

from hermes.core.tools.files import file_tools
from hermes.core.tools.schema import tools_json
from hermes.state.spill import Spill

TOOLS = {tool.name: tool for tool in file_tools(Spill(Path("/nonexistent")))}


def test_the_file_tools_say_what_they_can_do_to_files() -> None:
    assert {name: tool.risk for name, tool in TOOLS.items()} == {
        "read_file": "low",
        "write_file": "medium",
        "patch": "medium",
        "search_files": "low",
    }
    assert {tool.toolset for tool in TOOLS.values()} == {"files"}
    assert [name for name, tool in TOOLS.items() if tool.read_only] == ["read_file", "search_files"]
    assert [name for name, tool in TOOLS.items() if not tool.repeatable] == ["patch"]


def test_the_file_tools_take_little_of_the_prompt() -> None:
    assert len(tools_json(tuple(TOOLS.values()))) < 2000
