"""Memory files are separate for each audience, and no change is lost or overwritten."""

import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from hermes.state.entries import EntryEdit, entries_of
from hermes.state.locks import FileLock
from hermes.state.memory import (
    LARGEST_NOTES,
    ChangedNotes,
    Memory,
    NoteLimits,
    Remembered,
    folder_name,
    folder_of,
)
from hermes.testing.turns import GROUP, a_turn
from hermes.types.errors import ToolFailed
from hermes.types.identity import OWNER
from hermes.types.turns import Turn

WRITER = """
import sys
from pathlib import Path
import anyio
from hermes.state.entries import EntryEdit
from hermes.state.memory import Memory, NoteLimits
from hermes.testing.turns import a_turn

async def main():
    memory, turn = Memory(NoteLimits(memory=100_000)), a_turn(home=Path(sys.argv[1]))
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(int(sys.argv[3])):
        edit = EntryEdit(action="add", content=f"{sys.argv[2]} {number}")
        await memory.change(turn, "memory", [edit])

anyio.run(main)
"""


@pytest.fixture
def alice(tmp_path: Path) -> Turn:
    return a_turn(home=tmp_path)


def note(content: str) -> list[EntryEdit]:
    return [EntryEdit(action="add", content=content)]


def written(turn: Turn, text: str | bytes, name: str = "MEMORY.md") -> Path:
    """Writes a file as if a person had written it some time ago."""
    folder = folder_of(turn)
    assert folder
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    os.utime(path, (1_000_000, 1_000_000))
    return path


def test_every_audience_has_a_folder_of_its_own(tmp_path: Path) -> None:
    memories = tmp_path / "memories"
    assert folder_of(a_turn(home=tmp_path, person=OWNER)) == memories
    assert folder_of(a_turn(home=tmp_path, person="Ann")) == memories / "people" / "%41nn"
    assert folder_of(a_turn(home=tmp_path, source=GROUP)) == memories / "chats" / "p" / "-5"


def test_without_a_home_or_a_person_no_notes_are_stored(tmp_path: Path) -> None:
    assert folder_of(a_turn()) is None
    nobody = replace(a_turn(home=tmp_path), person=None)
    assert folder_of(nobody) is None
    assert Memory().read(nobody) == Remembered()


@given(st.lists(st.text(), unique=True, min_size=2, max_size=2))
@example(["Ann", "ann"])
@example(["", "."])
@example(["..", "%2e%2e"])
@example(["a/b", "a%2fb"])
@example(["\ud800", "\ufffd"])
@example(["é", "e\u0301"])
@example(["x" * 300, "x" * 301])
def test_no_name_leaves_its_folder_and_no_two_names_share_a_folder(texts: list[str]) -> None:
    first, second = map(folder_name, texts)
    assert first.casefold() != second.casefold()
    for name in (first, second):
        assert Path("/memories", name).resolve() == Path("/memories") / name
        assert name.isascii()
        assert 0 < len(name) <= 120


async def test_notes_are_read_again(alice: Turn) -> None:
    memory = Memory()
    kept = await memory.change(alice, "memory", note("The server is called Odin"))
    assert kept == ChangedNotes(file="MEMORY.md", entries=1, used=25, limit=2200)
    await memory.change(alice, "user", note("Prefers short answers"))
    expected = Remembered(memory="The server is called Odin", user="Prefers short answers")
    assert memory.read(alice) == Memory().read(alice) == expected


async def test_only_the_owner_can_read_the_files_and_they_end_in_a_newline(alice: Turn) -> None:
    await Memory().change(alice, "memory", note("one"))
    await Memory().change(alice, "memory", note("two"))
    folder = folder_of(alice)
    assert folder
    assert (folder / "MEMORY.md").read_bytes() == "one\n§\ntwo\n".encode()
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert sorted(path.name for path in folder.iterdir()) == [".lock", "MEMORY.md"]


def test_a_change_by_a_person_is_seen_at_once(alice: Turn) -> None:
    memory = Memory()
    path = written(alice, "\ufeffone\r\n§\r\ntwo")
    assert memory.read(alice).memory == "one\n§\ntwo"
    path.write_text("six\n§\nten")
    assert memory.read(alice).memory == "six\n§\nten"
    path.write_text("ten\n§\nsix")
    assert memory.read(alice).memory == "ten\n§\nsix"
    path.unlink()
    assert memory.read(alice).memory == ""


def test_an_unchanged_file_is_not_read_again(alice: Turn) -> None:
    memory = Memory()
    path = written(alice, "one")
    assert memory.read(alice).memory == "one"
    path.write_text("two")
    os.utime(path, (1_000_000, 1_000_000))
    assert memory.read(alice).memory == "one"


def test_a_change_within_the_resolution_of_the_clock_is_seen(alice: Turn) -> None:
    now = time.time()
    for text in ("one", "two"):
        path = written(alice, text)
        os.utime(path, (now, now))
        assert Memory().read(alice).memory == text


def test_a_file_that_is_too_long_is_shown_up_to_the_limit(alice: Turn) -> None:
    written(alice, "one\n§\ntwo\n§\nthree")
    assert (
        Memory(NoteLimits(memory=8)).read(alice).memory.startswith("one\n§\n[The rest of MEMORY.md")
    )


