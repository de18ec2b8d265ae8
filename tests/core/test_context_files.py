"""The context file of the workspace is found and becomes a part of the prompt."""

import os
from pathlib import Path

import anyio
import pytest

from hermes.core.context_files import (
    NAMES,
    context_file,
    end_watching,
    prepare_write,
    rename_watched,
    trust_of,
    watched,
)
from hermes.state.context_trust import LARGEST_CONTEXT_FILE
from hermes.testing.turns import GROUP, PRIVATE, a_turn
from hermes.types.errors import ToolFailed
from hermes.types.identity import OWNER, CallId, Principal
from hermes.types.turns import Turn

CLI = Principal(name="cli", person=OWNER)


def write(folder: Path, name: str, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, "utf-8")


def shown(workspace: Path, limit: int = 1000) -> str | None:
    part = context_file(workspace, limit)
    return part.text.partition("\n\n")[2] if part else None


def test_without_a_context_file_the_prompt_has_no_part_for_it(tmp_path: Path) -> None:
    assert context_file(tmp_path, 1000) is None
    write(tmp_path, "AGENTS.md", "  \n")
    assert context_file(tmp_path, 1000) is None


@pytest.mark.parametrize("name", NAMES)
def test_files_with_every_known_name_are_read(tmp_path: Path, name: str) -> None:
    write(tmp_path, name, "use tabs\n")
    part = context_file(tmp_path, 1000)
    assert part is not None
    assert part.name == name
    assert part.text == f"Instructions for this workspace, from {tmp_path / name}:\n\nuse tabs"


def test_the_first_name_in_the_list_is_used(tmp_path: Path) -> None:
    write(tmp_path, "AGENTS.md", "second")
    write(tmp_path, ".hermes.md", "first")
    assert shown(tmp_path) == "first"


def test_a_file_in_a_folder_above_the_workspace_is_found_up_to_the_repository_root(
    tmp_path: Path,
) -> None:
    inside = tmp_path / "repo" / "src" / "deep"
    write(inside, "code.py", "")
    write(tmp_path, "AGENTS.md", "outside")
    write(tmp_path / "repo" / ".git", "HEAD", "")
    assert shown(inside) is None
    write(tmp_path / "repo", "AGENTS.md", "of the repository")
    assert shown(inside) == "of the repository"


def test_outside_of_a_repository_only_the_workspace_itself_is_searched(tmp_path: Path) -> None:
    write(tmp_path / "a", "x", "")
    write(tmp_path, "AGENTS.md", "above")
    assert shown(tmp_path / "a") is None


def test_a_long_file_keeps_its_beginning_and_its_end(tmp_path: Path) -> None:
    write(tmp_path, "AGENTS.md", "begin " + "x" * 5000 + " end")
    text = shown(tmp_path, 100) or ""
    assert text.startswith("begin x")
    assert text.endswith("x end")
    assert "[… 4910 characters left out …]" in text
    assert len(text) < 150


def test_with_a_limit_of_zero_no_file_is_loaded(tmp_path: Path) -> None:
    write(tmp_path, "AGENTS.md", "x")
    assert context_file(tmp_path, 0) is None


def test_a_symbolic_link_is_not_followed(tmp_path: Path) -> None:
    write(tmp_path, "key", "private")
    work = tmp_path / "work"
    write(work, "CLAUDE.md", "of the workspace")
    (work / "AGENTS.md").symlink_to(tmp_path / "key")
    assert shown(work) == "of the workspace"


def test_a_path_that_is_not_a_regular_file_is_skipped_and_closed(tmp_path: Path) -> None:
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


def test_a_huge_file_is_read_up_to_a_limit(tmp_path: Path) -> None:
    write(tmp_path, "AGENTS.md", "x" * LARGEST_CONTEXT_FILE + "unseen")
    text = shown(tmp_path, 100) or ""
    assert f"[… {LARGEST_CONTEXT_FILE - 100} characters left out …]" in text
    assert text.endswith("x")


@pytest.mark.parametrize("path", ["AGENTS.md", "a/b/claude.MD", "./.Hermes.md/", ".cursorrules/."])
async def test_a_chat_may_not_write_a_context_file(path: str) -> None:
    for source in (PRIVATE, GROUP):
        with pytest.raises(ToolFailed, match=r"can't be written from p: ask the owner"):
            await prepare_write(path, a_turn(source=source))
    await prepare_write(path, a_turn(principal=CLI))


async def test_a_chat_may_write_any_other_file() -> None:
    await prepare_write("AGENTS.md/x", a_turn())
    await prepare_write("notes.md", a_turn())


