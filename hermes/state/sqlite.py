"""The store on SQLite: one writer thread with group commit, a few readers beside it."""

import asyncio
import contextlib
import os
import queue
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import anyio
import anyio.to_thread

from hermes.state.schema import MIGRATIONS
from hermes.types.errors import StoreDamaged, StoreUnavailable
from hermes.types.protocols import Work

T = TypeVar("T")
P = ParamSpec("P")

POLL_SECONDS = 0.1
"""How soon a commit of another process is noticed."""
BATCH = 64
"""Transactions in one commit at the most: all of them go on in one round of the loop."""
READERS = 2
LOCK_SECONDS = 5.0
"""How long a process waits for another that is writing."""


class _Job:
    """A transaction on its way through the writer."""

    __slots__ = ("error", "future", "result", "transaction")

    def __init__(self, transaction: Callable[[], Work[Any]], future: "asyncio.Future[Any]") -> None:
        self.transaction = transaction
        self.future = future
        self.result: Any = None
        self.error: BaseException | None = None

    def fail(self, error: StoreUnavailable) -> None:
        # One error of its own for each: a raised one collects its caller's traceback.
        self.error = type(error)(*error.args)
        self.error.__cause__ = error.__cause__

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
        self._batch: list[_Job] = []
        self._readers: list[sqlite3.Connection] = []
        self._reading = anyio.CapacityLimiter(READERS)
        self._closed = False
        self._loop: asyncio.AbstractEventLoop

    async def run(self, transaction: Callable[P, Work[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        self._need_open()
        future: asyncio.Future[T] = self._loop.create_future()
        self._jobs.put(_Job(partial(transaction, *args, **kwargs), future))
        # The commit happens all the same: who is cancelled must not have to guess whether it did.
        with anyio.CancelScope(shield=True):
            await future
        return future.result()

    async def read(self, transaction: Callable[P, Work[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        self._need_open()
        bound = partial(transaction, *args, **kwargs)
        return await anyio.to_thread.run_sync(self._read, bound, limiter=self._reading)

    def _read(self, transaction: Callable[[], Work[T]]) -> T:
        self._need_open()  # again: it may have waited for its turn
        try:
            with translated():
                connection = self._reader()
                try:
                    connection.execute("begin")
                    return drive(connection, transaction())
                finally:
                    connection.rollback()
                    self._readers.append(connection)
        except StoreDamaged:
            suspect(self.path)
            raise

    def _reader(self) -> sqlite3.Connection:
        try:
            return self._readers.pop()
        except IndexError:
            connection = connect(self.path)
            connection.execute("pragma query_only = on")
            return connection

    def _need_open(self) -> None:
        if self._closed:
            raise StoreUnavailable("the store is closed: hermes is shutting down")

    # --- the writer thread ------------------------------------------------------------------

    def _write(self, connection: sqlite3.Connection) -> None:
        try:
            self._serve(connection)
        finally:
            # Whatever ended it: nobody may wait for an answer that will not come.
            self._loop.call_soon_threadsafe(self._end)

    def _serve(self, connection: sqlite3.Connection) -> None:
        seen = data_version(connection)
        polled = time.monotonic()
        while self._take_batch(polled + POLL_SECONDS - time.monotonic()):
            if self._batch:
                error = commit(connection, self._batch)
                self.trouble = str(error) if error else None
                if isinstance(error, StoreDamaged):
                    suspect(self.path)
                self._loop.call_soon_threadsafe(_resolve, self._batch)
            if time.monotonic() - polled >= POLL_SECONDS:
                polled = time.monotonic()
                version = data_version(connection)
                if version != seen:
                    seen = version
                    self._loop.call_soon_threadsafe(self._notify)

    def _take_batch(self, seconds: float) -> bool:
        """Makes the batch of what is waiting, none after a quiet while; False at the end."""
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
        store._closed = True  # noqa: SLF001
        store._jobs.put(None)  # noqa: SLF001
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(writer.join)
            for _ in range(READERS):  # until the last read has given its connection back
                await store._reading.acquire_on_behalf_of(object())  # noqa: SLF001
        for reader in store._readers:  # noqa: SLF001
            reader.close()
        connection.close()


def _resolve(batch: list[_Job]) -> None:
    for job in batch:
        job.resolve()


def commit(connection: sqlite3.Connection, batch: list[_Job]) -> StoreUnavailable | None:
    """Runs the batch in one transaction; fails those that failed, or all if the disk did.

    Returns what is wrong with the disk.
    """
    try:
        with translated():
            connection.rollback()  # of a batch whose rollback had failed
            connection.execute("begin immediate")
            for job in batch:
                _attempt(connection, job, alone=len(batch) == 1)
            connection.execute("commit")
    except BaseException as error:  # noqa: BLE001  # handed to all who wait; the writer goes on
        with contextlib.suppress(sqlite3.Error):
            connection.rollback()
        if not isinstance(error, StoreUnavailable):
            cause, error = error, StoreUnavailable(f"the database failed ({error!r})")
            error.__cause__ = cause
        # Also those that had failed alone: what they saw of their neighbours was never true.
        for job in batch:
            job.fail(error)
        return error
    return None


def _attempt(connection: sqlite3.Connection, job: _Job, *, alone: bool) -> None:
    """One transaction, under a savepoint where it has neighbours. Raises what fails the batch."""
    if not alone:
        connection.execute("savepoint job")
    try:
        job.result = drive(connection, job.transaction())
    except BaseException as error:
        if not connection.in_transaction or kind_of(error) is not None:
            raise
        job.error = error
        if alone:
            connection.rollback()
            connection.execute("begin immediate")
        else:
            connection.execute("rollback to job")
    if not alone:
        connection.execute("release job")


def drive(connection: sqlite3.Connection, work: Work[T]) -> T:
    """Steps the generator through its statements to its result."""
    try:
        sql, parameters = next(work)
        while True:
            cursor = connection.execute(sql, parameters)
            # Asking for rows that cannot be costs the interpreter's lock once more.
            sql, parameters = work.send(cursor.fetchall() if cursor.description else [])
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        work.close()


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """SQLite's failures of disk, lock and file as ours."""
    try:
        yield
    except sqlite3.Error as error:
        kind = kind_of(error)
        if kind is StoreDamaged:
            raise StoreDamaged(f"the database is damaged ({error})") from error
        if kind is StoreUnavailable:
            raise StoreUnavailable(f"the database can't be used now ({error})") from error
        raise


def kind_of(error: BaseException) -> type[StoreUnavailable] | None:
    """Which of our errors it is; None if the statement was wrong, not the disk, lock or file."""
    if not isinstance(error, sqlite3.DatabaseError) or not hasattr(error, "sqlite_errorcode"):
        return None
    code = error.sqlite_errorcode & 0xFF
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return StoreDamaged
    return StoreUnavailable if code in _PASSING else None


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
    make_private(path)
    connection = sqlite3.connect(
        path,
        timeout=LOCK_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
    )
    try:
        _use_log(connection)
        connection.execute("pragma synchronous = full")
        connection.execute("pragma cache_size = -4000")
        connection.execute("pragma temp_store = memory")
    except BaseException:
        connection.close()
        raise
    return connection


def _use_log(connection: sqlite3.Connection) -> None:
    """Switches to the write-ahead log; SQLite does not wait itself for another who does so."""
    give_up = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            connection.execute("pragma journal_mode = wal")
        except sqlite3.OperationalError as error:
            busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            if not busy or time.monotonic() > give_up:
                raise
            time.sleep(0.005)
        else:
            return


def make_private(path: Path) -> None:
    """Before SQLite writes to it: a new log takes its rights from the database."""
    try:
        if path.exists():
            path.chmod(0o600)
        else:
            # Never one that exists: closing an open database would drop SQLite's locks on it.
            with contextlib.suppress(FileExistsError):
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise StoreUnavailable(f"the database can't be used ({error})") from error


def suspect(path: Path) -> None:
    """Damage was met in use: has the next start look closely, however large the file."""
    with contextlib.suppress(OSError):
        suspicion(path).touch()


def suspicion(path: Path) -> Path:
    return path.with_name(path.name + "-suspect")


def prepare(path: Path) -> sqlite3.Connection:
    """A connection to a database whose migrations have all run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with translated():
        connection = connect(path)
        try:
            migrate(connection)
        except BaseException:
            connection.close()
            raise
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
    # Not without need: a start must not fail because the disk is full.
    if done < len(MIGRATIONS):
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
    assert not current.strip(), f"a statement without an end: {current!r}"
    return found


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
    make_private(half)
    with (
        translated(),
        contextlib.closing(connect(source)) as origin,
        contextlib.closing(sqlite3.connect(half)) as copied,
    ):
        # In one step: between steps a commit of another would begin it anew, for ever. A reader
        # of a write-ahead log keeps nobody waiting.
        origin.backup(copied)
    half.replace(target)
