"""The files around a database: their names and their access rights."""

import contextlib
import os
from pathlib import Path

from hermes.types.errors import StoreUnavailable


def wal_of(path: Path) -> Path:
    """The write-ahead log of the database."""
    return path.with_name(path.name + "-wal")


def make_private(path: Path) -> None:
    """Creates the file or restricts it to its owner, before SQLite writes to it.

    SQLite gives a new WAL the access rights of its database.
    """
    try:
        if path.exists():
            path.chmod(0o600)
        else:
            # Never open an existing database: closing it would release SQLite's locks on it.
            with contextlib.suppress(FileExistsError):
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise StoreUnavailable(f"the database can't be used ({error})") from error


def suspicion(path: Path) -> Path:
    """The mark that makes the next start check the whole database, however large it is."""
    return path.with_name(path.name + "-suspect")


def suspect(path: Path) -> None:
    """Sets the mark, because a statement has met damage."""
    with contextlib.suppress(OSError):
        suspicion(path).touch()
