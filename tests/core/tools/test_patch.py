"""The tool `patch` replaces a passage of a file."""

from pathlib import Path

import pytest

from hermes.core.tools.call import CallContext
from hermes.core.tools.patch import Patch, patch
from hermes.testing.turns import CALL, Notebook, a_turn, files_of, use
from hermes.types.errors import ToolFailed
from hermes.types.identity import OWNER, Principal


async def change(workspace: Path, old: str, new: str, **more: object) -> str:
    arguments = {"path": "f", "old": old, "new": new, **more}
    return await use(patch, a_turn(workspace=workspace), arguments)


async def test_text_is_replaced_and_the_change_is_shown(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("a\nb\nc\nd\ne\n")
    (tmp_path / "f").chmod(0o750)
    shown = await change(tmp_path, "c", "C")
    assert shown == "Replaced once in 'f'.\n@@ -1,5 +1,5 @@\n a\n b\n-c\n+C\n d\n e"
    assert (tmp_path / "f").read_text() == "a\nb\nC\nd\ne\n"
    assert (tmp_path / "f").stat().st_mode & 0o777 == 0o750


async def test_the_change_is_also_shown_to_people(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("a\nb\n")
    turn = a_turn(workspace=tmp_path)
    context = CallContext(turn, CALL, files_of(turn), lambda event: None, Notebook())
    await patch.handler(context, Patch(path="f", old="b", new="c"))
    assert context.diff == "@@ -1,2 +1,2 @@\n a\n-b\n+c"


async def test_text_that_occurs_twice_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x\ny\nx\n")
    with pytest.raises(ToolFailed, match=r"2 times, at lines 1, 3: .*or set `all`"):
        await change(tmp_path, "x", "z")
    assert (tmp_path / "f").read_text() == "x\ny\nx\n"
    assert (await change(tmp_path, "x", "z", all=True)).startswith(
        "Replaced 2 times, at lines 1, 3, in 'f'.\n@@"
    )
    assert (tmp_path / "f").read_text() == "z\ny\nz\n"


async def test_a_long_list_of_line_numbers_is_cut(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x\n" * 1000)
    with pytest.raises(ToolFailed, match=r"1000 times, at lines 1, .*, 10, …: "):
        await change(tmp_path, "x", "z")


async def test_different_white_space_is_accepted_and_reported(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("if a:\n    b()  \n    c()\n")
    shown = await change(tmp_path, "b()\nc()\n", "d()\n")
    assert shown.startswith("Replaced once in 'f', at lines that differ from `old` in their spaces")
    assert (tmp_path / "f").read_text() == "if a:\n    d()\n"


@pytest.mark.parametrize(
    ("content", "old", "new", "why"),
    [
        (b"a", "", "b", "`old` is empty: .*write_file"),
        (b"a", "b", "c", "not in 'f': read the file again"),
        (b"a", "a", "a", "changes nothing"),
        (b"f\xfcr a", "a", "b", "not UTF-8 text"),
        (b"\x7fELF\0 a", "a", "b", "not a text file"),
    ],
)
async def test_a_failed_patch_says_why_and_does_not_change_the_file(
    tmp_path: Path, content: bytes, old: str, new: str, why: str
) -> None:
    (tmp_path / "f").write_bytes(content)
    with pytest.raises(ToolFailed, match=why):
        await change(tmp_path, old, new)
    assert (tmp_path / "f").read_bytes() == content


async def test_a_missing_file_is_not_created(tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match="No such file"):
        await change(tmp_path, "a", "b")
    assert list(tmp_path.iterdir()) == []


async def test_windows_line_endings_are_kept(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"a\r\nb\r\nc\r\n")
    await change(tmp_path, "a\nb\n", "x\ny\n")
    assert (tmp_path / "f").read_bytes() == b"x\r\ny\r\nc\r\n"


async def test_the_diff_of_a_secret_file_is_not_shown(
    tmp_path: Path,
) -> None:
    (tmp_path / ".env").write_text("PORT=1\nTOKEN=opensesame\n")
    assert await change(tmp_path, "PORT=1", "PORT=2", path=".env") == "Replaced once in '.env'."


async def test_a_chat_can_not_change_a_context_file(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("a")
    arguments = {"path": "AGENTS.md", "old": "a", "new": "b"}
    with pytest.raises(ToolFailed, match="instructions for every conversation"):
        await use(patch, a_turn(workspace=tmp_path), arguments)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["a"]
    terminal = Principal(name="cli", person=OWNER)
    await use(patch, a_turn(workspace=tmp_path, principal=terminal), arguments)


async def test_no_spelling_of_a_path_shows_the_diff_of_a_secret_file(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("HOST=a\nSTRIPE=live_abc123456\n")
    wanted = {"path": ".env/.", "old": "HOST=a", "new": "HOST=b"}
    assert await use(patch, a_turn(workspace=tmp_path), wanted) == "Replaced once in '.env/.'."
