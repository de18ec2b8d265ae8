"""Proves which processes are alive.

Each process holds a lock on a file of its own. The kernel frees the lock when the process ends,
whatever ended it, so neither clocks nor process ids have to be trusted.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

from hermes.types.identity import OwnerId, new_id


class OwnerLock:
    """This process's proof that it is alive; held while the context is open."""

    def __init__(self, folder: Path) -> None:
        self.id = OwnerId(new_id())
        self._path = lock_path(folder, self.id)
        self._descriptor = -1

    def __enter__(self) -> Self:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        while True:
            self._descriptor = os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
            if _is_open_at(self._path, self._descriptor):
                return self
            # Another process removed the file before we had locked it.
            os.close(self._descriptor)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._path.unlink(missing_ok=True)
        os.close(self._descriptor)


def lock_path(folder: Path, owner: OwnerId) -> Path:
    return folder / f"owner-{owner}.lock"


def is_alive(folder: Path, owner: OwnerId) -> bool:
    """Whether the owner's lock is held. A process that ended cleanly has removed its file."""
    try:
        descriptor = os.open(lock_path(folder, owner), os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        # Shared: two processes that check at once must not take each other for the owner.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def dead_among(folder: Path, owners: Iterable[OwnerId]) -> list[OwnerId]:
    """The owners whose lock nobody holds."""
    return [owner for owner in owners if not is_alive(folder, owner)]


def unclean(folder: Path) -> list[Path]:
    """Lock files of processes that were killed: they exist, and nobody holds the lock."""
    return [
        path
        for path in folder.glob("owner-*.lock")
        if not is_alive(folder, OwnerId(path.stem.removeprefix("owner-")))
    ]


def sweep_up(folder: Path) -> None:
    """Removes the lock files of processes that were killed."""
    for path in unclean(folder):
        with contextlib.suppress(FileNotFoundError):
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
            except BlockingIOError:
                continue
            finally:
                os.close(descriptor)


def _is_open_at(path: Path, descriptor: int) -> bool:
    try:
        return path.stat().st_ino == os.fstat(descriptor).st_ino
    except FileNotFoundError:
        return False
