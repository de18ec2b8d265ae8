"""Migrations run once, and a newer schema is refused."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from hermes.state.paths import STORE_NAME
from hermes.state.schema import MIGRATIONS
from hermes.state.sqlite.connection import connect
from hermes.state.sqlite.migration import prepare, statements
from hermes.state.sqlite.store import open_store
from hermes.types.errors import StoreUnavailable


def test_migrations_run_once(tmp_path: Path) -> None:
    with closing(prepare(tmp_path / STORE_NAME)) as connection:
        tables = connection.execute("select name, sql from sqlite_master").fetchall()
        version = connection.execute("pragma user_version").fetchone()[0]
    assert version == len(MIGRATIONS)
    with closing(prepare(tmp_path / STORE_NAME)) as connection:
        assert connection.execute("select name, sql from sqlite_master").fetchall() == tables


def test_every_statement_of_a_script_is_found() -> None:
    assert statements("create table a (b);\ncreate trigger c after insert on a begin\n"
                      " delete from a;\nend;\n") == [
        "create table a (b);",
        "create trigger c after insert on a begin\n delete from a;\nend;",
    ]  # fmt: skip
    with pytest.raises(AssertionError, match="without an end"):
        statements("create table a (b)")


async def test_the_error_for_a_newer_schema_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / STORE_NAME
    prepare(path).close()
    with closing(connect(path)) as connection:
        connection.execute("pragma user_version = 99")
    with pytest.raises(StoreUnavailable, match=r"schema 99.*install the newer version.*backup"):
        async with open_store(path):
            pass
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("pragma user_version").fetchone()[0] == 99
