"""The database of an earlier version is renamed. The database of another program is not changed."""

import hashlib
import itertools
import os
import shutil
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from hermes.state.paths import Home
from hermes.state.schema import APPLICATION_ID, MIGRATIONS
from hermes.state.sqlite.files import suspect, suspicion, wal_of
from hermes.state.sqlite.guard import guarded
from hermes.state.sqlite.migration import prepare, statements
from hermes.state.sqlite.renaming import is_ours
from hermes.state.sqlite.snapshots import snapshots
from hermes.state.sqlite.store import open_store
from hermes.testing.kills import completes
from hermes.testing.rows import names
from hermes.types.errors import StoreUnavailable

EARLIER = 5
"""Number of migrations in the last version that called its database `state.db`."""
SET_ROW = "insert into leases (name, owner, epoch, taken_at) values (?, '', 0, 0)"


def write_former(path: Path, rows: int = 3, *, checkpointed: bool = True) -> None:
    """Creates a database of an earlier version with rows that are only in the WAL, as after a kill.
    If `checkpointed` is false, the schema is also only in the WAL."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("pragma journal_mode = wal")
        for _, script in MIGRATIONS[:EARLIER]:
            for statement in statements(script):
                connection.execute(statement)
        connection.execute(f"pragma user_version = {EARLIER}")
        if checkpointed:
            connection.execute("pragma wal_checkpoint(truncate)")
        for number in range(rows):
            connection.execute(SET_ROW, (f"row{number}",))
        for one in (path, wal_of(path)):
            shutil.copyfile(one, one.with_name(f"{one.name}.kept"))
    for one in (path, wal_of(path)):
        one.with_name(f"{one.name}.kept").replace(one)


def write_foreign(path: Path, journal: str) -> None:
    """Creates a database like that of Hermes Agent."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"pragma journal_mode = {journal}")
        connection.execute("create table schema_version (version integer)")
        connection.execute("create table sessions (id text primary key, title text)")
        connection.execute("create table messages (id integer primary key, content text)")
        connection.execute("insert into sessions values ('s', 'old talk')")
        if journal == "wal":
            for one in (path, wal_of(path)):
                shutil.copyfile(one, one.with_name(f"{one.name}.kept"))
    if journal == "wal":
        for one in (path, wal_of(path)):
            one.with_name(f"{one.name}.kept").replace(one)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(root=tmp_path / "home")
    home.ensure()
    return home


async def found(home: Home) -> list[str]:
    with guarded(home):
        async with open_store(home.store) as store:
            return await store.read(names)


def contents(home: Home) -> dict[str, tuple[str, int]]:
    """Maps the name of every file `state.db*` to the hash of its content and its modification
    time."""
    return {
        path.name: (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns)
        for path in home.root.glob("state.db*")
    }


@pytest.mark.parametrize("checkpointed", [True, False])
async def test_the_database_of_an_earlier_version_is_renamed_with_all_its_commits(
    home: Home, checkpointed: bool
) -> None:
    write_former(home.former_store, checkpointed=checkpointed)
    suspect(home.former_store)
    assert await found(home) == ["row0", "row1", "row2"]
    assert contents(home) == {}
    assert not suspicion(home.store).exists()
    with closing(sqlite3.connect(home.store)) as connection:
        assert connection.execute("pragma application_id").fetchone() == (APPLICATION_ID,)


@pytest.mark.parametrize("journal", ["delete", "wal"])
async def test_no_byte_of_another_program_s_database_is_changed(home: Home, journal: str) -> None:
    write_foreign(home.former_store, journal)
    before = contents(home)
    assert len(before) == (2 if journal == "wal" else 1)
    assert await found(home) == []
    assert await found(home) == []
    assert contents(home) == before
    assert home.store.exists()


@pytest.mark.parametrize("data", [b"", b"no database" * 999, b"SQLite format 3\0" + bytes(4080)])
async def test_a_file_that_is_not_our_database_is_not_renamed(home: Home, data: bytes) -> None:
    home.former_store.write_bytes(data)
    assert await found(home) == []
    assert home.former_store.read_bytes() == data


async def test_a_file_with_the_old_name_is_ignored_if_there_is_a_new_database(home: Home) -> None:
    assert await found(home) == []
    write_former(home.former_store)
    before = contents(home)
    assert await found(home) == []
    assert contents(home) == before


async def test_a_process_of_an_earlier_version_must_be_stopped_first(home: Home) -> None:
    write_former(home.former_store)
    # `guarded` holds the shared lock that a running process of an earlier version would hold.
    with guarded(Home(root=home.root)):
        home.store.unlink(missing_ok=True)
        write_former(home.former_store)
        with pytest.raises(StoreUnavailable, match="hermes gateway stop"), guarded(home):
            pass
    assert await found(home) == ["row0", "row1", "row2"]


async def test_only_snapshots_of_an_earlier_version_are_renamed(home: Home) -> None:
    ours, foreign = home.backups / "state-1700000000000.db", home.backups / "state-mine.db"
    write_former(ours)
    wal_of(ours).unlink()
    write_foreign(foreign, "delete")
    os.utime(ours, (1_700_000_000, 1_700_000_000))
    await found(home)
    assert [path.name for path in snapshots(home)] == ["hermes-1700000000000.db"]
    assert snapshots(home)[0].stat().st_mtime == 1_700_000_000
    assert foreign.exists()


async def test_the_wal_of_a_lost_database_is_not_applied_to_the_renamed_database(
    home: Home,
) -> None:
    with closing(prepare(home.store)) as connection:
        connection.execute(SET_ROW, ("of the lost database",))
        wal = wal_of(home.store).read_bytes()
    home.store.unlink()
    write_former(home.former_store)
    wal_of(home.store).write_bytes(wal)
    assert await found(home) == ["row0", "row1", "row2"]


async def test_a_snapshot_replaces_a_damaged_database_of_an_earlier_version(
    home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    write_former(home.backups / "state-1.db", 1)
    with closing(sqlite3.connect(home.backups / "state-1.db")) as connection:
        connection.execute("pragma journal_mode = delete")
    home.former_store.write_bytes(b"garbage" * 999)
    assert await found(home) == ["row0"]
    assert home.former_store.read_bytes() == b"garbage" * 999
    assert "restored a snapshot" in caplog.text


def start(home: Home) -> None:
    with guarded(home):
        prepare(home.store).close()


@pytest.mark.parametrize("checkpointed", [True, False])
async def test_a_kill_at_any_point_of_the_start_loses_no_data(
    tmp_path: Path, checkpointed: bool
) -> None:
    for kill in itertools.count():
        home = Home(root=tmp_path / f"{kill}")
        home.ensure()
        write_former(home.former_store, checkpointed=checkpointed)
        snapshot = home.backups / "state-1.db"
        write_former(snapshot, 1)
        wal_of(snapshot).unlink()
        ended = completes(partial(start, home), kill)
        assert await found(home) == ["row0", "row1", "row2"]
        assert contents(home) == {}
        assert [path.name for path in snapshots(home)] == ["hermes-1.db"]
        if ended:
            break
    assert kill > 10


def test_a_missing_file_is_not_our_database(home: Home) -> None:
    assert not is_ours(home.former_store, home.run)
