"""The store on SQLite: one writer thread with group commit, a few readers beside it."""

import asyncio
import contextlib
import queue
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, TypeVar

import anyio
import anyio.to_thread

from hermes.state.schema import MIGRATIONS
from hermes.types.errors import StoreDamaged, StoreUnavailable
from hermes.types.protocols import Work

T = TypeVar("T")

POLL_SECONDS = 0.1
"""How soon a commit of another process is noticed."""
BATCH = 256
"""Transactions in one commit at the most."""
READERS = 2


class _Job:
    """A transaction on its way through the writer."""

    __slots__ = ("error", "future", "result", "work")

    def __init__(self, work: Work[Any], future: "asyncio.Future[Any]") -> None:
        self.work = work
        self.future = future
        self.result: Any = None
        self.error: BaseException | None = None

    def resolve(self) -> None:
        if self.future.done():
            return
        if self.error is None:
            self.future.set_result(self.result)
        else:
            self.future.set_exception(self.error)


class SQLiteStore:
    """Transactions commit in groups: many share one fsync, each rolls back alone."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.on_foreign_change: Callable[[], None] = lambda: None
        """Called on the loop after another process has committed."""
        self.trouble: str | None = None
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._readers: list[sqlite3.Connection] = []
        self._reading = anyio.CapacityLimiter(READERS)
        self._loop: asyncio.AbstractEventLoop

    async def run(self, work: Work[T]) -> T:
        future: asyncio.Future[T] = self._loop.create_future()
        self._jobs.put(_Job(work, future))
        # The commit happens all the same: who is cancelled must not have to guess whether it did.
        with anyio.CancelScope(shield=True):
            await future
        return future.result()

    async def read(self, work: Work[T]) -> T:
        return await anyio.to_thread.run_sync(self._read, work, limiter=self._reading)

    def _read(self, work: Work[T]) -> T:
        connection = self._readers.pop() if self._readers else connect(self.path)
        try:
            with translated():
                connection.execute("begin")
                try:
                    return drive(connection, work)
                finally:
                    connection.rollback()
        finally:
            self._readers.append(connection)

    async def backup(self, target: Path) -> None:
        """Copies a consistent state while others write."""
        await anyio.to_thread.run_sync(copy, self.path, target, limiter=self._reading)

    # --- the writer thread ------------------------------------------------------------------

    def _write(self, connection: sqlite3.Connection) -> None:
        seen = data_version(connection)
        polled = time.monotonic()
        while True:
            batch = self._next_batch()
            if batch is None:
                return
            if batch:
                self.trouble = commit(connection, batch)
                self._loop.call_soon_threadsafe(_resolve, batch)
            if time.monotonic() - polled >= POLL_SECONDS:
                polled = time.monotonic()
                version = data_version(connection)
                if version != seen:
                    seen = version
                    self._loop.call_soon_threadsafe(self._notify)

    def _next_batch(self) -> list[_Job] | None:
        """What is waiting; empty after a quiet while; None at the end."""
        batch: list[_Job] = []
        with contextlib.suppress(queue.Empty):
            job = self._jobs.get(timeout=POLL_SECONDS)
            while job is not None:
                batch.append(job)
                if len(batch) == BATCH:
                    return batch
                job = self._jobs.get_nowait()
            if batch:
                self._jobs.put(None)
                return batch
            return None
        return batch

    def _notify(self) -> None:
        self.on_foreign_change()


@contextlib.asynccontextmanager
async def open_store(path: Path) -> AsyncIterator[SQLiteStore]:
    """The store at `path`, migrated, until the context ends."""
    store = SQLiteStore(path)
    store._loop = asyncio.get_running_loop()  # noqa: SLF001
    connection = await anyio.to_thread.run_sync(prepare, path)
    # The one thread of ours: its connection, its loop over the queue, nothing else.
    writer = threading.Thread(  # noqa: TID251
        target=store._write,  # noqa: SLF001
        args=(connection,),
        name="hermes-store",
        daemon=True,
    )
    writer.start()
    try:
        yield store
    finally:
        store._jobs.put(None)  # noqa: SLF001
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(writer.join)
        for reader in store._readers:  # noqa: SLF001
            reader.close()
        connection.close()


def _resolve(batch: list[_Job]) -> None:
    for job in batch:
        job.resolve()


def commit(connection: sqlite3.Connection, batch: list[_Job]) -> str | None:
    """Runs the batch in one transaction; fails those that failed, or all if the disk did.

    Returns what is wrong with the disk.
    """
    try:
        with translated():
            connection.execute("begin immediate")
            for number, job in enumerate(batch):
                _attempt(connection, job, alone=len(batch) == 1, number=number)
            connection.execute("commit")
    except StoreUnavailable as error:
        with contextlib.suppress(sqlite3.Error):
            connection.rollback()
        for job in batch:
            job.error = error
        return str(error)
    return None


def _attempt(connection: sqlite3.Connection, job: _Job, *, alone: bool, number: int) -> None:
    """One transaction under its own savepoint. Raises only what fails the whole batch."""
    if not alone:
        connection.execute(f"savepoint s{number}")
    try:
        job.result = drive(connection, job.work)
    except sqlite3.OperationalError:
        raise
    except sqlite3.DatabaseError as error:
        if not isinstance(error, sqlite3.IntegrityError | sqlite3.ProgrammingError):
            raise
        job.error = error
    except Exception as error:  # noqa: BLE001  # handed to the caller who awaits the job
        job.error = error
    if job.error is None:
        if not alone:
            connection.execute(f"release s{number}")
    elif alone:
        connection.execute("rollback")
        connection.execute("begin immediate")
    else:
        connection.execute(f"rollback to s{number}")
        connection.execute(f"release s{number}")


def drive(connection: sqlite3.Connection, work: Work[T]) -> T:
    """Steps the generator through its statements to its result."""
    try:
        sql, parameters = next(work)
        while True:
            sql, parameters = work.send(connection.execute(sql, parameters).fetchall())
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        work.close()


@contextlib.contextmanager
def translated() -> Any:
    """SQLite's failures of disk, lock and file as ours."""
    try:
        yield
    except sqlite3.IntegrityError:
        raise
    except sqlite3.DatabaseError as error:
        code = error.sqlite_errorcode & 0xFF if hasattr(error, "sqlite_errorcode") else 0
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise StoreDamaged(f"the database is damaged ({error})") from error
        if code in _PASSING:
            raise StoreUnavailable(f"the database can't be used now ({error})") from error
        raise


