"""Keeps processes away from a PostgreSQL database that is the source or the target of a copy."""

from typing import Any

import psycopg

from hermes.types.errors import StoreUnavailable
from hermes.types.store_copy import CopyRefused

_CLASS, _OBJECT = 0x48524D53, 2
_LOCK = _CLASS << 32 | _OBJECT
"""The key of the advisory lock that a copy holds on its source and on its target."""
COPY_LOCK_SECONDS = 3
"""Maximum time in seconds that a copy waits for a lock. If a process that held the lock has ended,
the server may need some time to notice this and to free the lock."""


async def take_copy_lock(connection: psycopg.AsyncConnection[Any], place: str) -> None:
    """Locks the database until the connection ends. Raises CopyRefused if another
    `hermes store copy` uses the database.

    After this call, the connection waits at most `COPY_LOCK_SECONDS` for any lock.
    """
    await connection.execute(f"set lock_timeout = {COPY_LOCK_SECONDS * 1000}".encode())
    try:
        await connection.execute("select pg_advisory_lock(%s)", (_LOCK,))
    except psycopg.errors.LockNotAvailable as error:
        raise CopyRefused(
            f"another copy uses {place} at the moment: wait until it is done"
        ) from error


async def require_no_copy(connection: psycopg.AsyncConnection[Any]) -> None:
    """Raises StoreUnavailable if a running `hermes store copy` uses the database, or if the
    database is an unfinished copy of another store."""
    try:
        found = await connection.execute(
            "select 1 from pg_locks where locktype = 'advisory' and granted"
            " and database = (select oid from pg_database where datname = current_database())"
            " and classid = %s::bigint::oid and objid = %s::bigint::oid and objsubid = 1",
            (_CLASS, _OBJECT),
        )
        if await found.fetchone():
            raise StoreUnavailable(
                "`hermes store copy` is using the database of store.url: wait until the command has"
                " finished"
            )
        await require_complete(connection)
    except psycopg.Error as error:
        raise StoreUnavailable(f"the database can't be used now ({error})") from error


async def require_complete(connection: psycopg.AsyncConnection[Any]) -> None:
    """Raises StoreUnavailable if the database is the target of a copy that was interrupted."""
    found = await connection.execute("select to_regclass('hermes_copy') is not null")
    if await found.fetchone() != (True,):
        return
    found = await connection.execute("select 1 from hermes_copy where finished_at is null")
    if await found.fetchone():
        raise StoreUnavailable(
            "the database of store.url is an unfinished copy of another store: finish it with the"
            " same `hermes store copy` command, or drop the database"
        )
