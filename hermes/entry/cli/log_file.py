"""The log file in a home (the data folder of Hermes): private, bounded in size, and shared by all
processes that use the home."""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

REOPEN_SECONDS = 1.0
"""Seconds between two checks whether another process has rotated the file."""


class LogFile:
    """Appends to a file. A full file is renamed to `hermes.log.1`, and the oldest file is
    deleted."""

    def __init__(
        self,
        path: Path,
        most_bytes: int,
        backups: int,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`backups` is the number of full files to keep."""
        self._path = path
        self._most_bytes = most_bytes
        self._backups = backups
        self._clock = clock
        self._descriptor: int | None = None
        self._size = 0
        self._checked = 0.0

    def write(self, data: bytes) -> None:
        """Appends complete lines. Raises OSError if these lines can't be written. Later calls can
        still succeed."""
        now = self._clock()
        if now - self._checked >= REOPEN_SECONDS:
            self._checked = now
            self._check()
        if self._descriptor is None:
            self._open()
        if self._size and self._size + len(data) > self._most_bytes:
            self._rotate()
        assert self._descriptor is not None
        # All lines are written in one call, so that lines of two processes do not mix.
        self._size += os.write(self._descriptor, data)

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _open(self) -> None:
        self._path.parent.mkdir(mode=0o700, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        self._descriptor = os.open(self._path, flags, 0o600)
        os.fchmod(self._descriptor, 0o600)
        self._size = os.fstat(self._descriptor).st_size

    def _check(self) -> None:
        """Closes the file if another process has rotated or moved it. Otherwise only updates
        `_size`."""
        if self._descriptor is None:
            return
        own = os.fstat(self._descriptor)
        self._size = own.st_size
        with suppress(FileNotFoundError):
            named = self._path.stat()
            if (named.st_dev, named.st_ino) == (own.st_dev, own.st_ino):
                return
        self.close()

    def _rotate(self) -> None:
        self._check()
        if self._descriptor is None:
            # Another process has rotated the file, or somebody has moved the file away.
            self._open()
            return
        self.close()
        for number in range(self._backups, 0, -1):
            older = self._numbered(number - 1) if number > 1 else self._path
            with suppress(FileNotFoundError):
                older.replace(self._numbered(number))
        if not self._backups:
            self._path.unlink(missing_ok=True)
        self._open()

    def _numbered(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")
