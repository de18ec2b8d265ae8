"""Runs the writer thread, which commits waiting transactions in groups and notices commits of other
processes."""

import asyncio
import contextlib
import logging
import math
import queue
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import anyio
import anyio.to_thread

from hermes.state.sqlite.connection import drive, error_class, translated
from hermes.state.sqlite.file_watch import FileWatch
from hermes.state.sqlite.files import suspect
from hermes.types.errors import StoreDamaged, StoreUnavailable
from hermes.types.store import Work

log = logging.getLogger(__name__)

T = TypeVar("T")

CHANGE_POLL_SECONDS = 0.1
"""Seconds between two checks for commits of other processes."""
BATCH = 64
"""Maximum number of transactions in one commit. There is a limit, because the event loop wakes the
callers of all these transactions at once."""
WATCH_SECONDS = 5.0
"""Seconds between two checks of the files while nothing is committed."""
LOST_FILES_SECONDS = 60.0
"""Seconds between two log messages that say that the files are lost."""


class Job:
    """A transaction that waits in the writer's queue, or is being run."""

    __slots__ = ("ended", "error", "future", "result", "transaction")

    def __init__(self, transaction: Callable[[], Work[Any]], future: "asyncio.Future[Any]") -> None:
        self.transaction = transaction
        self.future = future
        self.result: Any = None
        self.error: BaseException | None = None
        self.ended = False

    def fail(self, error: StoreUnavailable) -> None:
        # Each job needs its own error, because raising an error adds the caller's traceback to it.
        self.error = type(error)(*error.args)
        self.error.__cause__ = error.__cause__

    def resolve(self) -> None:
        self.ended = True
        # A cancellation of the caller has cancelled the future.
        if self.future.done():
            return
        if self.error is None:
            self.future.set_result(self.result)
        else:
            self.future.set_exception(self.error)


class Writer:
    """Runs transactions in one thread. Waiting transactions share one commit and one fsync. If a
    transaction fails, only this transaction is rolled back."""

    def __init__(
        self,
        path: Path,
        connection: sqlite3.Connection,
        watch: FileWatch,
        on_foreign_commit: Callable[[], None],
    ) -> None:
        self.trouble: str | None = None
        """The error of the last commit, or the error with which the next commit would fail; None if
        commits succeed."""
        self._path = path
        self._connection = connection
        self._watch = watch
        self._watched_at = time.monotonic()
        self._lost = False
        """Whether the last check found that the files were removed, replaced or truncated."""
        self._reported_at = -LOST_FILES_SECONDS
        self._on_foreign_commit = on_foreign_commit
        """A function that is called, on the event loop, after another process has committed."""
        self._loop = asyncio.get_running_loop()
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._batch: list[Job] = []
        self._closed = False
        # This is the only thread that Hermes starts itself. It owns the connection and runs the
        # queued transactions.
        self._thread = threading.Thread(  # noqa: TID251
            target=self._write, name="hermes-store", daemon=True
        )
        self._thread.start()

    async def commit(self, transaction: Callable[[], Work[T]]) -> T:
        """Runs a transaction, and returns its result after the commit. A caller whose cancel scope
        is cancelled meanwhile still gets the result."""
        if self._closed:
            raise StoreUnavailable("the store is closed: hermes is shutting down")
        future: asyncio.Future[T] = self._loop.create_future()
        job = Job(transaction, future)
        self._jobs.put(job)
        try:
            return await future
        except asyncio.CancelledError:
            if anyio.current_effective_deadline() > -math.inf:
                raise  # The task was cancelled without a scope, so there is nobody to tell.
            # The transaction is shielded only now, after a cancellation. Cancellations are rare,
            # and a shield for every transaction would cost more time.
            with anyio.CancelScope(shield=True):
                result: T = await self._outcome(job)
        return result  # for mypy, the scope might have swallowed an error

    async def _outcome(self, job: Job) -> Any:
        """Waits for the end of a job whose future was cancelled."""
        job.future = self._loop.create_future()
        if job.ended:
            job.resolve()
        return await job.future

    async def close(self) -> None:
        """Commits the queued transactions and ends the thread."""
        self._closed = True
        self._jobs.put(None)
        await anyio.to_thread.run_sync(self._thread.join)

    def _write(self) -> None:
        try:
            self._serve()
        finally:
            # If the thread ends for any reason, every waiting caller must get an error.
            self._call_on_loop(self._end)

    def _serve(self) -> None:
        seen = data_version(self._connection)
        polled = time.monotonic()
        while self._take_batch(polled + CHANGE_POLL_SECONDS - time.monotonic()):
            if self._batch:
                error = self._commit()
                self.trouble = str(error) if error else None
                if isinstance(error, StoreDamaged):
                    suspect(self._path)
                self._call_on_loop(_resolve, self._batch)
            elif time.monotonic() - self._watched_at >= WATCH_SECONDS:
                self._look()
            if time.monotonic() - polled >= CHANGE_POLL_SECONDS:
                polled = time.monotonic()
                version = data_version(self._connection)
                if version != seen:
                    seen = version
                    self._call_on_loop(self._on_foreign_commit)

    def _commit(self) -> StoreUnavailable | None:
        """Commits the batch. Before and after the commit, checks that the files of the database are
        still in place. If a check fails, all jobs fail. Returns the error if the whole batch has
        failed; None otherwise."""
        error = self._check_files()
        if error is None:
            if error := commit(self._connection, self._batch):
                return error
            error = self._check_files()
        if error is not None:
            for job in self._batch:
                job.fail(error)
        return error

    def _look(self) -> None:
        """Checks the database's files at intervals while nothing is committed."""
        was_lost = self._lost
        error = self._check_files()
        if error is not None:
            self.trouble = str(error)
        elif was_lost:
            self.trouble = None

    def _check_files(self) -> StoreUnavailable | None:
        self._watched_at = time.monotonic()
        try:
            self._watch.check()
        except StoreUnavailable as error:
            self._lost = True
            if self._watched_at - self._reported_at >= LOST_FILES_SECONDS:
                self._reported_at = self._watched_at
                log.critical("%s", error)
            return error
        if self._lost:
            self._lost = False
            self._reported_at = -LOST_FILES_SECONDS
            log.warning("the files of the database are back: %s", self._path)
        return None

    def _take_batch(self, seconds: float) -> bool:
        """Fills the batch. Waits at most `seconds` for the first job. Returns False if the writer
        was closed and no job is left."""
        self._batch = []
        with contextlib.suppress(queue.Empty):
            job = self._jobs.get(timeout=max(seconds, 0))
            while job is not None:
                self._batch.append(job)
                if len(self._batch) == BATCH:
                    return True
                job = self._jobs.get_nowait()
            if not self._batch:
                return False
            self._jobs.put(None)
        return True

    def _call_on_loop(self, callback: Callable[..., None], *args: object) -> None:
        # If the loop was closed before the store, no caller waits for a result any more.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(callback, *args)

    def _end(self) -> None:
        self._closed = True
        left = [*self._batch]
        while not self._jobs.empty():
            job = self._jobs.get_nowait()
            if job is not None:
                left.append(job)
        for job in left:
            job.fail(StoreUnavailable("the store was closed before this could be stored"))
            job.resolve()


