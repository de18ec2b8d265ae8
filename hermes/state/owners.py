"""Which processes work on the store, and which of them are dead.

A process proves that it lives by holding a lock on a file of its own: the kernel frees it with the
process, whatever killed it, so neither clocks nor pids have to be believed.
"""

import os
from pathlib import Path
from types import TracebackType
from typing import Self

from hermes.state.locks import FileLock, is_held, remove_if_free
from hermes.types.identity import OwnerId, new_id
from hermes.types.protocols import Work


class OwnerLock:
    """This process's proof of life; held while the context is open."""

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
            # Another process took the file, not yet locked, for that of a dead owner.
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
    """Whether the owner's lock is held. A missing file is a dead owner: it left cleanly."""
    return is_held(lock_path(folder, owner))


def unclean(folder: Path) -> list[Path]:
    """Lock files whose owner was killed: present, and free."""
    return [path for path in folder.glob("owner-*.lock") if not is_held(path)]


def sweep_up(folder: Path) -> None:
    """Removes the lock files of the dead."""
    for path in folder.glob("owner-*.lock"):
        remove_if_free(path)


def register(owner: OwnerId, kind: str, now: float) -> Work[None]:
    yield (
        "insert into owners (id, kind, pid, started_at) values (?, ?, ?, ?)",
        (owner, kind, os.getpid(), now),
    )


def others(owner: OwnerId) -> Work[dict[OwnerId, str]]:
    """Every other process that is known, and its kind."""
    rows = yield "select id, kind from owners where id <> ?", (owner,)
    return {OwnerId(id): kind for id, kind in rows}


def forget(owner: OwnerId) -> Work[None]:
    """Drops an owner that has nothing left to be taken over."""
    yield "delete from leases where owner = ?", (owner,)
    yield "delete from owners where id = ?", (owner,)


def leave(owner: OwnerId) -> Work[None]:
    """A clean end: gone at once, unless something is left for others to take over."""
    rows = yield (
        "select 1 from turns where owner = ? and state in ('running', 'suspended')"
        " union all select 1 from inbox where owner = ? and state = 'pending' limit 1",
        (owner, owner),
    )
    if not rows:
        yield from forget(owner)


def claim_lease(name: str, owner: OwnerId, dead: set[OwnerId], now: float) -> Work[int | None]:
    """The epoch of a lease that is ours from now on; None while a living owner has it."""
    rows = yield "select owner, epoch from leases where name = ?", (name,)
    if rows and rows[0][0] != owner and rows[0][0] not in dead:
        return None
    epoch: int = rows[0][1] + 1 if rows else 1
    # Conditional, for stores in which another claim may commit between the two statements.
    taken = yield (
        "insert into leases (name, owner, epoch, taken_at) values (?, ?, ?, ?)"
        " on conflict (name) do update set owner = excluded.owner, epoch = excluded.epoch,"
        " taken_at = excluded.taken_at where leases.epoch = excluded.epoch - 1 returning epoch",
        (name, owner, epoch, now),
    )
    return epoch if taken else None
