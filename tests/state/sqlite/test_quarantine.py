"""A missing or damaged database is replaced by a snapshot, even if the start is killed at any
point."""

import itertools
import os
import shutil
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from hermes.state import deliveries, inbox, turns
from hermes.state.paths import Home
from hermes.state.restored import RESTORED
from hermes.state.sqlite import guard
from hermes.state.sqlite.connection import connect
from hermes.state.sqlite.file_watch import FileWatch
from hermes.state.sqlite.files import parts_of, wal_of
from hermes.state.sqlite.guard import guarded
from hermes.state.sqlite.migration import prepare
from hermes.state.sqlite.snapshots import snapshots, take_snapshot
from hermes.state.sqlite.store import open_store
from hermes.testing.kills import completes
from hermes.testing.rows import CHAT, NOW, US, names, put, said, session, turn_row
from hermes.types.identity import TurnId
from hermes.types.messages import Content
from hermes.types.store import Work

OLD_SECONDS = 245


def open_work() -> Work[None]:
    yield from put("in the snapshot")
    yield from inbox.insert("t", said("t"), session(), None, US, "bound")
    yield from turns.insert(turn_row("t"), "main", "7")
    yield from deliveries.owe(CHAT, None, "main", TurnId("t"), NOW)
    yield from deliveries.owe(CHAT, Content(text="ready"), "main", None, NOW)


async def make(root: Path) -> Home:
    """Makes a home with a database and a snapshot. The snapshot contains open work. The database
    has one commit more than the snapshot."""
    home = Home(root=root)
    home.ensure()
    async with open_store(home.store) as store:
        await store.run(open_work)
        snapshot = take_snapshot(home, FileWatch(home.store))
        await store.run(put, "later")
    then = snapshot.stat().st_mtime - OLD_SECONDS
    os.utime(snapshot, (then, then))
    return home


@pytest.fixture
async def home(tmp_path: Path) -> Home:
    return await make(tmp_path / "home")


async def found(home: Home) -> list[str]:
    with guarded(home):
        async with open_store(home.store) as store:
            return await store.read(names)


async def test_a_missing_database_is_restored_and_its_age_is_logged(
    home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    home.store.unlink()
    assert await found(home) == ["in the snapshot"]
    assert "is missing" in caplog.text
    assert "a snapshot that is 4 min old" in caplog.text
    assert "1 turns that were open have failed" in caplog.text
    caplog.clear()
    assert await found(home) == ["in the snapshot"]
    assert caplog.text == ""


async def test_open_turns_fail_and_deliveries_are_marked_as_possible_repeats(home: Home) -> None:
    home.store.unlink()
    with guarded(home):
        async with open_store(home.store) as store:
            turn = await store.read(turns.get, "t")
            owed = await store.read(_deliveries)
    assert turn is not None
    assert (turn.state, turn.code) == ("failed", RESTORED)
    assert "4 min old" in (turn.reason or "")
    # The pairs are (state, doubtful). The first delivery is the notice, which is new. The second
    # delivery was in the snapshot and may already have been sent.
    assert owed == [("ready", 0), ("ready", 1)]


def _deliveries() -> Work[list[tuple[str, int]]]:
    rows = yield "select state, doubtful from deliveries order by seq", ()
    return [(row[0], row[1]) for row in rows]


@pytest.mark.parametrize("share", [0, 1, 100, 0.5, 0.99])
@pytest.mark.parametrize("large", [False, True])
async def test_a_truncated_database_is_restored(
    home: Home, share: float, large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large file is not checked completely at the start. A truncated large file is noticed all
    the same."""
    if large:
        monkeypatch.setattr(guard, "CHECKED_BYTES", 0)
    size = home.store.stat().st_size
    os.truncate(home.store, int(share if share >= 1 else size * share))
    assert await found(home) == ["in the snapshot"]
    (aside,) = home.backups.glob("damaged-*")
    assert (aside / home.store.name).exists()


async def test_the_newest_intact_snapshot_is_used(home: Home) -> None:
    (good,) = snapshots(home)
    data = bytearray(good.read_bytes())
    # This newer snapshot has an index without a row of its table. Only a complete check finds this
    # damage.
    bad = home.backups / "hermes-9999999999999.db"
    bad.write_bytes(data)
    with closing(connect(bad)) as connection:
        connection.execute("pragma writable_schema = on")
        connection.execute(
            "insert into sqlite_master (type, name, tbl_name, rootpage, sql) values"
            " ('index', 'extra', 'leases', (select rootpage from sqlite_master"
            " where name = 'inbox_pending'), 'create index extra on leases (owner)')"
        )
    for part in parts_of(bad):
        part.unlink(missing_ok=True)
    home.store.unlink()
    assert await found(home) == ["in the snapshot"]


async def test_the_wal_of_a_missing_database_is_not_applied_to_the_snapshot(home: Home) -> None:
    with closing(prepare(home.store)) as connection:
        connection.execute("delete from leases")
        wal = wal_of(home.store).read_bytes()
    home.store.unlink()
    wal_of(home.store).write_bytes(wal)
    assert await found(home) == ["in the snapshot"]
    (aside,) = home.backups.glob("damaged-*")
    assert (aside / wal_of(home.store).name).read_bytes() == wal


async def test_a_new_home_starts_with_an_empty_database_and_no_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert await found(Home(root=tmp_path)) == []
    assert caplog.text == ""


def start(home: Home) -> None:
    with guarded(home):
        prepare(home.store).close()


@pytest.mark.parametrize("missing", [True, False])
async def test_after_a_kill_at_any_point_the_next_start_restores_the_snapshot(
    tmp_path: Path, missing: bool
) -> None:
    pattern = await make(tmp_path / "pattern")
    if missing:
        pattern.store.unlink()
    else:
        # The damage is only in the WAL. If the start dropped the WAL and kept the database, commits
        # would be lost unnoticed.
        with closing(prepare(pattern.store)) as connection:
            connection.execute("drop table questions")
            wal, data = wal_of(pattern.store).read_bytes(), pattern.store.read_bytes()
        pattern.store.write_bytes(data)
        wal_of(pattern.store).write_bytes(wal)
    for kill in itertools.count():
        home = Home(root=tmp_path / f"{kill}")
        shutil.copytree(pattern.root, home.root)
        ended = completes(partial(start, home), kill)
        assert await found(home) == ["in the snapshot"], kill
        assert not list(home.root.glob("*.part*"))
        assert not list(home.root.glob("*-restored"))
        with guarded(home):
            async with open_store(home.store) as store:
                assert await store.read(turns.all_open) == []
        if ended:
            break
        shutil.rmtree(home.root)
    assert kill > 10
