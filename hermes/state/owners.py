"""The processes that use the store, and the leases that they hold."""

import os
import platform

from hermes.types.identity import FolderId, OwnerId
from hermes.types.store import Work
from hermes.types.value import Value


class LeaseHolder(Value):
    """The process that holds a lease."""

    id: OwnerId
    host: str
    pid: int


def register(owner: OwnerId, kind: str, now: float, folder: FolderId | None = None) -> Work[None]:
    """Registers a process, so that other processes can see it."""
    yield (
        "insert into owners (id, kind, host, pid, started_at, folder) values (?, ?, ?, ?, ?, ?)",
        (owner, kind, platform.node(), os.getpid(), now, folder),
    )


def others(owner: OwnerId) -> Work[dict[OwnerId, str]]:
    """Returns every other registered process, with its kind."""
    rows = yield "select id, kind from owners where id <> ?", (owner,)
    return {OwnerId(id): kind for id, kind in rows}


def forget(owner: OwnerId) -> Work[None]:
    """Removes a process from the list of processes. Do not call this if the process has left work
    that other processes should take over."""
    # The leases keep their epochs (numbers that grow with each holder), so that a later holder
    # never gets the same epoch.
    yield "update leases set owner = '' where owner = ?", (owner,)
    yield "delete from owners where id = ?", (owner,)


def leave(owner: OwnerId) -> Work[None]:
    """Removes the process from the list of processes. Called when the process is about to end. Does
    nothing if the process leaves work that other processes should take over."""
    rows = yield (
        "select 1 from turns where owner = ? and state in ('running', 'suspended')"
        " union all select 1 from inbox where owner = ? and state = 'pending' limit 1",
        (owner, owner),
    )
    if not rows:
        yield from forget(owner)


def touch(owner: OwnerId) -> Work[None]:
    """Writes one unchanged row, to find out whether the disk accepts writes again."""
    yield "update owners set started_at = started_at where id = ?", (owner,)


def holds_lease(name: str, owner: OwnerId, epoch: int) -> Work[bool]:
    """Returns whether the process with the id `owner` still holds the lease. `epoch` is the epoch
    that `claim_lease` returned to the process."""
    rows = yield (
        "select 1 from leases where name = ? and owner = ? and epoch = ?",
        (name, owner, epoch),
    )
    return bool(rows)


def lease_holder(name: str) -> Work[LeaseHolder | None]:
    """Returns the process that holds the lease, or None if no registered process holds it. The
    returned process may be dead."""
    rows = yield (
        "select owners.id, owners.host, owners.pid from leases"
        " join owners on owners.id = leases.owner where leases.name = ?",
        (name,),
    )
    if not rows:
        return None
    id, host, pid = rows[0]
    return LeaseHolder(id=id, host=host, pid=pid)


def release_lease(name: str, owner: OwnerId, epoch: int) -> Work[None]:
    """Frees the lease, if the process with the id `owner` still holds the lease with this epoch."""
    yield (
        "update leases set owner = '' where name = ? and owner = ? and epoch = ?",
        (name, owner, epoch),
    )


def claim_lease(name: str, owner: OwnerId, dead: set[OwnerId], now: float) -> Work[int | None]:
    """Takes the lease for the process with the id `owner`. Returns the new epoch of the lease: a
    number that grows by one with each claim. Returns None if another living process holds the
    lease."""
    rows = yield "select owner, epoch from leases where name = ?", (name,)
    if rows and rows[0][0] not in ("", owner, *dead):
        return None
    epoch: int = rows[0][1] + 1 if rows else 1
    # On PostgreSQL, another process may claim the lease between the `select` and the `insert`. In
    # this case the epoch has changed since it was read, so nothing is written.
    taken = yield (
        "insert into leases (name, owner, epoch, taken_at) values (?, ?, ?, ?)"
        " on conflict (name) do update set owner = excluded.owner, epoch = excluded.epoch,"
        " taken_at = excluded.taken_at where leases.epoch = excluded.epoch - 1 returning epoch",
        (name, owner, epoch, now),
    )
    return epoch if taken else None