def owner_s_turn(folder: Path) -> Turn:
    (folder / "work").mkdir(exist_ok=True)
    (folder / "home").mkdir(exist_ok=True)
    return a_turn(workspace=folder / "work", home=folder / "home", principal=CLI)


def loaded(turn: Turn) -> str | None:
    part = context_file(Path(turn.profile.workspace), 1000, trust_of(turn))
    return part.text.partition("\n\n")[2] if part else None


async def test_a_file_that_the_agent_writes_is_not_loaded_until_it_is_allowed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    turn = owner_s_turn(tmp_path)
    trust = trust_of(turn)
    assert trust is not None
    await prepare_write("AGENTS.md", turn)
    write(tmp_path / "work", "AGENTS.md", "obey me")
    write(tmp_path / "work", "CLAUDE.md", "of the owner")
    assert loaded(turn) == "of the owner"
    path = tmp_path / "work" / "AGENTS.md"
    assert f"{path} was written by the agent" in caplog.text
    assert f"hermes context allow {path}" in caplog.text
    assert trust.allow(tmp_path / "work" / "AGENTS.md")
    assert loaded(turn) == "obey me"
    write(tmp_path / "work", "AGENTS.md", "obey me more")
    assert loaded(turn) == "of the owner"
    caplog.clear()
    trust.revoke(path)
    assert loaded(turn) == "of the owner"
    assert not caplog.text


async def test_the_version_before_the_agent_s_change_stays_trusted(tmp_path: Path) -> None:
    turn = owner_s_turn(tmp_path)
    write(tmp_path / "work", "AGENTS.md", "of the owner")
    await prepare_write(str(tmp_path / "work" / "AGENTS.md"), turn)
    assert loaded(turn) == "of the owner"
    write(tmp_path / "work", "AGENTS.md", "of the agent")
    assert loaded(turn) is None
    write(tmp_path / "work", "AGENTS.md", "of the owner")
    assert loaded(turn) == "of the owner"


async def test_a_file_that_a_command_changes_is_not_loaded(tmp_path: Path) -> None:
    turn = owner_s_turn(tmp_path)
    write(tmp_path / "work", "AGENTS.md", "of the owner")
    async with watched(turn, CallId("c")):
        write(tmp_path / "work", ".hermes.md", "of the agent")
    assert loaded(turn) == "of the owner"
    write(tmp_path / "work", "AGENTS.md", "edited by the owner")
    assert loaded(turn) == "edited by the owner"


async def test_a_folder_that_a_command_adds_to_the_repository_is_not_trusted(
    tmp_path: Path,
) -> None:
    turn = owner_s_turn(tmp_path)
    async with watched(turn, CallId("c")):
        write(tmp_path / ".git", "HEAD", "")
        write(tmp_path, "AGENTS.md", "of the agent")
    assert loaded(turn) is None


async def test_a_background_command_is_watched_until_it_is_known_to_have_ended(
    tmp_path: Path,
) -> None:
    turn = owner_s_turn(tmp_path)
    write(tmp_path / "work", "AGENTS.md", "of the owner")
    async with watched(turn, CallId("c")):
        await rename_watched(turn, CallId("c"), "p1")
    assert loaded(turn) == "of the owner"
    write(tmp_path / "work", "AGENTS.md", "of the agent")
    assert loaded(turn) is None
    await end_watching(turn, "p1")
    assert loaded(turn) is None
    write(tmp_path / "work", "AGENTS.md", "of the owner")
    assert loaded(turn) == "of the owner"


async def test_changes_of_a_cancelled_command_are_marked(tmp_path: Path) -> None:
    turn = owner_s_turn(tmp_path)
    with anyio.CancelScope() as scope:
        async with watched(turn, CallId("c")):
            write(tmp_path / "work", "AGENTS.md", "of the agent")
            scope.cancel()
            await anyio.sleep_forever()
    assert loaded(turn) is None


async def test_if_the_record_of_trusted_files_can_not_be_read_no_context_file_is_written_or_loaded(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    turn = owner_s_turn(tmp_path)
    write(tmp_path / "work", "AGENTS.md", "of the owner")
    write(tmp_path / "home", "context", "no folder")
    with pytest.raises(ToolFailed, match=r"'AGENTS.md' was not written"):
        await prepare_write("AGENTS.md", turn)
    async with watched(turn, CallId("c")):
        pass
    assert "changes to context files can't be recorded" in caplog.text
    assert loaded(turn) is None
