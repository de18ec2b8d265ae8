"""Snapshots are complete, private and few, and are taken when they are due."""

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import anyio
import anyio.to_thread
import pytest

from hermes.state import transcript
from hermes.state.locks import FileLock
from hermes.state.paths import STORE_NAME, Home
from hermes.state.search import search
from hermes.state.sqlite.file_watch import FileWatch
from hermes.state.sqlite.files import parts_of, wal_of
from hermes.state.sqlite.migration import prepare
from hermes.state.sqlite.snapshots import (
    SNAPSHOTS,
    copy,
    snapshot_due,
    snapshots,
    take_due_snapshot,
    take_snapshot,
)
from hermes.state.sqlite.store import open_store
from hermes.testing.rows import EVERYBODY, NOW, names, outcomes_of, put, writer
from hermes.types.errors import StoreUnavailable
from hermes.types.messages import UserMessage
from hermes.types.store import Work


def test_the_newest_snapshots_are_kept(tmp_path: Path) -> None:
    home = Home(root=tmp_path)
    home.ensure()
    with closing(prepare(home.store)):
        watch = FileWatch(home.store)
        for _ in range(4):
            newest = take_snapshot(home, watch)
    assert len(snapshots(home)) == SNAPSHOTS
    assert snapshots(home)[0] == newest
    assert newest.stat().st_mode & 0o777 == 0o600


def test_a_snapshot_is_due_when_the_last_snapshot_is_old_and_data_has_changed(
    tmp_path: Path,
) -> None:
    home = Home(root=tmp_path)
    home.ensure()
    with closing(prepare(home.store)):
        assert snapshot_due(home, 300)
        snapshot = take_snapshot(home, FileWatch(home.store))
        assert not snapshot_due(home, 300)
        long_ago = snapshot.stat().st_mtime - 1000
        os.utime(snapshot, (long_ago, long_ago))
        assert snapshot_due(home, 300)
        for path in (home.store, home.store.with_name(f"{STORE_NAME}-wal")):
            os.utime(path, (long_ago - 1, long_ago - 1))
        assert not snapshot_due(home, 300)


async def test_a_backup_taken_while_others_write_is_complete_and_can_be_opened(
    tmp_path: Path,
) -> None:
    def pair(number: int) -> Work[None]:
        yield from put(f"a{number}")
        message = UserMessage(text=f"{number} " + "filler " * 200)
        yield from transcript.append(writer(f"t{number}"), 0, 0, message, NOW)
        yield from put(f"b{number}")

    async def write() -> None:
        for number in range(100_000):
            await store.run(pair, number)
            await anyio.lowlevel.checkpoint()

    counts = []
    async with open_store(tmp_path / STORE_NAME) as store, anyio.create_task_group() as group:
        await outcomes_of(store, [partial(pair, -number) for number in range(1, 1500)])
        group.start_soon(write)
        for number in range(3):
            target = tmp_path / f"copy{number}.db"
            await anyio.to_thread.run_sync(copy, store.path, target)
            with closing(sqlite3.connect(target)) as copied:
                assert copied.execute("pragma integrity_check").fetchall() == [("ok",)]
            async with open_store(target) as restored:
                found = await restored.read(names)
                words = await restored.read(search, "filler", EVERYBODY, limit=99999)
            assert {name[1:] for name in found if name[0] == "a"} == {
                name[1:] for name in found if name[0] == "b"
            }
            assert len(found) == 2 * len(words)
            counts.append(len(found))
        group.cancel_scope.cancel()
    assert counts == sorted(counts)
    assert counts[0] >= 2998
    assert not list(tmp_path.glob("*.part*"))


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """A home with an open database."""
    home = Home(root=tmp_path)
    home.ensure()
    with closing(prepare(home.store)):
        yield home


def test_without_a_database_no_snapshot_is_due(tmp_path: Path) -> None:
    assert not snapshot_due(Home(root=tmp_path), 300)


@pytest.mark.parametrize("replaced", [False, True])
def test_no_snapshot_of_another_database_is_taken_or_deleted(home: Home, replaced: bool) -> None:
    watch = FileWatch(home.store)
    kept = [take_snapshot(home, watch) for _ in range(SNAPSHOTS)]
    for path in (home.store, *parts_of(home.store)):
        path.unlink()
    if replaced:
        prepare(home.store).close()
    before = set(home.root.rglob("*"))
    for _ in range(4):
        with pytest.raises(StoreUnavailable, match="another program"):
            take_snapshot(home, watch)
    assert set(snapshots(home)) == set(kept)
    assert set(home.root.rglob("*")) == before


def test_a_copy_never_creates_a_database(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable):
        copy(tmp_path / STORE_NAME, tmp_path / "copy")
    assert not (tmp_path / STORE_NAME).exists()


@pytest.mark.parametrize(("copies", "kept"), [(100, 3), (3.5, 3), (2.5, 2), (1.5, 1)])
def test_snapshots_use_at_most_a_tenth_of_the_free_disk(
    home: Home, monkeypatch: pytest.MonkeyPatch, copies: float, kept: int
) -> None:
    """`copies` is the number of copies of the database that fit into a tenth of the free disk."""
    limit_disk(home, monkeypatch, copies)
    watch = FileWatch(home.store)
    for _ in range(5):
        take_snapshot(home, watch)
    assert len(snapshots(home)) == kept


def test_without_room_no_snapshot_is_taken_and_old_snapshots_are_kept(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = FileWatch(home.store)
    old = take_snapshot(home, watch)
    limit_disk(home, monkeypatch, 0.5)
    with pytest.raises(StoreUnavailable, match="a tenth of the free disk"):
        take_snapshot(home, watch)
    assert snapshots(home) == [old]


def limit_disk(home: Home, monkeypatch: pytest.MonkeyPatch, copies: float) -> None:
    """Sets the free space that the disk reports. A tenth of this space has room for `copies` copies
    of the database."""
    size = home.store.stat().st_size + wal_of(home.store).stat().st_size

    def disk_usage(folder: Path) -> SimpleNamespace:
        used = sum(path.stat().st_size for path in snapshots(home))
        return SimpleNamespace(free=int(copies * size * 10) - used)

    monkeypatch.setattr(shutil, "disk_usage", disk_usage)


def test_copies_of_a_process_that_was_killed_are_removed(tmp_path: Path) -> None:
    home = Home(root=tmp_path)
    home.ensure()
    left = [home.backups / f"hermes-1.part{end}" for end in ("", "-journal")]
    for path in left:
        path.write_bytes(b"half a snapshot")
    with closing(prepare(home.store)):
        take_due_snapshot(home, FileWatch(home.store), 300)
    assert [path.suffix for path in home.backups.iterdir()] == [".db"]


def test_two_processes_do_not_take_a_snapshot_at_the_same_time(tmp_path: Path) -> None:
    home = Home(root=tmp_path)
    home.ensure()
    other = home.backups / "hermes-1.part"
    other.write_bytes(b"of another process")
    with closing(prepare(home.store)):
        watch = FileWatch(home.store)
        with FileLock(home.run / "snapshot.lock") as lock:
            lock.acquire()
            take_due_snapshot(home, watch, 300)
        assert other.exists()
        assert not snapshots(home)
        take_due_snapshot(home, watch, 300)
        take_due_snapshot(home, watch, 300)
    assert len(snapshots(home)) == 1
