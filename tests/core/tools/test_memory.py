"""The tool `memory` changes the notes."""

from pathlib import Path

import pytest

from hermes.core.tools.memory import memory_tool
from hermes.core.tools.schema import tools_json
from hermes.state.memory import Memory, NoteLimits, Remembered
from hermes.testing.turns import a_turn, use
from hermes.types.errors import ToolFailed

MEMORY = Memory(NoteLimits(memory=60))


async def keep(home: Path, *edits: dict[str, str], target: str = "memory") -> str:
    arguments = {"target": target, "edits": list(edits)}
    return await use(memory_tool(MEMORY), a_turn(home=home), arguments)


def add(content: str) -> dict[str, str]:
    return {"action": "add", "content": content}


async def test_the_result_of_an_edit_says_how_full_the_file_is(tmp_path: Path) -> None:
    said = await keep(tmp_path, add("Likes tea"), add("Runs"))
    assert said == "MEMORY.md holds 2 entries: 16 of 60 characters."
    await keep(tmp_path, {"action": "replace", "old": "tea", "content": "Likes coffee"})
    await keep(tmp_path, {"action": "remove", "old": "Runs"}, add("Rides"))
    await keep(tmp_path, add("Is 40"), target="user")
    assert MEMORY.read(a_turn(home=tmp_path)) == Remembered(
        memory="Likes coffee\n§\nRides", user="Is 40"
    )


async def test_an_edit_that_is_repeated_after_a_crash_does_no_harm(tmp_path: Path) -> None:
    change = {"action": "replace", "old": "tea", "content": "Likes coffee"}
    await keep(tmp_path, add("Likes tea"))
    first = await keep(tmp_path, change, add("Runs"))
    assert await keep(tmp_path, change, add("Runs")) == first
    assert memory_tool(MEMORY).repeatable


async def test_a_note_with_invisible_characters_is_refused(tmp_path: Path) -> None:
    await keep(tmp_path, add("Likes\u202e tea\x00\r\nand cake"))
    assert MEMORY.read(a_turn(home=tmp_path)).memory == "Likes tea\nand cake"
    await keep(tmp_path, {"action": "remove", "old": "tea\u200b\r\nand"})
    assert MEMORY.read(a_turn(home=tmp_path)).memory == ""


@pytest.mark.parametrize(
    "secret",
    ["The password: hunter2secret", "Use sk-abcdefghijklmnop1234", "postgres://u:pw99@host/db"],
)
async def test_a_note_with_a_secret_is_refused(tmp_path: Path, secret: str) -> None:
    with pytest.raises(ToolFailed, match="password or key"):
        await keep(tmp_path, add("Likes tea"), add(secret))
    assert list(tmp_path.iterdir()) == []


def test_the_declaration_of_the_tool_is_short() -> None:
    assert len(tools_json((memory_tool(MEMORY),))) <= 900
