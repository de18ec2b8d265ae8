"""All file tools declare whether they change files, and none of them can access the home of
Hermes."""

from pathlib import Path

import pytest

from hermes.boundary.search import search as search_file
from hermes.core.tools.files import file_tools
from hermes.core.tools.schema import tools_json
from hermes.state.spill import Spill
from hermes.testing.turns import a_turn, use
from hermes.types.errors import ToolFailed

TOOLS = {tool.name: tool for tool in file_tools(Spill(Path("/nonexistent")), search_file)}


def test_the_file_tools_declare_whether_they_change_files() -> None:
    assert {name: tool.risk for name, tool in TOOLS.items()} == {
        "read_file": "low",
        "write_file": "medium",
        "patch": "medium",
        "search_files": "low",
    }
    assert {tool.toolset for tool in TOOLS.values()} == {"files"}
    assert [name for name, tool in TOOLS.items() if tool.read_only] == ["read_file", "search_files"]
    assert [name for name, tool in TOOLS.items() if not tool.repeatable] == ["patch"]


def test_the_declarations_of_the_file_tools_are_short() -> None:
    assert len(tools_json(tuple(TOOLS.values()))) < 2000


@pytest.mark.parametrize("path", [".hermes/config.yaml", ".hermes/workspace/f", "./.hermes//x"])
async def test_a_home_inside_a_workspace_can_not_be_accessed(tmp_path: Path, path: str) -> None:
    home = tmp_path / ".hermes"
    (home / "workspace").mkdir(parents=True)
    (home / "config.yaml").write_text("needle")
    (home / "workspace" / "f").write_text("needle")
    (tmp_path / "mine").write_text("needle")
    turn = a_turn(workspace=tmp_path, home=home)
    read, write, patch, search = file_tools(Spill(home / "spill"), search_file)
    for tool, arguments in (
        (read, {}),
        (write, {"content": "x"}),
        (patch, {"old": "needle", "new": "x"}),
        (search, {"pattern": "needle"}),
    ):
        with pytest.raises(ToolFailed, match="own folder"):
            await use(tool, turn, {"path": path, **arguments})
    with pytest.raises(ToolFailed, match="own folder"):
        await use(search, turn, {"path": ".hermes", "pattern": "needle"})
    assert await use(search, turn, {"pattern": "needle"}) == "mine:1: needle"
    assert (home / "config.yaml").read_text() == "needle"


async def test_a_workspace_inside_the_home_can_be_used(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "f").write_text("needle")
    read, _, _, search = file_tools(Spill(tmp_path / "spill"), search_file)
    turn = a_turn(workspace=tmp_path / "workspace", home=tmp_path)
    assert await use(read, turn, {"path": "f"}) == "needle"
    assert await use(search, turn, {"pattern": "needle"}) == "f:1: needle"
    turn = a_turn(workspace=tmp_path, home=tmp_path)
    with pytest.raises(ToolFailed, match="own folder"):
        await use(read, turn, {"path": "workspace/f"})
