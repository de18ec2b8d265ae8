"""Connections are durable and private, and SQLite's errors become our errors."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from hermes.state.paths import STORE_NAME
from hermes.state.sqlite.connection import translated
from hermes.state.sqlite.migration import prepare
from hermes.state.sqlite.store import open_store
from hermes.types.errors import StoreDamaged, StoreUnavailable, TransactionConflict
from hermes.types.store import Work


async def test_the_wal_is_flushed_at_each_commit_and_a_reader_can_not_write(tmp_path: Path) -> None:
    def pragma(name: str) -> Work[object]:
        rows = yield f"pragma {name}", ()
        return rows[0][0]

    async with open_store(tmp_path / STORE_NAME) as store:
        assert await store.run(pragma, "journal_mode") == "wal"
        assert await store.run(pragma, "synchronous") == 2
        assert await store.read(pragma, "query_only") == 1


async def test_the_error_for_a_file_that_can_not_be_opened_contains_the_reason(
    tmp_path: Path,
) -> None:
    (tmp_path / STORE_NAME).mkdir()
    with pytest.raises(StoreUnavailable, match="can't be used"):
        async with open_store(tmp_path / STORE_NAME):
            pass


@pytest.mark.parametrize(
    ("code", "ours"),
    [
        (sqlite3.SQLITE_BUSY, TransactionConflict),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, TransactionConflict),
        (sqlite3.SQLITE_FULL, StoreUnavailable),
        (sqlite3.SQLITE_IOERR_FSYNC, StoreUnavailable),
        (sqlite3.SQLITE_CORRUPT_INDEX, StoreDamaged),
        (sqlite3.SQLITE_NOTADB, StoreDamaged),
    ],
)
def test_an_error_of_the_disk_the_lock_or_the_file_becomes_our_error(
    code: int, ours: type[StoreUnavailable]
) -> None:
    error = sqlite3.OperationalError("what SQLite says")
    error.sqlite_errorcode = code
    with pytest.raises(StoreUnavailable, match="what SQLite says") as raised, translated():
        raise error
    assert type(raised.value) is ours


def test_an_error_of_the_statement_is_not_changed(tmp_path: Path) -> None:
    with (
        closing(prepare(tmp_path / STORE_NAME)) as connection,
        pytest.raises(sqlite3.OperationalError, match="no such table"),
        translated(),
    ):
        connection.execute("select 1 from missing")
