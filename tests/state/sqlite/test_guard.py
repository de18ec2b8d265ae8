"""A damaged database is quarantined and replaced by an intact database, without a traceback."""

import logging
import os
import random
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from hermes.state import transcript
from hermes.state.paths import STORE_NAME, Home
from hermes.state.schema import MIGRATIONS
from hermes.state.search import search
from hermes.state.sqlite import guard
from hermes.state.sqlite.connection import connect
from hermes.state.sqlite.file_watch import FileWatch
from hermes.state.sqlite.files import suspect, suspicion, wal_of
from hermes.state.sqlite.guard import damage_of, guarded
from hermes.state.sqlite.migration import outdated, prepare
from hermes.state.sqlite.owner_locks import unclean
from hermes.state.sqlite.snapshots import snapshots, take_snapshot
from hermes.state.sqlite.store import open_store
from hermes.testing.rows import EVERYBODY, NOW, names, put, said_in, writer
from hermes.types.errors import StoreDamaged, StoreUnavailable
from hermes.types.messages import UserMessage
from hermes.types.store import Work

PAGE = 4096
ROWS = 120
DAMAGED_FILES = 16
"""The number of damaged files that are tried for each kind of damage. Set it to 40 for a longer run
with 200 files in total."""

AT_WORK = """
import os, sys
from pathlib import Path
import anyio
from hermes.state.paths import Home
from hermes.state.sqlite.guard import guarded
from hermes.state.sqlite.store import open_store
from hermes.testing.rows import put

async def main():
    home = Home(root=Path(sys.argv[1]))
    with guarded(home):
        async with open_store(home.store, "gateway") as store:
            await store.run(put, f"committed by {os.getpid()}")
            print("at work", flush=True)
            sys.stdin.read()

anyio.run(main)
"""


def row(number: int) -> Work[None]:
    yield from put(f"{number:05}")
    message = UserMessage(text=f"word{number} " + "filler " * 100)
    yield from transcript.append(writer(f"t{number}"), 0, 0, message, NOW)


