"""The store that tests open: SQLite in their folder, or a database on PostgreSQL."""

import sqlite3
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, closing, contextmanager
from pathlib import Path

import psycopg

from hermes.state.paths import STORE_NAME
from hermes.state.postgres.store import open_postgres
from hermes.state.sqlite.store import open_store
from hermes.testing.postgres import TestDatabases, shared_databases
from hermes.types.store import OwnerKind, Row, Store

_current: list[TestDatabases] = []
"""The databases that tests use at the moment; none while they use SQLite."""


@contextmanager
def stores_on_postgres() -> Iterator[None]:
    """Every store that the test kit opens while the block lasts is on PostgreSQL."""
    databases = shared_databases()
    _current.append(databases)
    try:
        yield
    finally:
        _current.pop()
        databases.clear()


def store_url(folder: Path) -> str:
    """The value of `store.url` for a home; empty for SQLite."""
    return _current[-1].url_of(folder) if _current else ""


def open_test_store(
    folder: Path, kind: OwnerKind | None = None
) -> AbstractAsyncContextManager[Store]:
    """The store of a home, as the gateways of the test have it."""
    url = store_url(folder)
    return open_postgres(url, kind) if url else open_store(folder / STORE_NAME, kind)


def stored_rows(folder: Path, sql: str) -> list[Row]:
    """What a gateway in another task or process has committed."""
    url = store_url(folder)
    if url:
        with psycopg.connect(url) as connection:
            return connection.execute(sql.encode()).fetchall()
    with closing(sqlite3.connect(folder / STORE_NAME)) as database:
        return database.execute(sql).fetchall()
