"""File locks between processes. The kernel frees a lock when its process ends for any reason."""

import fcntl
import os
import time
from pathlib import Path
from types import TracebackType
from typing import Self

LOCK_POLL_SECONDS = 0.005


class FileLock:
    """An open lock file, which is not locked at first. Closing it frees the lock.

    Two FileLocks on one file exclude each other even within one process. Child processes do not
    inherit the lock.
    """

    def __init__(self, path: Path) -> None:
        """Creates the file if it is missing. Only the user who owns the file can read it."""
        self.path = path
        self._descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        os.close(self._descriptor)

    def acquire(self) -> None:
        """Waits for the exclusive lock."""
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)

    def try_acquire(self) -> bool:
        """Tries to take the exclusive lock. Returns False if another process holds the exclusive or
        the shared lock. If this object holds a shared lock, a failed attempt may free that lock.
        """
        return _locked(self._descriptor, fcntl.LOCK_EX)

    def acquire_within(self, seconds: float) -> bool:
        """Waits for the exclusive lock for at most this many seconds. Returns False if the lock did
        not become free in this time."""
        return self._within(seconds, fcntl.LOCK_EX)

    def share_within(self, seconds: float) -> bool:
        """Waits for a shared lock for at most this many seconds. Returns False if the lock did not
        become free in this time."""
        return self._within(seconds, fcntl.LOCK_SH)

    def share(self) -> None:
        """Waits for a shared lock. Downgrades an exclusive lock that this object holds."""
        fcntl.flock(self._descriptor, fcntl.LOCK_SH)

    def _within(self, seconds: float, kind: int) -> bool:
        deadline = time.monotonic() + seconds
        while not _locked(self._descriptor, kind):
            if time.monotonic() > deadline:
                return False
            time.sleep(LOCK_POLL_SECONDS)
        return True

    def is_removed(self) -> bool:
        """Returns whether the file was removed or replaced. If so, the lock no longer excludes
        other processes."""
        try:
            return self.path.stat().st_ino != os.fstat(self._descriptor).st_ino
        except FileNotFoundError:
            return True

    def write(self, data: bytes) -> None:
        """Replaces the content of the file."""
        os.pwrite(self._descriptor, data, 0)
        os.ftruncate(self._descriptor, len(data))


def is_held(path: Path) -> bool:
    """Returns whether a process holds the exclusive lock; False if the file does not exist."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        # This check takes a shared lock, so that two processes can check at the same time.
        return not _locked(descriptor, fcntl.LOCK_SH)
    finally:
        os.close(descriptor)


def remove_if_free(path: Path) -> None:
    """Removes the lock file unless a process holds the lock."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if _locked(descriptor, fcntl.LOCK_EX):
            path.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def _locked(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