@pytest.fixture
async def home(tmp_path: Path) -> Home:
    """Returns a home with a database and a snapshot. The snapshot has half of the rows of the
    database."""
    home = Home(root=tmp_path / "home")
    home.ensure()
    async with open_store(home.store) as store:
        for number in range(ROWS // 2):
            await store.run(row, number)
        take_snapshot(home, FileWatch(home.store))
        for number in range(ROWS // 2, ROWS):
            await store.run(row, number)
    return home


def at_work(home: Home) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", AT_WORK, home.root],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    assert process.stdout.readline() == "at work\n"
    return process


def end(process: subprocess.Popen[str]) -> None:
    with process:
        process.kill()


def newer_snapshot(home: Home) -> Path:
    with closing(prepare(home.store)):
        return take_snapshot(home, FileWatch(home.store))


def quarantined(home: Home) -> list[Path]:
    return sorted(home.backups.glob("damaged-*"))


async def use(home: Home) -> list[str]:
    """Opens the store, makes reads and writes of every kind, and closes the store."""
    with guarded(home):
        async with open_store(home.store) as store:
            found = await store.read(names)
            await store.run(row, 90_000 + len(found))
            await store.read(search, "filler", EVERYBODY)
            await store.read(said_in, str(writer("t").session), 0)
    return found


Damage = Callable[[bytearray, random.Random], bytearray]


def flip_structure(data: bytearray, chance: random.Random) -> bytearray:
    for _ in range(chance.randint(1, 6)):
        page = chance.randrange(len(data) // PAGE)
        at = page * PAGE + chance.randrange(110)
        # Byte 18 and bytes 60 to 63 are the versions of the format and the schema. A database with
        # a newer version is refused, not quarantined.
        if at not in (18, 60, 61, 62, 63):
            data[at] ^= 1 << chance.randrange(8)
    return data


def truncate(data: bytearray, chance: random.Random) -> bytearray:
    return data[: chance.choice([0, 1, 99, PAGE, chance.randrange(len(data))])]


def zero_pages(data: bytearray, chance: random.Random) -> bytearray:
    for _ in range(chance.randint(1, 5)):
        page = chance.randrange(len(data) // PAGE)
        data[page * PAGE : (page + 1) * PAGE] = bytes(PAGE)
    return data


def garbage_header(data: bytearray, chance: random.Random) -> bytearray:
    data[:16] = chance.randbytes(16)
    return data


def garbage(data: bytearray, chance: random.Random) -> bytearray:
    return bytearray(chance.randbytes(len(data)))


@pytest.mark.slow
@pytest.mark.parametrize(
    "damage",
    [flip_structure, truncate, zero_pages, garbage_header, garbage],
    ids=lambda damage: damage.__name__,
)
async def test_a_start_finds_or_restores_a_working_database_after_any_damage(
    home: Home, damage: Damage
) -> None:
    sound = home.store.read_bytes()
    chance = random.Random(damage.__name__)
    for _ in range(DAMAGED_FILES):
        for old in quarantined(home):
            shutil.rmtree(old)
        home.store.write_bytes(damage(bytearray(sound), chance))
        damaged = home.store.read_bytes()
        for start in range(4):
            try:
                await use(home)
                break
            except StoreDamaged:
                # The check at the start has not found the damage. The store found it later, and the
                # next start must replace the database.
                assert start < 2
        folders = quarantined(home)
        assert len(folders) <= 1
        if folders:
            kept = (folders[0] / home.store.name).read_bytes()
            assert kept == damaged or len(kept) >= len(damaged)
            assert snapshot_rows(home)
        await use(home)
        assert quarantined(home) == folders
        assert not suspicion(home.store).exists()
        assert damage_of(home.store) is None


def snapshot_rows(home: Home) -> bool:
    with closing(connect(home.store)) as connection:
        found = {name for (name,) in connection.execute("select name from leases")}
    return {f"{number:05}" for number in range(ROWS // 2)} <= found


async def test_a_damaged_database_is_replaced_by_the_newest_intact_snapshot(
    home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    newer_snapshot(home).write_bytes(b"not a database at all" * 300)
    home.store.write_bytes(b"SQLite format 3\0" + bytes(8000))
    found = await use(home)
    assert found == [f"{number:05}" for number in range(ROWS // 2)]
    (aside,) = quarantined(home)
    assert (aside / STORE_NAME).stat().st_size == 8016
    assert str(aside) in caplog.text
    assert "restored a snapshot" in caplog.text
    assert not list(home.root.glob("*.part"))


async def test_without_a_snapshot_a_start_creates_an_empty_database(
    home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    for snapshot in snapshots(home):
        snapshot.unlink()
    home.store.write_bytes(b"garbage" * 999)
    assert await use(home) == []
    assert "starting with an empty database" in caplog.text
    assert len(quarantined(home)) == 1


async def test_a_missing_table_counts_as_damage(home: Home) -> None:
    with closing(connect(home.store)) as connection:
        connection.execute("drop table questions")
    assert "questions" in (damage_of(home.store) or "")
    assert len(await use(home)) == ROWS // 2


async def test_an_emptied_file_is_replaced_by_a_snapshot(home: Home) -> None:
    home.store.write_bytes(b"")
    assert len(await use(home)) == ROWS // 2


@pytest.mark.parametrize("has_snapshot", [True, False])
async def test_the_wal_of_an_emptied_file_is_kept(home: Home, has_snapshot: bool) -> None:
    if not has_snapshot:
        for path in snapshots(home):
            path.unlink()
    os.truncate(home.store, 0)
    wal_of(home.store).write_bytes(b"the last commits")
    with guarded(home):
        pass
    (kept,) = home.backups.glob("damaged-*/*-wal")
    assert kept.read_bytes() == b"the last commits"


async def test_nothing_is_quarantined_while_another_process_lives(home: Home) -> None:
    process = at_work(home)
    try:
        before = home.store.read_bytes()
        home.store.write_bytes(b"garbage" * 999)
        with pytest.raises(
            StoreUnavailable, match=r"another hermes process .* stop that process first"
        ):
            await use(home)
        assert quarantined(home) == []
        home.store.write_bytes(before)
    finally:
        end(process)


async def test_the_schema_is_not_upgraded_while_a_process_of_an_earlier_version_runs(
    home: Home,
) -> None:
    process = at_work(home)
    try:
        with closing(sqlite3.connect(home.store)) as connection:
            # The database now has the schema version of an earlier release, so the running process
            # looks like a process of this release.
            connection.execute(f"pragma user_version = {len(MIGRATIONS) - 1}")
        with pytest.raises(StoreUnavailable, match="hermes gateway stop"), guarded(home):
            pass
    finally:
        end(process)
    with guarded(home):
        assert outdated(home.store)


async def test_a_snapshot_that_does_not_fit_on_the_disk_is_reported_and_restored_by_the_next_start(
    home: Home,
) -> None:
    home.store.write_bytes(b"garbage" * 999)
    shutil.rmtree(home.root / "hermes.part", ignore_errors=True)
    (home.root / "hermes.part").mkdir()
    with pytest.raises(StoreUnavailable, match="no snapshot can replace the database"):
        await use(home)
    assert home.store.exists()
    (home.root / "hermes.part").rmdir()
    assert len(await use(home)) == ROWS // 2


async def test_a_killed_process_causes_neither_damage_nor_a_warning(
    home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    for count in (2, 4):
        for _ in range(2):
            end(at_work(home))
        assert unclean(home.run)
        found = await use(home)
        assert len([name for name in found if name.startswith("committed")]) == count
        assert unclean(home.run) == []
    assert caplog.text == ""
    assert quarantined(home) == []


async def test_a_wal_that_vanished_after_a_kill_is_reported_once(
    home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    end(at_work(home))
    home.store.with_name(f"{STORE_NAME}-wal").unlink()
    await use(home)
    assert f"{STORE_NAME}-wal is missing" in caplog.text
    caplog.clear()
    await use(home)
    assert caplog.text == ""


async def test_a_suspected_file_is_checked_and_its_full_text_index_rebuilt(home: Home) -> None:
    with closing(connect(home.store)) as connection:
        connection.execute("update messages_fts_data set block = x'00ff00ff' where id > 10")
    with guarded(home):
        async with open_store(home.store) as store:
            with pytest.raises(StoreDamaged):
                await store.read(search, "filler", EVERYBODY, limit=999)
    assert suspicion(home.store).exists()
    await use(home)
    async with open_store(home.store) as store:
        found = await store.read(search, "filler", EVERYBODY, limit=999)
    assert len(found) == ROWS + 1
    assert not suspicion(home.store).exists()
    assert quarantined(home) == []


async def test_a_suspected_file_is_read_completely_even_if_it_is_large(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = bytearray(home.store.read_bytes())
    for page in range(len(data) // PAGE - 3, len(data) // PAGE):
        data[page * PAGE : page * PAGE + 8] = b"\xff" * 8
    home.store.write_bytes(data)
    monkeypatch.setattr(guard, "CHECKED_BYTES", PAGE)
    assert damage_of(home.store) is None
    suspect(home.store)
    assert damage_of(home.store) is not None
    assert len(await use(home)) == ROWS // 2


async def test_the_last_process_to_exit_removes_the_locks_of_killed_processes(
    home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    """The last process checkpoints the WAL and removes the locks. So the next start does not take
    the missing WAL for a loss of data."""
    with guarded(home):
        async with open_store(home.store):
            end(at_work(home))
            assert len(unclean(home.run)) == 1
    assert unclean(home.run) == []
    assert len(await use(home)) == ROWS + 1
    assert caplog.text == ""
