"""A small pool of read-only connections."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.to_thread

from hermes.state.sqlite.connection import connect, drive, translated
from hermes.state.sqlite.file_watch import FileWatch
from hermes.state.sqlite.files import suspect
from hermes.types.errors import StoreDamaged, StoreUnavailable
from hermes.types.store import Work

T = TypeVar("T")

READERS = 2
"""Number of connections, which is also the maximum number of simultaneous reads."""


class Readers:
    """Runs each read in a thread, on a snapshot of its own."""

    def __init__(self, path: Path, watch: FileWatch) -> None:
        self._path = path
        self._watch = watch
        self._idle: list[sqlite3.Connection] = []
        self._slots = anyio.CapacityLimiter(READERS)
        self._closed = False

    def __len__(self) -> int:
        """Returns the number of idle connections."""
        return len(self._idle)

    async def read(self, transaction: Callable[[], Work[T]]) -> T:
        self._need_open()
        return await anyio.to_thread.run_sync(self._read, transaction, limiter=self._slots)

    async def close(self) -> None:
        """Waits for running reads, and closes the connections."""
        self._closed = True
        for _ in range(READERS):
            await self._slots.acquire_on_behalf_of(object())
        for connection in self._idle:
            connection.close()

    def _read(self, transaction: Callable[[], Work[T]]) -> T:
        self._need_open()  # checked again, because the read may have waited
        try:
            with translated():
                self._watch.check()
                connection = self._connection()
                try:
                    connection.execute("begin")
                    return drive(connection, transaction())
                finally:
                    connection.rollback()
                    self._idle.append(connection)
        except StoreDamaged:
            suspect(self._path)
            raise

    def _need_open(self) -> None:
        if self._closed:
            raise StoreUnavailable("the store is closed: hermes is shutting down")

    def _connection(self) -> sqlite3.Connection:
        try:
            return self._idle.pop()
        except IndexError:
            connection = connect(self._path)
        try:
            # The file is checked again, because it may have been replaced between the first check
            # and the opening.
            self._watch.check()
            connection.execute("pragma query_only = on")
        except BaseException:
            connection.close()
            raise
        return connection
