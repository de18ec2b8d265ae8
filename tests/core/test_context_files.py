"""What the operator wrote for agents."""

from pathlib import Path

import pytest

from hermes.core.context_files import NAMES, context_file


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