_PASSING = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PROTOCOL,
}


def connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path,
        timeout=5.0,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
    )
    connection.execute("pragma journal_mode = wal")
    connection.execute("pragma synchronous = full")
    connection.execute("pragma cache_size = -4000")
    connection.execute("pragma temp_store = memory")
    return connection


def prepare(path: Path) -> sqlite3.Connection:
    """A connection to a database whose migrations have all run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with translated():
        connection = connect(path)
        path.chmod(0o600)
        migrate(connection)
    return connection


def migrate(connection: sqlite3.Connection) -> None:
    connection.execute("begin immediate")
    done: int = connection.execute("pragma user_version").fetchone()[0]
    if done > len(MIGRATIONS):
        connection.execute("rollback")
        raise StoreUnavailable(
            f"the database was written by a newer version (schema {done}, this one knows"
            f" {len(MIGRATIONS)}): install that version again or restore a backup"
        )
    for _, script in MIGRATIONS[done:]:
        for statement in statements(script):
            connection.execute(statement)
    connection.execute(f"pragma user_version = {len(MIGRATIONS)}")
    connection.execute("commit")


def statements(script: str) -> list[str]:
    """The statements of a script; `executescript` would commit before the first."""
    found, current = [], ""
    for line in script.splitlines(keepends=True):
        current += line
        if sqlite3.complete_statement(current):
            found.append(current.strip())
            current = ""
    return [statement for statement in found if statement]


def data_version(connection: sqlite3.Connection) -> int:
    """Changes when another connection, never this one, has committed."""
    try:
        version: int = connection.execute("pragma data_version").fetchone()[0]
    except sqlite3.DatabaseError:
        return -1
    return version


def copy(source: Path, target: Path) -> None:
    """An online backup that appears under its name only when it is whole."""
    half = target.with_suffix(".part")
    half.unlink(missing_ok=True)
    with (
        translated(),
        contextlib.closing(connect(source)) as origin,
        contextlib.closing(sqlite3.connect(half)) as copied,
    ):
        # In steps, so that a writer never waits for the whole copy.
        origin.backup(copied, pages=1024, sleep=0.001)
    half.chmod(0o600)
    half.replace(target)
