"""Opens connections to the database, and translates SQLite's errors into ours."""

import contextlib
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from hermes.state.session_lock import LOCK_SESSION
from hermes.state.sqlite.files import restrict
from hermes.state.storable import require_storable
from hermes.types.errors import StoreDamaged, StoreUnavailable, TransactionConflict
from hermes.types.store import Work

T = TypeVar("T")

LOCK_SECONDS = 5.0
"""Seconds that a statement waits for another process that is writing."""

_CONFLICTS = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
_UNAVAILABLE = {
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_NOMEM,
}
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_is_text = str.__instancecheck__


def connect(path: Path) -> sqlite3.Connection:
    """Opens a connection in WAL mode whose commits survive a power failure. Never creates the
    file."""
    restrict(path)
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw",
        uri=True,
        timeout=LOCK_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
    )
    try:
        _use_wal(connection)
        connection.execute("pragma synchronous = full")
        connection.execute("pragma cache_size = -4000")
        connection.execute("pragma temp_store = memory")
    except BaseException:
        connection.close()
        raise
    return connection


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switches to WAL mode. If another process is switching at the same time, SQLite fails at once,
    so this function tries again."""
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


def examine(path: Path) -> sqlite3.Connection:
    """Opens a read-only connection that changes no byte of the file and creates no other file.

    The WAL is not read.
    """
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)


def drive(connection: sqlite3.Connection, work: Work[T]) -> T:
    """Runs the generator's statements and returns its result."""
    try:
        sql, parameters = next(work)
        while True:
            if sql == LOCK_SESSION:
                # SQLite runs one write transaction at a time, so no session needs a lock.
                sql, parameters = work.send([])
                continue
            # This code runs for every statement. Searching the joined text is faster than a loop in
            # Python.
            if "\0" in "".join(filter(_is_text, parameters)):
                for text in filter(_is_text, parameters):
                    require_storable(text)
            cursor = connection.execute(sql, parameters)
            # For a statement that returns no rows, `fetchall` is not called, because each call
            # has to wait for the GIL.
            sql, parameters = work.send(cursor.fetchall() if cursor.description else [])
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        work.close()


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """Translates SQLite's errors about the disk, the lock and the file into ours."""
    try:
        yield
    except sqlite3.Error as error:
        kind = error_class(error)
        if kind is None:
            raise
        if kind is StoreDamaged:
            raise StoreDamaged(f"the database is damaged ({error})") from error
        raise kind(f"the database can't be used now ({error})") from error


def error_class(error: BaseException) -> type[StoreUnavailable] | None:
    """Returns our error class for an error that concerns the disk, the lock or the file. Returns
    None for an error in the statement."""
    if not isinstance(error, sqlite3.DatabaseError) or not hasattr(error, "sqlite_errorcode"):
        return None
    code = error.sqlite_errorcode & 0xFF
    if code in _DAMAGED:
        return StoreDamaged
    if code in _CONFLICTS:
        return TransactionConflict
    return StoreUnavailable if code in _UNAVAILABLE else None
