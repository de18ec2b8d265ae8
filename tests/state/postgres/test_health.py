"""The check of a database on PostgreSQL changes nothing."""

from pathlib import Path

from hermes.state.postgres.health import check_postgres
from hermes.state.schema import MIGRATIONS
from hermes.testing.postgres import shared_databases


async def test_a_migrated_database_is_ok(url: str) -> None:
    found = await check_postgres(url)
    assert (found.name, found.level) == ("store", "ok")
    assert found.text.endswith(f", schema {len(MIGRATIONS)}")
    assert "PostgreSQL 1" in found.text


async def test_an_empty_database_is_ok_and_stays_empty() -> None:
    server = shared_databases().server
    server.execute("create database blank")
    try:
        found = await check_postgres(server.url("blank"))
        tables = server.execute("select to_regclass('hermes_schema')", "blank")
    finally:
        server.execute("drop database blank with (force)")
    assert (found.level, "schema 0 (the next start migrates it" in found.text) == ("ok", True)
    assert tables == [(None,)]


async def test_a_newer_schema_is_an_error(tmp_path: Path, url: str) -> None:
    databases = shared_databases()
    name = databases.name_of(tmp_path)
    databases.server.execute("update hermes_schema set version = 1000", name)
    try:
        found = await check_postgres(url)
    finally:
        databases.server.execute(f"update hermes_schema set version = {len(MIGRATIONS)}", name)
    assert (found.level, "schema 1000" in found.text) == ("error", True)


async def test_a_server_that_can_not_be_reached_is_an_error_without_the_password() -> None:
    found = await check_postgres("postgresql://hermes:secret-word@127.0.0.1:9/hermes")
    assert (found.level, "127.0.0.1:9 can't be reached" in found.text) == ("error", True)
    assert "secret-word" not in found.text + found.hint


async def test_an_address_that_can_not_be_read_is_an_error() -> None:
    found = await check_postgres("postgresql://hermes:se cret@@host:x/a b")
    assert (found.level, "store.url can't be read" in found.text) == ("error", True)
