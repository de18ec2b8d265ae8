"""Migrations on PostgreSQL run once, under a lock, and never backwards."""

from pathlib import Path

import anyio
import pytest

from hermes.state.postgres.store import open_postgres
from hermes.state.schema import MIGRATIONS
from hermes.testing.postgres import shared_databases
from hermes.testing.rows import names, put
from hermes.types.errors import ConfigError, StoreUnavailable


async def test_processes_that_start_at_once_migrate_once() -> None:
    server = shared_databases().server
    server.execute("create database together")
    try:
        async with anyio.create_task_group() as group:
            for number in range(5):
                group.start_soon(_opened, server.url("together"), f"p{number}")
        assert server.execute("select version from hermes_schema", "together") == [
            (len(MIGRATIONS),)
        ]
    finally:
        server.execute("drop database together with (force)")


async def _opened(url: str, name: str) -> None:
    async with open_postgres(url) as store:
        await store.run(put, name)
        assert name in await store.read(names)


async def test_a_database_of_a_newer_version_is_not_changed(tmp_path: Path, url: str) -> None:
    databases = shared_databases()
    name = databases.name_of(tmp_path)
    databases.server.execute("update hermes_schema set version = 1000", name)
    try:
        with pytest.raises(StoreUnavailable, match="newer version"):
            async with open_postgres(url):
                pass
    finally:
        databases.server.execute(f"update hermes_schema set version = {len(MIGRATIONS)}", name)


async def test_the_error_for_a_user_without_rights_says_what_to_do() -> None:
    server = shared_databases().server
    server.execute("create database foreign_one")
    server.execute("create role guest login")
    try:
        url = server.url("foreign_one").replace("postgres@", "guest@")
        with pytest.raises(ConfigError, match="owner to"):
            async with open_postgres(url):
                pass
    finally:
        server.execute("drop database foreign_one with (force)")
        server.execute("drop role guest")
