"""Notices when another program removes, replaces or truncates the files of an open database."""

import contextlib
import os
import sqlite3
import threading
from pathlib import Path

from hermes.state.sqlite.connection import connect
from hermes.state.sqlite.files import is_emptied, suspect, wal_of
from hermes.types.errors import StoreUnavailable


class FileWatch:
    """Remembers the files of a database that this process has open, and checks whether they are
    still the same. A check needs two calls of `stat`.
    """

    def __init__(self, path: Path) -> None:
        """Remembers the files. Raises StoreUnavailable if the database or its WAL does not
        exist."""
        self._path = path
        self._files = [_WatchedFile(one) for one in (path, wal_of(path))]
        self._truncated = False
        self._checking = threading.Lock()

    def check(self) -> None:
        """Raises StoreUnavailable if a file was removed, replaced or truncated after this process
        had opened it."""
        # Only one thread checks at a time. Otherwise a thread could read the size, another thread
        # could store a larger size, and the first thread would take the difference for a
        # truncation.
        with self._checking:
            for file in self._files:
                size = file.current_size()
                if size is None:
                    raise self._lost(f"{file.path} was removed or replaced")
                if size < file.size and not self._truncated:
                    self._truncated = not self._is_whole()
                file.size = size
        if self._truncated:
            raise self._lost(f"{self._path} or its WAL was truncated")

    def _is_whole(self) -> bool:
        """Returns whether every page can be read. Call this when the file has become shorter. Such
        a file may still be complete, because `VACUUM` also shortens a file."""
        if is_emptied(self._path):
            suspect(self._path)
            return False
        try:
            # A new connection is used, because an existing connection may read pages from its cache
            # and not from the file.
            with contextlib.closing(connect(self._path)) as connection:
                found: str = connection.execute("pragma quick_check(1)").fetchone()[0]
        except (sqlite3.Error, StoreUnavailable):
            found = "unreadable"
        if found != "ok":
            suspect(self._path)
        return found == "ok"

    def _lost(self, what: str) -> StoreUnavailable:
        return StoreUnavailable(
            f"{what} by another program: nothing is stored any more. Put the file back under its"
            " name, or restart hermes, which then restores the newest snapshot."
        )


class _WatchedFile:
    def __init__(self, path: Path) -> None:
        self.path = str(path)
        try:
            found = path.stat()
        except OSError as error:
            raise StoreUnavailable(f"the database can't be used ({error})") from error
        self._identity = (found.st_dev, found.st_ino)
        self.size = found.st_size
        """Size of the file in bytes at the last check."""

    def current_size(self) -> int | None:
        """Returns the size of the file in bytes; None if it was removed or replaced."""
        try:
            found = os.stat(self.path)  # noqa: PTH116  # half the time of Path.stat
        except OSError:
            return None
        return found.st_size if (found.st_dev, found.st_ino) == self._identity else None
