"""The tool `write_file` writes a file and shows the change."""

from pathlib import Path

import pytest

from hermes.core.tools.call import CallContext
from hermes.core.tools.write_file import COMPARED_BYTES, WriteFile, write_file
from hermes.testing.turns import CALL, Notebook, a_turn, files_of, review, use
from hermes.types.errors import ToolFailed
from hermes.types.identity import OWNER, Principal


async def write(workspace: Path, path: str, content: str) -> str:
    return await use(write_file, a_turn(workspace=workspace), {"path": path, "content": content})


async def test_a_new_file_and_its_folders_are_created(tmp_path: Path) -> None:
    assert await write(tmp_path, "a/b/f.txt", "one\nzwölf") == (
        "Created 'a/b/f.txt': 2 lines, 10 bytes."
    )
    assert (tmp_path / "a/b/f.txt").read_text() == "one\nzwölf"


async def test_a_repeated_write_does_no_harm(tmp_path: Path) -> None:
    await write(tmp_path, "f", "old")
    for _ in range(2):
        assert await write(tmp_path, "f", "new\r\n") == "Replaced 'f': 1 line, 5 bytes."
    assert (tmp_path / "f").read_bytes() == b"new\r\n"


async def test_a_file_can_be_emptied(tmp_path: Path) -> None:
    assert await write(tmp_path, "f", "") == "Created 'f': 0 lines, 0 bytes."


async def diff_after(workspace: Path, content: str) -> str:
    """Writes the file `f`. Returns the diff that people see."""
    turn = a_turn(workspace=workspace)
    context = CallContext(turn, CALL, files_of(turn), lambda event: None, Notebook())
    await write_file.handler(context, WriteFile(path="f", content=content))
    return context.diff


async def test_the_change_is_shown_to_people(tmp_path: Path) -> None:
    assert await diff_after(tmp_path, "a\nb\n") == "@@ -1,0 +1,2 @@\n+a\n+b"
    assert await diff_after(tmp_path, "a\nc\n") == "@@ -1,2 +1,2 @@\n a\n-b\n+c"
    assert await diff_after(tmp_path, "a\nc\n") == ""


@pytest.mark.parametrize("old", [b"\xff\xfe", b"x" * (COMPARED_BYTES + 1)])
async def test_a_file_that_cannot_be_compared_is_replaced_without_a_diff(
    tmp_path: Path, old: bytes
) -> None:
    (tmp_path / "f").write_bytes(old)
    assert await diff_after(tmp_path, "new\n") == ""
    assert (tmp_path / "f").read_text() == "new\n"


async def test_a_file_outside_the_workspace_is_not_written(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    with pytest.raises(ToolFailed, match=r"outside the workspace .*; paths are relative to it"):
        await write(work, "../f", "x")
    assert list(tmp_path.iterdir()) == [work]


async def test_a_chat_can_not_write_a_context_file(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("a")
    arguments = {"path": "sub/agents.md", "content": "x"}
    with pytest.raises(ToolFailed, match="instructions for every conversation"):
        await use(write_file, a_turn(workspace=tmp_path), arguments)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["a"]
    terminal = Principal(name="cli", person=OWNER)
    await use(write_file, a_turn(workspace=tmp_path, principal=terminal), arguments)


async def test_text_with_a_lone_surrogate_is_refused(tmp_path: Path) -> None:
    turn = a_turn(workspace=tmp_path)
    context = CallContext(turn, CALL, files_of(turn), lambda event: None, Notebook())
    with pytest.raises(ToolFailed, match="not valid Unicode"):
        await write_file.handler(context, WriteFile(path="new/f", content="\ud800"))
    assert list(tmp_path.iterdir()) == []


async def test_only_an_existing_file_that_was_not_read_needs_approval(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "full").write_text("x")
    (tmp_path / "folder").mkdir()
    turn = a_turn(workspace=tmp_path)
    for path in ("new", "empty", "folder", "../outside"):
        assert await review(write_file, turn, {"path": path, "content": "y"}) is None
    assert await review(write_file, turn, {"path": "full", "content": "x"}) is None
    action = await review(write_file, turn, {"path": "full", "content": "yz"})
    assert action is not None
    assert (action.kind, action.shown, action.contained) == ("overwrite a file", "full", False)
    assert action.remarks == ("The new content has 2 characters.",)
    other = await review(write_file, turn, {"path": "full", "content": "other"})
    assert other is not None
    assert other.facts != action.facts
