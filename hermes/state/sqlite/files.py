"""The files of a database: their names and their access rights."""

import contextlib
import os
from pathlib import Path

from hermes.types.errors import StoreUnavailable


def wal_of(path: Path) -> Path:
    """Returns the path of the database's write-ahead log."""
    return path.with_name(path.name + "-wal")


def make_private(path: Path) -> None:
    """Creates the file, or restricts an existing file to its owner, before SQLite writes to it.

    SQLite gives a new WAL the access rights of its database.
    """
    try:
        # With `O_EXCL`, an existing database is not opened here. If it were opened, closing its
        # descriptor would release SQLite's locks.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        restrict(path)
    except OSError as error:
        raise StoreUnavailable(f"the database can't be used ({error})") from error


def restrict(path: Path) -> None:
    """Restricts an existing file to its owner."""
    try:
        if path.stat().st_mode & 0o077:
            path.chmod(0o600)
    except OSError as error:
        raise StoreUnavailable(f"the database can't be used ({error})") from error


def parts_of(path: Path) -> tuple[Path, Path]:
    """Returns the files that SQLite keeps next to a database: the WAL and the index of the WAL."""
    return wal_of(path), path.with_name(path.name + "-shm")


def is_emptied(path: Path) -> bool:
    """Returns whether another program has truncated the database to 0 bytes, but not removed its
    WAL.

    Call this before SQLite opens the file, because SQLite deletes the WAL of an empty database.
    """
    return path.exists() and not path.stat().st_size and wal_of(path).exists()


def suspicion(path: Path) -> Path:
    """Returns the path of the marker file for suspected damage. If the file exists, the next start
    checks the whole database, whatever its size."""
    return path.with_name(path.name + "-suspect")


def suspect(path: Path) -> None:
    """Creates the marker file, which makes the next start check the whole database. Call this when
    a statement has found damage."""
    with contextlib.suppress(OSError):
        suspicion(path).touch()
