"""Finds out which processes of the store are alive.

Each process holds a lock on a file of its own. The kernel frees the lock when the process ends for
any reason. So the result does not depend on clocks or process ids.
"""

from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

from hermes.state.locks import FileLock, is_held, remove_if_free
from hermes.types.identity import OwnerId, new_id


class OwnerLock:
    """Holds a lock until the `with` block ends. The lock proves that this process is alive."""

    def __init__(self, folder: Path) -> None:
        self.id = OwnerId(new_id())
        self._path = lock_path(folder, self.id)
        self._lock: FileLock | None = None

    def __enter__(self) -> Self:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        while True:
            lock = FileLock(self._path)
            lock.acquire()
            if not lock.is_removed():
                self._lock = lock
                return self
            # Another process removed the file before we had locked it, so a new file must be
            # locked.
            lock.close()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._path.unlink(missing_ok=True)
        assert self._lock is not None
        self._lock.close()


def lock_path(folder: Path, owner: OwnerId) -> Path:
    return folder / f"owner-{owner}.lock"


def is_alive(folder: Path, owner: OwnerId) -> bool:
    """Returns whether the process holds its lock. A process that ended cleanly has removed its lock
    file, so it does not count as alive."""
    return is_held(lock_path(folder, owner))


def dead_among(folder: Path, owners: Iterable[OwnerId]) -> list[OwnerId]:
    """Returns the processes among `owners` that have ended: their locks are free."""
    return [owner for owner in owners if not is_alive(folder, owner)]


def unclean(folder: Path) -> list[Path]:
    """Returns the lock files of killed processes. A killed process leaves its lock file, but the
    file is no longer locked."""
    return [path for path in folder.glob("owner-*.lock") if not is_held(path)]


def sweep_up(folder: Path) -> None:
    """Removes the lock files of killed processes."""
    for path in folder.glob("owner-*.lock"):
        remove_if_free(path)
