"""A database on PostgreSQL as the source or the target of a copy."""

import contextlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
from psycopg import sql

from hermes.state.copy_record import CREATE_RECORD
from hermes.state.postgres.copy_lock import require_complete, take_copy_lock
from hermes.state.postgres.errors import translated_error
from hermes.state.postgres.migration import migrate, schema_version
from hermes.state.postgres.pool import Server
from hermes.state.postgres.presence import held_locks
from hermes.state.postgres.store import connected_store
from hermes.state.schema import MIGRATIONS
from hermes.state.table_shapes import ColumnKind, TableShape, our_tables, quoted
from hermes.types.errors import StoreUnavailable
from hermes.types.store import Store, Work
from hermes.types.store_copy import CopyRefused

_KINDS: dict[str, ColumnKind] = {
    "bigint": "integer",
    "double precision": "real",
    "text": "text",
    "bytea": "bytes",
}
_TABLES = (
    "select c.relname::text from pg_class c where c.relkind in ('r', 'p', 'f')"
    " and c.relnamespace = (select oid from pg_namespace where nspname = current_schema())"
    # Tables that belong to an extension of the server are left out.
    " and not exists (select 1 from pg_depend d where d.classid = 'pg_class'::regclass"
    " and d.objid = c.oid and d.deptype = 'e') order by c.relname collate \"C\""
)
_BOOKKEEPING = ("hermes_schema", "hermes_copy")
"""Tables that describe the database itself, and are not copied."""
_COLUMNS = (
    "select a.attname::text, format_type(a.atttypid, a.atttypmod),"
    " coalesce(array_position(i.indkey::int2[], a.attnum), -1)::bigint"
    " from pg_attribute a left join pg_index i on i.indrelid = a.attrelid and i.indisprimary"
    " where a.attrelid = cast(cast(? as text) as regclass) and a.attnum > 0"
    " and not a.attisdropped and a.attgenerated = ''"
)
_SEQUENCES = (
    "select c.relname::text, a.attname::text,"
    " pg_get_serial_sequence(quote_ident(c.relname), a.attname)"
    " from pg_attribute a join pg_class c on c.oid = a.attrelid where a.attidentity <> ''"
    " and c.relnamespace = (select oid from pg_namespace where nspname = current_schema())"
)


class PostgresCopyEnd:
    """Implements `hermes.state.copying.CopyEnd`."""

    def __init__(self, store: Store, place: str, connection: psycopg.AsyncConnection[Any]) -> None:
        self.store = store
        self.place = place
        self._connection = connection
        """The connection that locks the database during the copy."""

    def shapes(self) -> Work[tuple[TableShape, ...]]:
        found: list[TableShape] = []
        names = yield _TABLES, ()
        for (name,) in names:
            if name not in our_tables():
                continue
            columns = yield _COLUMNS, (quoted(name),)
            placed = sorted((place, column) for column, _, place in columns if place >= 0)
            found.append(
                TableShape(
                    name=name,
                    columns=tuple(sorted((column, _KINDS[kind]) for column, kind, _ in columns)),
                    key=tuple(column for _, column in placed),
                )
            )
        return tuple(found)

    def counters(self) -> Work[dict[str, int]]:
        found: dict[str, int] = {}
        for table, _, sequence in (yield _SEQUENCES, ()):
            rows = yield f"select last_value, is_called from {sequence}", ()  # noqa: S608
            last, called = rows[0]
            found[table] = last if called else 0
        return found

    def settle(self, counters: dict[str, int]) -> Work[None]:
        for table, column, sequence in (yield _SEQUENCES, ()):
            rows = yield f"select max({quoted(column)}) from {quoted(table)}", ()  # noqa: S608
            last = max(rows[0][0] or 0, counters.get(table, 0))
            yield (
                "select setval(cast(cast(? as text) as regclass), cast(? as bigint),"
                " cast(? as bigint) > 0)",
                (sequence, max(last, 1), last),
            )
        for table in (yield from self.shapes()):
            # `analyze` gives the query planner statistics about the new rows.
            yield f"analyze {quoted(table.name)}", ()

    async def confirm(self) -> None:
        try:
            await self._connection.execute("select 1")
        except psycopg.Error as error:
            raise StoreUnavailable(
                f"the connection that locked {self.place} during the copy was lost ({error}):"
                " run the command again"
            ) from error


