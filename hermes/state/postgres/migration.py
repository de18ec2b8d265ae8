"""Brings a database on PostgreSQL to the current schema."""

from typing import Any

import psycopg

from hermes.state.postgres.ddl import migrations
from hermes.types.errors import ConfigError, StoreUnavailable

_LOCK = 0x48524D53_00000001
"""The key of the advisory lock that a process holds while it migrates."""


async def migrate(connection: psycopg.AsyncConnection[Any]) -> None:
    """Runs the migrations that are missing, all in one transaction."""
    steps = migrations()
    try:
        if await schema_version(connection) == len(steps):
            return
        async with connection.transaction():
            await connection.execute("select pg_advisory_xact_lock(%s)", (_LOCK,))
            await _migrate(connection, steps)
    except psycopg.errors.InsufficientPrivilege as error:
        raise ConfigError(
            f"the user of store.url is not allowed to create tables ({error}): make this user the"
            " owner of the database, for example with `alter database … owner to …`"
        ) from error
    except psycopg.Error as error:
        raise StoreUnavailable(f"the database can't be migrated now ({error})") from error


async def _migrate(connection: psycopg.AsyncConnection[Any], steps: list[tuple[str, str]]) -> None:
    done = await schema_version(connection)
    if done > len(steps):
        raise StoreUnavailable(
            f"the database was written by a newer version (schema {done}, this version knows only"
            f" {len(steps)}): install the newer version again or restore a backup"
        )
    if done == 0:
        await connection.execute("create table hermes_schema (version bigint not null)")
        await connection.execute("insert into hermes_schema (version) values (0)")
    for _, script in steps[done:]:
        await connection.execute(script.encode())
    await connection.execute("update hermes_schema set version = %s", (len(steps),))


async def schema_version(connection: psycopg.AsyncConnection[Any]) -> int:
    """Returns the number of migrations that have run."""
    found = await connection.execute("select to_regclass('hermes_schema') is not null")
    row = await found.fetchone()
    assert row is not None
    if not row[0]:
        return 0
    found = await connection.execute("select version from hermes_schema")
    row = await found.fetchone()
    return int(row[0]) if row else 0
