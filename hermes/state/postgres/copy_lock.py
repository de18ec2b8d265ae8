"""Keeps processes away from a database on PostgreSQL that is the source or the target of a copy."""

from typing import Any

import psycopg

from hermes.types.errors import StoreUnavailable
from hermes.types.store_copy import CopyRefused

_CLASS, _OBJECT = 0x48524D53, 2
_LOCK = _CLASS << 32 | _OBJECT
"""The advisory lock that a copy holds on both databases."""
TABLE_LOCK_SECONDS = 5
"""How long a copy waits for transactions that are running."""


async def take_copy_lock(connection: psycopg.AsyncConnection[Any], place: str) -> None:
    """Locks the database until the connection ends. CopyRefused if another copy uses it."""
    found = await connection.execute("select pg_try_advisory_lock(%s)", (_LOCK,))
    row = await found.fetchone()
    if row is None or not row[0]:
        raise CopyRefused(f"another copy uses {place} at the moment: wait until it is done")


async def require_no_copy(connection: psycopg.AsyncConnection[Any]) -> None:
    """StoreUnavailable while the database is being copied, or is itself an unfinished copy."""
    try:
        busy, unfinished = await _copies(connection)
    except psycopg.Error as error:
        raise StoreUnavailable(f"the database can't be used now ({error})") from error
    if busy:
        raise StoreUnavailable(
            "`hermes store copy` works on the database of store.url: wait until it has finished"
        )
    if unfinished:
        raise StoreUnavailable(
            "the database of store.url is an unfinished copy of another store: finish it with the"
            " same `hermes store copy` command, or drop the database"
        )


async def _copies(connection: psycopg.AsyncConnection[Any]) -> tuple[bool, bool]:
    """Whether a copy uses the database, and whether it is the target of an unfinished one."""
    found = await connection.execute(
        "select exists (select 1 from pg_locks where locktype = 'advisory' and granted"
        " and database = (select oid from pg_database where datname = current_database())"
        " and classid = %s::bigint::oid and objid = %s::bigint::oid and objsubid = 1),"
        " to_regclass('hermes_copy') is not null",
        (_CLASS, _OBJECT),
    )
    row = await found.fetchone()
    assert row is not None
    busy, recorded = row
    if not recorded:
        return busy, False
    found = await connection.execute("select 1 from hermes_copy where finished_at is null")
    return busy, await found.fetchone() is not None