async def test_a_change_is_made_completely_or_not_at_all(alice: Turn) -> None:
    memory = Memory()
    await memory.change(alice, "memory", note("one"))
    with pytest.raises(ToolFailed, match="No entry contains 'three'"):
        await memory.change(
            alice, "memory", [*note("two"), EntryEdit(action="remove", old="three")]
        )
    assert memory.read(alice).memory == "one"


async def test_a_repeated_change_does_not_write_the_file(alice: Turn) -> None:
    memory = Memory()
    path = written(alice, "one\r\n§\r\ntwo")
    await memory.change(alice, "memory", note("one"))
    assert path.read_bytes() == "one\r\n§\r\ntwo".encode()


async def test_the_error_for_a_full_file_has_its_size_and_its_entries(alice: Turn) -> None:
    memory = Memory(NoteLimits(memory=12))
    await memory.change(alice, "memory", note("likes tea"))
    with pytest.raises(ToolFailed) as failure:
        await memory.change(alice, "memory", note("runs"))
    assert "would have 16 characters, and the limit is 12; now it has 9" in str(failure.value)
    assert "The entries:\nlikes tea" in str(failure.value)
    shorter = [EntryEdit(action="replace", old="tea", content="tea"), *note("runs")]
    assert (await memory.change(alice, "memory", shorter)).used == 10


async def test_a_file_that_a_person_made_too_long_can_be_shortened_step_by_step(
    alice: Turn,
) -> None:
    memory = Memory(NoteLimits(memory=5))
    path = written(alice, "first\n§\nsecond\n§\nthird")
    await memory.change(alice, "memory", [EntryEdit(action="remove", old="first")])
    assert path.read_text() == "second\n§\nthird\n"
    with pytest.raises(ToolFailed, match="would have"):
        await memory.change(alice, "memory", note("x"))


async def test_a_shared_chat_stores_no_notes_about_single_people(tmp_path: Path) -> None:
    group = a_turn(home=tmp_path, source=GROUP)
    written(group, "by hand", "USER.md")
    with pytest.raises(ToolFailed, match="This chat is shared"):
        await Memory().change(group, "user", note("Bob is 40"))
    await Memory().change(group, "memory", note("We meet on Mondays"))
    assert Memory().read(group) == Remembered(memory="We meet on Mondays")


async def test_nothing_is_stored_for_an_unknown_person() -> None:
    with pytest.raises(ToolFailed, match="the person is unknown"):
        await Memory().change(a_turn(), "memory", note("x"))


def binary(path: Path) -> None:
    path.write_bytes(b"kept \xff\xfe words")


def zeros(path: Path) -> None:
    path.write_bytes(b"kept \0 words")


def huge(path: Path) -> None:
    path.write_bytes(b"kept words " * LARGEST_NOTES)


def folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize(
    ("spoil", "shown", "why"),
    [
        (binary, "kept  words", "is not text in UTF-8"),
        (zeros, "kept \0 words", "is not text"),
        (huge, "kept words", "is larger than 65536 bytes"),
        (folder, "", "is not a file"),
        (os.mkfifo, "", "is not a file"),
    ],
)
async def test_the_readable_part_of_a_damaged_file_is_read_and_the_file_is_never_overwritten(
    alice: Turn, spoil: Callable[[Path], None], shown: str, why: str
) -> None:
    path = written(alice, "")
    path.unlink()
    spoil(path)
    before = path.stat()
    assert Memory().read(alice).memory.startswith(shown)
    with pytest.raises(ToolFailed, match=why):
        await Memory().change(alice, "memory", note("new"))
    after = path.stat()
    assert (after.st_ino, after.st_size, after.st_mtime_ns) == (
        before.st_ino,
        before.st_size,
        before.st_mtime_ns,
    )


async def test_the_error_for_a_read_only_folder_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "memories").write_text("in the way")
    with pytest.raises(ToolFailed, match=r"MEMORY\.md can't be written: (File|Not)"):
        await Memory().change(a_turn(home=tmp_path), "memory", note("new"))


async def test_the_wait_for_a_lock_has_a_time_limit(
    alice: Turn,
) -> None:
    with FileLock(written(alice, "", ".lock")) as held:
        held.acquire()
        with pytest.raises(ToolFailed, match="Try again"):
            await Memory(patience=0.05).change(alice, "memory", note("new"))
    await Memory().change(alice, "memory", note("new"))


async def test_concurrent_changes_lose_nothing(alice: Turn) -> None:
    memory = Memory()
    async with anyio.create_task_group() as group:
        for number in range(20):
            group.start_soon(memory.change, alice, "memory", note(f"note {number}"))
    assert set(entries_of(memory.read(alice).memory)) == {f"note {n}" for n in range(20)}


@pytest.mark.slow
def test_concurrent_processes_lose_no_change(tmp_path: Path, alice: Turn) -> None:
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    writers = [
        subprocess.Popen(
            [*command, name, "40"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for name in ("ann", "bob", "cem")
    ]
    for writer in writers:
        assert writer.stdout
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate(timeout=60)
        assert writer.returncode == 0
    found = entries_of(Memory(NoteLimits(memory=100_000)).read(alice).memory)
    assert sorted(found) == sorted(f"{who} {n}" for who in ("ann", "bob", "cem") for n in range(40))
