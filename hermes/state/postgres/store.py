"""The store: transactions on PostgreSQL, side by side on a few connections."""

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import ParamSpec, TypeVar

import anyio

from hermes.state import owners
from hermes.state.postgres import transactions
from hermes.state.postgres.copy_lock import require_no_copy
from hermes.state.postgres.migration import migrate
from hermes.state.postgres.pool import Pool, Server, application_name
from hermes.state.postgres.presence import Presence, end_connections, held_locks
from hermes.state.postgres.transactions import CommitDoubtful, outcome_of
from hermes.state.retry import retried
from hermes.types.bus import Bus
from hermes.types.errors import StoreUnavailable, TransactionConflict
from hermes.types.identity import FolderId, OwnerId, new_id
from hermes.types.store import OwnerKind, Work

log = logging.getLogger(__name__)

T = TypeVar("T")
P = ParamSpec("P")

LOOKUP_SECONDS = 0.2
"""Pause between two attempts to look up the outcome of a commit."""


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
        # A cancelled caller must not be left without knowing whether the transaction committed.
        with anyio.CancelScope(shield=True):
            try:
                result = await self._commit(bound)
            except TransactionConflict:
                result = await retried(partial(self._commit, bound))
        return result  # for mypy, the scope might have swallowed an error

    async def read(self, transaction: Callable[P, Work[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        bound = partial(transaction, *args, **kwargs)
        # A connection is given back only after the server has answered.
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

    async def _commit(self, transaction: Callable[[], Work[T]]) -> T:
        try:
            result, number = await self._attempt(transaction)
        except StoreUnavailable as error:
            self._trouble = str(error)
            raise
        self._trouble = None
        if number is not None:
            self._presence.note_commit(number)
        return result

    async def _attempt(self, transaction: Callable[[], Work[T]]) -> tuple[T, int | None]:
        self._presence.need_proof()
        channel = await self._pool.acquire()
        try:
            return await transactions.commit(channel, transaction)
        except CommitDoubtful as doubt:
            doubtful = doubt
        finally:
            await self._pool.release(channel)
        await self._look_up(doubtful)
        result: T = doubtful.result  # type: ignore[assignment]  # of this very transaction
        return result, doubtful.number

    async def _look_up(self, doubt: CommitDoubtful) -> None:
        """Returns if the transaction was committed. Raises TransactionConflict if it was rolled
        back.

        Waits as long as the server can't be reached: any earlier answer might be wrong.
        """
        log.warning("the connection was lost during a commit: looking up its outcome")
        while True:
            try:
                channel = await self._pool.acquire()
                try:
                    status = await outcome_of(channel, doubt.number, doubt.at)
                finally:
                    await self._pool.release(channel)
            except StoreUnavailable as error:
                if self._pool.closed:
                    raise
                self._trouble = str(error)
            else:
                if status == "committed":
                    return
                if status == "aborted":
                    raise TransactionConflict("the connection was lost, and the commit with it")
            await anyio.sleep(LOOKUP_SECONDS)

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
) -> AsyncIterator[PostgresStore]:
    """Opens and migrates the store at `url`, until the context ends.

    A process that runs turns passes its kind and its folder, and is registered; other processes are
    not. If `url` is the address of a pooler, `direct_url` is the address of the server itself.
    """
    async with await Server(direct_url or url).connect(starting=True) as connection:
        await require_no_copy(connection)
        await migrate(connection)
    async with connected_store(url, kind, direct_url, folder) as store:
        yield store


@asynccontextmanager
async def connected_store(
    url: str,
    kind: OwnerKind | None = None,
    direct_url: str = "",
    folder: FolderId | None = None,
) -> AsyncIterator[PostgresStore]:
    """Like `open_postgres`, for a database that is already migrated. It may be an unfinished
    copy."""
    id = new_id()
    direct = Server(direct_url or url, application_name(id))
    pool = Pool(Server(url, application_name(id)))
    group = await anyio.create_task_group().__aenter__()
    presence = Presence(id, pool, direct, group)
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
        # The caller's error is not raised inside the group, because the group would wrap it.
        await group.__aexit__(None, None, None)