def _resolve(batch: list[Job]) -> None:
    for job in batch:
        job.resolve()


def commit(connection: sqlite3.Connection, batch: list[Job]) -> StoreUnavailable | None:
    """Runs the batch in one transaction. If a job itself fails, only that job gets an error. If the
    disk, the lock or the file fails, all jobs get an error.

    Returns the error of the disk, the lock or the file; None if there was no such error.
    """
    try:
        with translated():
            connection.rollback()  # ends the previous batch if its rollback had failed
            connection.execute("begin immediate")
            if failure := _run_all(connection, batch):
                connection.rollback()
                connection.execute("begin immediate")
                if len(batch) == 1:
                    batch[0].error = failure
                else:
                    _run_each(connection, batch)
            connection.execute("commit")
    except BaseException as error:  # noqa: BLE001  # passed to all callers; the writer continues
        with contextlib.suppress(sqlite3.Error):
            connection.rollback()
        if not isinstance(error, StoreUnavailable):
            cause, error = error, StoreUnavailable(f"the database failed ({error!r})")
            error.__cause__ = cause
        # This error also replaces the error of a job that had failed earlier in this batch. Rows of
        # other jobs may have caused that error, and these rows are not committed now.
        for job in batch:
            job.fail(error)
        return error
    return None


def _run_all(connection: sqlite3.Connection, batch: list[Job]) -> BaseException | None:
    """Runs all jobs without savepoints, because a savepoint needs two more statements for each job.

    If a job fails, returns its error, and the caller must roll back all jobs. Returns None if no
    job fails.
    """
    try:
        for job in batch:
            job.result = drive(connection, job.transaction())
    except BaseException as error:
        if _fails_batch(connection, error):
            raise
        return error
    return None


def _run_each(connection: sqlite3.Connection, batch: list[Job]) -> None:
    """Runs each job under a savepoint. Stores the error of a failed job in the job. Raises an error
    only if the whole batch fails."""
    for job in batch:
        connection.execute("savepoint job")
        try:
            job.result = drive(connection, job.transaction())
        except BaseException as error:
            if _fails_batch(connection, error):
                raise
            job.error = error
            connection.execute("rollback to job")
        connection.execute("release job")


def _fails_batch(connection: sqlite3.Connection, error: BaseException) -> bool:
    """Returns whether the error makes the whole batch fail, because the error comes from the disk,
    the lock or the file. Any other error makes only one job fail."""
    return not connection.in_transaction or error_class(error) is not None


def data_version(connection: sqlite3.Connection) -> int:
    """Returns a number that changes when another connection has committed."""
    try:
        version: int = connection.execute("pragma data_version").fetchone()[0]
    except sqlite3.DatabaseError:
        return -1
    return version
