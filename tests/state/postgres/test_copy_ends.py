"""A PostgreSQL database can be the source or the target of a copy."""

from pathlib import Path

import psycopg
import pytest

from hermes.state.postgres.copy_ends import postgres_source, postgres_target
from hermes.state.postgres.store import open_postgres
from hermes.state.sqlite.copy_ends import sqlite_target
from hermes.testing.postgres import shared_databases
from hermes.testing.rows import names, put
from hermes.types.errors import StoreUnavailable
from hermes.types.store_copy import CopyRefused


async def test_both_databases_have_the_same_tables_columns_and_keys(
    url: str, tmp_path: Path
) -> None:
    async with postgres_source(url, "") as one, sqlite_target(tmp_path / "a.db", "b") as other:
        shapes = await one.store.read(one.shapes)
        assert shapes == await other.store.read(other.shapes)
    table = next(shape for shape in shapes if shape.name == "run_events")
    assert table.key == ("turn", "first_seq")
    assert dict(table.columns)["body"] == "bytes"
    # The column of the full-text index is computed, so it is not copied.
    messages = next(shape for shape in shapes if shape.name == "messages")
    assert "words" not in dict(messages.columns)


async def test_a_database_can_not_be_copied_to_itself(url: str) -> None:
    async with postgres_source(url, "") as source:
        with pytest.raises(CopyRefused, match="is the source of the copy"):
            async with postgres_target(url, source.place):
                pass


async def test_tables_of_other_programs_in_the_source_are_not_copied(url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("create table customers (id uuid)")
    try:
        async with postgres_source(url, "") as source:
            shapes = await source.store.read(source.shapes)
            assert "customers" not in {shape.name for shape in shapes}
    finally:
        with psycopg.connect(url) as connection:
            connection.execute("drop table customers")


async def test_a_process_that_has_the_store_open_can_t_write_while_it_is_copied(url: str) -> None:
    async with open_postgres(url) as store, postgres_source(url, "") as source:
        with psycopg.connect(url) as other:
            other.execute("set lock_timeout = 100")
            with pytest.raises(psycopg.errors.LockNotAvailable):
                other.execute("delete from owners")
        assert await store.read(names) == []
        await source.confirm()


async def test_a_lost_lock_on_the_source_is_noticed(url: str) -> None:
    async with postgres_source(url, "") as source:
        with psycopg.connect(url, autocommit=True) as other:
            other.execute(
                "select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory'"
            )
        with pytest.raises(StoreUnavailable, match="run the command again"):
            await source.confirm()


async def test_a_target_with_data_is_refused(url: str) -> None:
    async with open_postgres(url) as store:
        await store.run(put, "a")
    with pytest.raises(CopyRefused, match=r"holds data already \(the table 'leases'\)"):
        async with postgres_target(url, "elsewhere"):
            pass


async def test_a_database_of_another_program_is_refused_and_not_changed() -> None:
    server = shared_databases().server
    server.execute("create database customers")
    url = server.url("customers")
    try:
        server.execute("create table customers (id bigint)", "customers")
        with pytest.raises(CopyRefused, match=r"another program \(the table 'customers'\)"):
            async with postgres_target(url, "elsewhere"):
                pass
        found = "select tablename::text from pg_tables where schemaname = 'public'"
        assert server.execute(found, "customers") == [("customers",)]
    finally:
        server.execute("drop database customers")
