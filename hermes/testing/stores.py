"""Opens the store of a test: SQLite in the test's folder, or a database on PostgreSQL."""

import sqlite3
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, closing, contextmanager
from pathlib import Path

import psycopg

from hermes.settings.sections import StoreSettings
from hermes.state.paths import STORE_NAME
from hermes.state.postgres.store import open_postgres
from hermes.state.sqlite.store import open_store
from hermes.testing.postgres import TestDatabases, shared_databases
from hermes.types.store import OwnerKind, Row, Store

_current: list[TestDatabases] = []
"""The PostgreSQL databases for the running test: the last item is in use. The list is empty while
tests use SQLite."""
_addresses: dict[Path, StoreSettings] = {}
"""Maps the home of a gateway to the gateway's store settings, if `store_reached_by` has set
them."""


@contextmanager
def stores_on_postgres() -> Iterator[None]:
    """Inside the block, the test kit opens every store on PostgreSQL."""
    databases = shared_databases()
    _current.append(databases)
    try:
        yield
    finally:
        _current.pop()
        databases.clear()


@contextmanager
def store_reached_by(
    folder: Path, url: str, direct_url: str = "", shared_folder: str = ""
) -> Iterator[None]:
    """Inside the block, a gateway with the home `folder` connects to its database at these
    addresses, and keeps its files in `shared_folder`."""
    _addresses[folder] = StoreSettings(url=url, direct_url=direct_url, shared_folder=shared_folder)
    try:
        yield
    finally:
        del _addresses[folder]


def store_url(folder: Path) -> str:
    """Returns the address of the PostgreSQL database for the home `folder`; empty if the test uses
    SQLite."""
    return _current[-1].url_of(folder) if _current else ""


def store_settings(folder: Path) -> StoreSettings:
    """Returns the store settings of a gateway in this home."""
    return _addresses.get(folder) or StoreSettings(url=store_url(folder))


def forget_store(folder: Path) -> None:
    """Releases the database of a home that was deleted, so that another home can get this
    database."""
    if _current:
        _current[-1].release(folder)


def open_test_store(
    folder: Path, kind: OwnerKind | None = None
) -> AbstractAsyncContextManager[Store]:
    """Opens the store that the gateways of this home use in the test."""
    url = store_url(folder)
    return open_postgres(url, kind) if url else open_store(folder / STORE_NAME, kind)


def stored_rows(folder: Path, sql: str) -> list[Row]:
    """Runs the query over a new connection, and returns its rows. The query sees the commits of all
    processes."""
    url = store_url(folder)
    if url:
        with psycopg.connect(url) as connection:
            return connection.execute(sql.encode()).fetchall()
    path = f"file:{folder / STORE_NAME}?mode=ro"
    with closing(sqlite3.connect(path, uri=True, timeout=5.0)) as database:
        return database.execute(sql).fetchall()
