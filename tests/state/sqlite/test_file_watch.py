"""A process notices when its database is removed, replaced or truncated by another program."""

import logging
import os
import sqlite3
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from hermes.state.paths import STORE_NAME
from hermes.state.sqlite import writer
from hermes.state.sqlite.connection import connect
from hermes.state.sqlite.file_watch import FileWatch
from hermes.state.sqlite.files import parts_of, suspicion, wal_of
from hermes.state.sqlite.migration import prepare
from hermes.state.sqlite.store import SQLiteStore, open_store
from hermes.testing.rows import names, put
from hermes.testing.running import until
from hermes.types.errors import StoreUnavailable
from hermes.types.store import Work


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SQLiteStore]:
    async with open_store(tmp_path / STORE_NAME) as store:
        for number in range(199):
            await store.run(put, f"{number:03}")
        # The checkpoint moves these rows from the WAL to the database file. Only the next row is in
        # the WAL.
        with closing(connect(store.path)) as connection:
            connection.execute("pragma wal_checkpoint")
        await store.run(put, "199")
        yield store


def remove_database(path: Path) -> None:
    path.unlink()


def remove_wal(path: Path) -> None:
    wal_of(path).unlink()


def remove_everything(path: Path) -> None:
    for one in (path, *parts_of(path)):
        one.unlink()


def replace_by_a_copy(path: Path) -> None:
    copy = path.with_name("copy")
    copy.write_bytes(path.read_bytes())
    copy.replace(path)


def replace_by_a_new_database(path: Path) -> None:
    remove_everything(path)
    prepare(path).close()


def empty_the_database(path: Path) -> None:
    os.truncate(path, 0)


def cut_the_database(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def empty_the_wal(path: Path) -> None:
    os.truncate(wal_of(path), 0)


def cut_the_wal(path: Path) -> None:
    os.truncate(wal_of(path), 1000)


ACCIDENTS = [
    remove_database,
    remove_wal,
    remove_everything,
    replace_by_a_copy,
    replace_by_a_new_database,
    empty_the_database,
    cut_the_database,
    empty_the_wal,
    cut_the_wal,
]


@pytest.mark.parametrize("accident", ACCIDENTS, ids=lambda accident: accident.__name__)
async def test_nothing_is_acknowledged_or_read_after_the_files_were_changed(
    store: SQLiteStore, accident: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    assert len(await store.read(names)) == 200
    accident(store.path)
    for number in range(5):
        with pytest.raises(StoreUnavailable):
            await store.run(put, f"lost{number}")
        with pytest.raises(StoreUnavailable):
            await store.read(names)
    assert store.trouble is not None
    assert "another program" in store.trouble
    told = [one for one in caplog.records if one.levelno == logging.CRITICAL]
    assert len(told) == 1


async def test_the_wal_of_an_emptied_database_is_not_deleted(store: SQLiteStore) -> None:
    empty_the_database(store.path)
    with pytest.raises(StoreUnavailable, match="truncated"):
        await store.run(put, "lost")
    assert wal_of(store.path).stat().st_size > 0


def test_a_growing_file_is_not_mistaken_for_a_truncated_file(tmp_path: Path) -> None:
    path = tmp_path / STORE_NAME
    # The files are not a valid database. If the watch took the growing file for a truncated file,
    # the watch would read the file as a database, and the test would fail.
    path.write_bytes(b"no database")
    wal_of(path).write_bytes(b"")
    watch, over = FileWatch(path), threading.Event()

    def grow() -> None:
        with wal_of(path).open("ab", buffering=0) as wal:
            while not over.is_set():
                wal.write(b"x")

    def check() -> None:
        for _ in range(3000):
            watch.check()

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor() as pool:
            growing = pool.submit(grow)
            checks = [pool.submit(check) for _ in range(3)]
            try:
                for one in checks:
                    one.result()
            finally:
                over.set()
            growing.result()
    finally:
        sys.setswitchinterval(before)


async def test_a_change_of_the_files_is_noticed_while_nothing_is_stored(
    store: SQLiteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "WATCH_SECONDS", 0.05)
    assert store.trouble is None
    store.path.unlink()
    await until(lambda: store.trouble)


async def test_a_commit_into_a_removed_file_is_not_acknowledged(store: SQLiteStore) -> None:
    """The file is removed while the transaction runs, so the check before the transaction still
    found the file."""

    def remove() -> Work[None]:
        yield from put("lost")
        store.path.unlink()

    with pytest.raises(StoreUnavailable, match="removed or replaced"):
        await store.run(remove)


async def test_a_file_that_is_moved_back_is_used_again(
    store: SQLiteStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(writer, "WATCH_SECONDS", 0.05)
    elsewhere = store.path.with_name("elsewhere")
    store.path.rename(elsewhere)
    # An empty file now has the name of the database. A reader must not open this file.
    store.path.write_bytes(b"")
    await until(lambda: store.trouble)
    with pytest.raises(StoreUnavailable):
        await store.read(names)
    elsewhere.replace(store.path)
    await until(lambda: store.trouble is None)
    await store.run(put, "after")
    assert "after" in await store.read(names)
    assert "are back" in caplog.text


async def test_a_missing_file_is_never_created_again(store: SQLiteStore) -> None:
    remove_everything(store.path)
    with pytest.raises(StoreUnavailable):
        await store.read(names)
    with pytest.raises(StoreUnavailable):
        connect(store.path)
    assert list(store.path.parent.iterdir()) == []


@pytest.mark.parametrize("statement", ["vacuum", "pragma wal_checkpoint(truncate)"])
async def test_vacuum_and_checkpoints_of_an_operator_are_accepted(
    store: SQLiteStore, statement: str
) -> None:
    def make_room() -> Work[None]:
        yield "delete from leases where name > '010'", ()

    await store.run(make_room)
    with closing(sqlite3.connect(store.path)) as operator:
        before = store.path.stat().st_size, wal_of(store.path).stat().st_size
        operator.execute(statement)
        operator.execute("pragma wal_checkpoint(truncate)")
        assert (store.path.stat().st_size, wal_of(store.path).stat().st_size) != before
    await store.run(put, "after")
    assert "after" in await store.read(names)
    assert store.trouble is None
    assert not suspicion(store.path).exists()


def test_a_check_costs_microseconds(tmp_path: Path) -> None:
    path = tmp_path / STORE_NAME
    with closing(prepare(path)):
        watch = FileWatch(path)
        began = time.perf_counter()
        for _ in range(1000):
            watch.check()
        assert (time.perf_counter() - began) / 1000 < 0.0005


def test_a_database_without_its_wal_can_not_be_watched(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable):
        FileWatch(tmp_path / STORE_NAME)
