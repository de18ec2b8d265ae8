"""Snapshots are complete, private, taken when they are due, and few."""

import os
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread

from hermes.state import transcript
from hermes.state.paths import Home
from hermes.state.search import search
from hermes.state.sqlite.migration import prepare
from hermes.state.sqlite.snapshots import (
    SNAPSHOTS,
    copy,
    snapshot_due,
    snapshots,
    take_snapshot,
)
from hermes.state.sqlite.store import open_store
from hermes.testing.rows import EVERYBODY, NOW, names, outcomes_of, put, scribe
from hermes.types.messages import UserMessage
from hermes.types.store import Work


def test_the_newest_snapshots_are_kept(tmp_path: Path) -> None:
    home = Home(root=tmp_path)
    home.ensure()
    prepare(home.store).close()
    for _ in range(4):
        newest = take_snapshot(home)
    assert len(snapshots(home)) == SNAPSHOTS
    assert snapshots(home)[0] == newest
    assert newest.stat().st_mode & 0o777 == 0o600


def test_a_snapshot_is_due_when_the_last_is_old_and_something_has_changed(tmp_path: Path) -> None:
    home = Home(root=tmp_path)
    home.ensure()
    with closing(prepare(home.store)):
        assert snapshot_due(home, 300)
        snapshot = take_snapshot(home)
        assert not snapshot_due(home, 300)
        long_ago = snapshot.stat().st_mtime - 1000
        os.utime(snapshot, (long_ago, long_ago))
        assert snapshot_due(home, 300)
        for path in (home.store, home.store.with_name("state.db-wal")):
            os.utime(path, (long_ago - 1, long_ago - 1))
        assert not snapshot_due(home, 300)


async def test_a_backup_taken_while_others_write_is_complete_and_can_be_opened(
    tmp_path: Path,
) -> None:
    def pair(number: int) -> Work[None]:
        yield from put(f"a{number}")
        message = UserMessage(text=f"{number} " + "filler " * 200)
        yield from transcript.append(scribe(f"t{number}"), 0, 0, message, NOW)
        yield from put(f"b{number}")

    async def write() -> None:
        for number in range(100_000):
            await store.run(pair, number)
            await anyio.lowlevel.checkpoint()

    counts = []
    async with open_store(tmp_path / "state.db") as store, anyio.create_task_group() as group:
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