@asynccontextmanager
async def postgres_source(url: str, direct_url: str) -> AsyncIterator[PostgresCopyEnd]:
    """Yields the store at `url`. No other process can change it until the block ends."""
    server = Server(direct_url or url)
    async with await server.connect(starting=True) as connection:
        with _translated():
            await take_copy_lock(connection, server.place)
            await require_complete(connection)
            await migrate(connection)
        async with connected_store(url, None, direct_url) as store:
            # This check comes before the tables are locked, because the locks would block a running
            # gateway.
            await _require_idle(store, server.place)
            with _translated():
                await _forbid_writing(connection, server.place)
            await _require_idle(store, server.place)
            yield PostgresCopyEnd(store, server.place, connection)


async def _require_idle(store: Store, place: str) -> None:
    if alive := await store.read(_users):
        raise CopyRefused(
            f"{place} is in use by {alive}: stop every gateway (`hermes gateway stop`) and close"
            " every terminal, then copy"
        )


async def _forbid_writing(connection: psycopg.AsyncConnection[Any], place: str) -> None:
    """Prevents other processes from writing to the tables until the connection ends. Other
    processes can still read the tables."""
    names = sql.SQL(", ").join(sql.Identifier(name) for name in sorted(our_tables()))
    await connection.execute("begin")
    await connection.execute("set local idle_in_transaction_session_timeout = 0")
    try:
        await connection.execute(sql.SQL("lock table {} in share mode").format(names))
    except psycopg.errors.LockNotAvailable as error:
        raise CopyRefused(
            f"{place} is in use by another process: stop every gateway, then copy"
        ) from error


def _users() -> Work[str]:
    """Returns a text with the names of the living registered processes."""
    alive = yield from held_locks()
    rows = yield "select id, kind, pid from owners order by started_at", ()
    return ", ".join(f"a {kind} (pid {pid})" for id, kind, pid in rows if id in alive)


@asynccontextmanager
async def postgres_target(url: str, source: str) -> AsyncIterator[PostgresCopyEnd]:
    """Yields the database at `url` as the target of a copy of `source`. The database must be empty
    or hold an unfinished copy of this source. Otherwise raises CopyRefused."""
    server = Server(url)
    if server.place == source:
        raise CopyRefused(f"{source} is the source of the copy: name another target")
    async with await server.connect(starting=True) as connection:
        with _translated():
            await take_copy_lock(connection, server.place)
            await _require_free(connection, server.place, source)
            async with connection.transaction():
                await migrate(connection)
                await connection.execute(CREATE_RECORD.encode())
                await connection.execute(
                    "insert into hermes_copy (id, source, progress) values (1, %s, '{}')"
                    " on conflict (id) do nothing",
                    (source,),
                )
        async with connected_store(url) as store:
            yield PostgresCopyEnd(store, server.place, connection)


async def _require_free(connection: psycopg.AsyncConnection[Any], place: str, source: str) -> None:
    found = await connection.execute(_TABLES.encode())
    present = [row[0] for row in await found.fetchall()]
    ours = our_tables()
    foreign = [name for name in present if name not in ours and name not in _BOOKKEEPING]
    version = await schema_version(connection)
    if version not in (0, len(MIGRATIONS)):
        raise CopyRefused(
            f"{place} has the tables of another version of hermes (schema {version}, this version"
            f" has {len(MIGRATIONS)}): copy into an empty database"
        )
    if foreign:
        raise CopyRefused(
            f"{place} holds data of another program (the table {foreign[0]!r}): copy into an empty"
            " database"
        )
    if "hermes_copy" in present:
        found = await connection.execute(
            "select source, to_char(to_timestamp(finished_at) at time zone 'utc',"
            " 'YYYY-MM-DD HH24:MI') from hermes_copy"
        )
        row = await found.fetchone()
        if row is not None:
            _require_continuable(place, source, *row)
            return
    for name in present:
        if name in ours and await _has_rows(connection, name):
            raise CopyRefused(
                f"{place} holds data already (the table {name!r}): copy into an empty database"
            )


def _require_continuable(place: str, source: str, known: str, finished_at: str | None) -> None:
    if finished_at is not None:
        raise CopyRefused(
            f"{place} is a complete copy of {known}, finished at {finished_at} UTC:"
            " copy into another database"
        )
    if known != source:
        raise CopyRefused(
            f"{place} is an unfinished copy of another store ({known}): copy into an empty database"
        )


async def _has_rows(connection: psycopg.AsyncConnection[Any], table: str) -> bool:
    query = sql.SQL("select 1 from {} limit 1").format(sql.Identifier(table))
    return await (await connection.execute(query)).fetchone() is not None


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        raise translated_error(error) from error
