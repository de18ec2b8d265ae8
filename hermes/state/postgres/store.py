"""The store on PostgreSQL. It runs transactions concurrently, on a few connections."""

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import ParamSpec, TypeVar

import anyio
import psycopg

from hermes.state import owners
from hermes.state.postgres import transactions
from hermes.state.postgres.copy_lock import require_no_copy
from hermes.state.postgres.migration import migrate
from hermes.state.postgres.pool import Pool, Server, application_name
from hermes.state.postgres.presence import Presence, end_connections, held_locks
from hermes.state.postgres.transactions import CommitDoubtful, outcome_of
from hermes.state.retry import ATTEMPTS, retried
from hermes.types.bus import Bus, OpenBus
from hermes.types.errors import StoreUnavailable, TransactionConflict
from hermes.types.identity import FolderId, OwnerId, new_id
from hermes.types.store import OwnerKind, Work

log = logging.getLogger(__name__)

T = TypeVar("T")
P = ParamSpec("P")

LOOKUP_SECONDS = 0.2
"""Seconds between two attempts to look up the outcome of a commit."""
CANCELLED_LOOKUP_SECONDS = 5.0
"""Maximum time in seconds for looking up the outcome of a commit after the caller was cancelled."""


class PostgresStore:
    """A `Store` that processes on several machines may have open at the same time."""

    def __init__(self, pool: Pool, presence: Presence) -> None:
        self._pool = pool
        self._presence = presence
        self._trouble: str | None = None

    @property
    def trouble(self) -> str | None:
        return self._trouble or self._presence.trouble

    @property
    def owner(self) -> OwnerId:
        return self._presence.owner

    async def run(self, transaction: Callable[P, Work[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        bound = partial(transaction, *args, **kwargs)
        for _ in range(ATTEMPTS):
            try:
                # The commit is not cancelled with its caller, because a cancelled caller must know
                # whether the transaction was committed.
                with anyio.CancelScope(shield=True):
                    return await self._committed(bound)
            except CommitDoubtful as doubt:
                doubtful = doubt
            if await self._look_up(doubtful):
                self._note_commit(doubtful.number)
                result: T = doubtful.result  # type: ignore[assignment]  # of this very transaction
                return result
        raise TransactionConflict("the connection was lost during several commits")

    async def read(self, transaction: Callable[P, Work[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        bound = partial(transaction, *args, **kwargs)
        # A connection must not be returned to the pool before the server has answered.
        with anyio.CancelScope(shield=True):
            result = await retried(partial(self._read, bound))
        return result  # noqa: RET504  # for mypy, the scope might have swallowed an error

    async def dead(self, kind: OwnerKind | None = None) -> list[OwnerId]:
        known = await self.read(owners.others, self.owner)
        named = [owner for owner, what in known.items() if kind in (None, what)]
        held = await self.read(held_locks) if named else {}
        for owner in named:
            if held.get(owner):
                log.error("process %s hangs: its connections are ended", owner)
                await self.run(end_connections, owner)
        return [owner for owner in named if owner not in held]

    @property
    def bus(self) -> Bus:
        return self._presence.bus

    def changes(self) -> AsyncIterator[None]:
        return self._presence.changes()

    def permission(self) -> AsyncIterator[bool]:
        return self._presence.permission()

    async def _committed(self, transaction: Callable[[], Work[T]]) -> T:
        try:
            return await self._commit(transaction)
        except TransactionConflict:
            return await retried(partial(self._commit, transaction))

    async def _commit(self, transaction: Callable[[], Work[T]]) -> T:
        try:
            self._presence.need_proof()
            channel = await self._pool.acquire()
            try:
                result, number = await transactions.commit(channel, transaction)
            finally:
                await self._pool.release(channel)
        except StoreUnavailable as error:
            self._trouble = str(error)
            raise
        self._note_commit(number)
        return result

    def _note_commit(self, number: int | None) -> None:
        self._trouble = None
        if number is not None:
            self._presence.note_commit(number)

    async def _look_up(self, doubt: CommitDoubtful) -> bool:
        """Returns whether the transaction was committed. Otherwise it was rolled back.

        While the server can't be reached, this method waits, because only the server knows the
        outcome. If the caller is cancelled, this method waits only a few more seconds, so that the
        process can exit while the server can't be reached. The outcome then stays unknown, as if
        the process had been killed.
        """
        log.warning("the connection was lost during a commit: looking up its outcome")
        try:
            return await self._outcome(doubt)
        except anyio.get_cancelled_exc_class():
            with anyio.move_on_after(CANCELLED_LOOKUP_SECONDS, shield=True):
                return await self._outcome(doubt)
            raise

    async def _outcome(self, doubt: CommitDoubtful) -> bool:
        while True:
            try:
                with anyio.CancelScope(shield=True):
                    status = await self._status(doubt)
            except StoreUnavailable as error:
                if self._pool.closed:
                    raise
                self._trouble = str(error)
            else:
                if status in ("committed", "aborted"):
                    return status == "committed"
            await anyio.sleep(LOOKUP_SECONDS)

    async def _status(self, doubt: CommitDoubtful) -> str | None:
        channel = await self._pool.acquire()
        try:
            return await outcome_of(channel, doubt.number, doubt.at)
        finally:
            await self._pool.release(channel)

    async def _read(self, transaction: Callable[[], Work[T]]) -> T:
        channel = await self._pool.acquire()
        try:
            return await transactions.read(channel, transaction)
        finally:
            await self._pool.release(channel)


@asynccontextmanager
async def open_postgres(
    url: str,
    kind: OwnerKind | None = None,
    direct_url: str = "",
    folder: FolderId | None = None,
    open_bus: OpenBus | None = None,
) -> AsyncIterator[PostgresStore]:
    """Migrates the store at `url`, and keeps the store open until the block ends.

    A process that runs turns passes its kind and its folder, and is then registered. Other
    processes pass neither and are not registered. If `url` is the address of a pooler, `direct_url`
    is the address of the server itself. A registered process uses the bus that `open_bus` opens,
    instead of notifications.
    """
    async with await Server(direct_url or url).connect(starting=True) as connection:
        await require_no_copy(connection)
        await migrate(connection)
    async with connected_store(url, kind, direct_url, folder, open_bus) as store:
        yield store


@asynccontextmanager
async def connected_store(
    url: str,
    kind: OwnerKind | None = None,
    direct_url: str = "",
    folder: FolderId | None = None,
    open_bus: OpenBus | None = None,
) -> AsyncIterator[PostgresStore]:
    """Does the same as `open_postgres`, for a database that is already migrated. The database may
    be an unfinished copy."""
    id = new_id()
    direct = Server(direct_url or url, application_name(id))
    async with AsyncExitStack() as opened:
        bus: Bus | None = None
        if open_bus is not None and kind is not None:
            name = await _database_name(direct)
            bus = await opened.enter_async_context(open_bus(OwnerId(id), name))
        pool = Pool(Server(url, application_name(id)))
        group = await anyio.create_task_group().__aenter__()
        presence = Presence(id, pool, direct, group, bus)
        store = PostgresStore(pool, presence)
        try:
            if kind is None:
                yield store
            else:
                async with presence.registered(kind, folder):
                    yield store
        finally:
            with anyio.CancelScope(shield=True):
                await presence.close()
                await pool.close()
            group.cancel_scope.cancel()
            # The caller's exception is not passed to the task group, because the group would wrap
            # the exception in an ExceptionGroup.
            await group.__aexit__(None, None, None)


async def _database_name(server: Server) -> str:
    """Returns a name of the database that is the same for all processes, even if they connect to
    different addresses."""
    try:
        async with await server.connect(starting=True) as connection:
            found = await connection.execute(
                "select system_identifier::text || '-' || (select oid::text from pg_database"
                " where datname = current_database()) from pg_control_system()"
            )
            row = await found.fetchone()
    except psycopg.Error as error:
        raise StoreUnavailable(f"the name of the database can't be read ({error})") from error
    assert row is not None
    name: str = row[0]
    return name
