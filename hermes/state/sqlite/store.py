"""The store on SQLite: one writer thread with group commit, and a few reader threads."""

import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import ParamSpec, TypeVar

import anyio
import anyio.to_thread

from hermes.state import owners
from hermes.state.changes import Changes
from hermes.state.paths import Home
from hermes.state.retry import retried
from hermes.state.sqlite.file_watch import FileWatch
from hermes.state.sqlite.migration import prepare
from hermes.state.sqlite.owner_locks import OwnerLock, dead_among
from hermes.state.sqlite.readers import Readers
from hermes.state.sqlite.writer import Writer
from hermes.types.errors import StoreUnavailable, TransactionConflict
from hermes.types.identity import FolderId, OwnerId
from hermes.types.store import OwnerKind, Work

log = logging.getLogger(__name__)

T = TypeVar("T")
P = ParamSpec("P")


class SQLiteStore:
    """A `Store` that several processes of one machine may have open at the same time."""

    def __init__(self, path: Path, writer: Writer, readers: Readers, changes: Changes) -> None:
        self.path = path
        self._writer = writer
        self._readers = readers
        self._changes = changes
        self._owner: OwnerId | None = None

    @property
    def trouble(self) -> str | None:
        return self._writer.trouble

    @property
    def owner(self) -> OwnerId:
        assert self._owner is not None, "the store was opened without a kind"
        return self._owner

    async def run(self, transaction: Callable[P, Work[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        bound = partial(transaction, *args, **kwargs)
        try:
            return await self._writer.commit(bound)
        except TransactionConflict:
            # Conflicts are rare, so `retried` is called only after the first conflict.
            with anyio.CancelScope(shield=True):
                result = await retried(partial(self._writer.commit, bound))
        return result  # for mypy, the scope might have swallowed an error

    async def read(self, transaction: Callable[P, Work[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._readers.read(partial(transaction, *args, **kwargs))

    async def dead(self, kind: OwnerKind | None = None) -> list[OwnerId]:
        known = await self.read(owners.others, self.owner)
        named = [owner for owner, what in known.items() if kind in (None, what)]
        if not named:
            return []
        return await anyio.to_thread.run_sync(dead_among, locks_of(self.path), named)

    @property
    def bus(self) -> None:
        return None

    def changes(self) -> AsyncIterator[None]:
        return self._changes.noticed()

    async def permission(self) -> AsyncIterator[bool]:
        # The permission to run turns is never withdrawn, because the kernel keeps the lock until
        # the process ends.
        yield True
        await anyio.sleep_forever()

    @asynccontextmanager
    async def registered(
        self, kind: OwnerKind, folder: FolderId | None = None
    ) -> AsyncIterator[None]:
        """Lists this process among the processes that use the store, until the block ends."""
        with OwnerLock(locks_of(self.path)) as lock:
            await self.run(owners.register, lock.id, kind, time.time(), folder)
            self._owner = lock.id
            try:
                yield
            finally:
                await self._leave(lock.id)

    async def _leave(self, owner: OwnerId) -> None:
        try:
            with anyio.CancelScope(shield=True):
                await self.run(owners.leave, owner)
        except StoreUnavailable as error:
            # No work is lost: this process no longer holds its lock, so other processes treat it as
            # dead and take its work over.
            log.error("can't remove this process from the store: %s", error)


@asynccontextmanager
async def open_store(
    path: Path, kind: OwnerKind | None = None, folder: FolderId | None = None
) -> AsyncIterator[SQLiteStore]:
    """Migrates the store at `path`, and keeps the store open until the block ends.

    A process that runs turns passes its kind and its folder, and is registered. Other processes are
    not registered.
    """
    connection = await anyio.to_thread.run_sync(prepare, path)
    try:
        watch = FileWatch(path)
    except StoreUnavailable:
        connection.close()
        raise
    changes = Changes()
    writer = Writer(path, connection, watch, changes.notice)
    readers = Readers(path, watch)
    store = SQLiteStore(path, writer, readers, changes)
    try:
        if kind is None:
            yield store
        else:
            # Opening the database creates the WAL, so the lock file must be created later. If
            # `guard` found a free lock file but no WAL, it would report lost commits.
            async with store.registered(kind, folder):
                yield store
    finally:
        with anyio.CancelScope(shield=True):
            await writer.close()
            await readers.close()
        # This connection is closed last, because SQLite removes the WAL when the last connection is
        # closed.
        connection.close()


def locks_of(path: Path) -> Path:
    """Returns the folder with the lock files of the processes that use the database."""
    return Home(root=path.parent).run
