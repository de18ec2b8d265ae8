"""What the operator wrote for agents."""

import os
from pathlib import Path

import pytest

from hermes.core.context_files import LARGEST_CONTEXT_FILE, NAMES, check_writable, context_file
from hermes.testing.turns import GROUP, PRIVATE, a_turn
from hermes.types.errors import ToolFailed
from hermes.types.identity import OWNER, Principal


def write(folder: Path, name: str, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, "utf-8")


def shown(workspace: Path, limit: int = 1000) -> str | None:
    part = context_file(workspace, limit)
    return part.text.partition("\n\n")[2] if part else None


def test_nothing_there_is_nothing_shown(tmp_path: Path) -> None:
    assert context_file(tmp_path, 1000) is None
    write(tmp_path, "AGENTS.md", "  \n")
    assert context_file(tmp_path, 1000) is None


@pytest.mark.parametrize("name", NAMES)
def test_every_known_name_is_read(tmp_path: Path, name: str) -> None:
    write(tmp_path, name, "use tabs\n")
    part = context_file(tmp_path, 1000)
    assert part is not None
    assert part.name == name
    assert part.text == f"Instructions for this workspace, from {tmp_path / name}:\n\nuse tabs"


def test_the_first_of_the_names_counts(tmp_path: Path) -> None:
    write(tmp_path, "AGENTS.md", "second")
    write(tmp_path, ".hermes.md", "first")
    assert shown(tmp_path) == "first"


def test_a_repository_s_own_is_found_from_a_folder_inside_and_no_further(tmp_path: Path) -> None:
    inside = tmp_path / "repo" / "src" / "deep"
    write(inside, "code.py", "")
    write(tmp_path, "AGENTS.md", "outside")
    write(tmp_path / "repo" / ".git", "HEAD", "")
    assert shown(inside) is None
    write(tmp_path / "repo", "AGENTS.md", "of the repository")
    assert shown(inside) == "of the repository"


def test_outside_a_repository_only_the_folder_itself_counts(tmp_path: Path) -> None:
    write(tmp_path / "a", "x", "")
    write(tmp_path, "AGENTS.md", "above")
    assert shown(tmp_path / "a") is None


def test_a_long_one_keeps_its_beginning_and_its_end(tmp_path: Path) -> None:
    write(tmp_path, "AGENTS.md", "begin " + "x" * 5000 + " end")
    text = shown(tmp_path, 100) or ""
    assert text.startswith("begin x")
    assert text.endswith("x end")
    assert "[… 4910 characters left out …]" in text
    assert len(text) < 150


def test_none_is_shown_when_none_is_wanted(tmp_path: Path) -> None:
    write(tmp_path, "AGENTS.md", "x")
    assert context_file(tmp_path, 0) is None


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    write(tmp_path, "key", "private")
    work = tmp_path / "work"
    write(work, "CLAUDE.md", "of the workspace")
    (work / "AGENTS.md").symlink_to(tmp_path / "key")
    assert shown(work) == "of the workspace"


def test_what_is_no_file_is_passed_over_at_once_and_closed(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".hermes.md")
    pipe = os.open(tmp_path / ".hermes.md", os.O_RDWR)
    os.write(pipe, b"through the pipe")
    (tmp_path / "HERMES.md").mkdir()
    write(tmp_path, "AGENTS.md", "here")
    before = len(list(Path("/dev/fd").iterdir()))
    assert shown(tmp_path) == "here"
    assert len(list(Path("/dev/fd").iterdir())) == before
    assert os.read(pipe, 99) == b"through the pipe"
    os.close(pipe)


def test_a_huge_file_is_read_up_to_a_bound(tmp_path: Path) -> None:
    write(tmp_path, "AGENTS.md", "x" * LARGEST_CONTEXT_FILE + "unseen")
    text = shown(tmp_path, 100) or ""
    assert f"[… {LARGEST_CONTEXT_FILE - 100} characters left out …]" in text
    assert text.endswith("x")


@pytest.mark.parametrize("path", ["AGENTS.md", "a/b/claude.MD", "./.Hermes.md/", ".cursorrules/."])
def test_a_chat_may_not_write_what_everybody_s_agent_is_told(path: str) -> None:
    for source in (PRIVATE, GROUP):
        with pytest.raises(ToolFailed, match=r"can't be written from p: ask the owner"):
            check_writable(path, a_turn(source=source))
    check_writable(path, a_turn(principal=Principal(name="cli", person=OWNER)))


def test_a_chat_may_write_any_other_file() -> None:
    check_writable("AGENTS.md/x", a_turn())
    check_writable("notes.md", a_turn())
