"""The processes that work on the store, and the leases that they hold."""

import os
import platform

from hermes.types.identity import OwnerId
from hermes.types.store import Work


def register(owner: OwnerId, kind: str, now: float) -> Work[None]:
    """Makes a process known to the others."""
    yield (
        "insert into owners (id, kind, host, pid, started_at) values (?, ?, ?, ?, ?)",
        (owner, kind, platform.node(), os.getpid(), now),
    )


def others(owner: OwnerId) -> Work[dict[OwnerId, str]]:
    """Every other registered process, with its kind."""
    rows = yield "select id, kind from owners where id <> ?", (owner,)
    return {OwnerId(id): kind for id, kind in rows}


def forget(owner: OwnerId) -> Work[None]:
    """Removes an owner that has left nothing to take over."""
    # The epochs stay, so that a later holder never has the same one.
    yield "update leases set owner = '' where owner = ?", (owner,)
    yield "delete from owners where id = ?", (owner,)


def leave(owner: OwnerId) -> Work[None]:
    """Removes an owner that ends, unless it leaves something for others to take over."""
    rows = yield (
        "select 1 from turns where owner = ? and state in ('running', 'suspended')"
        " union all select 1 from inbox where owner = ? and state = 'pending' limit 1",
        (owner, owner),
    )
    if not rows:
        yield from forget(owner)


def touch(owner: OwnerId) -> Work[None]:
    """The smallest write: it shows whether the disk accepts writes again."""
    yield "update owners set started_at = started_at where id = ?", (owner,)


def holds_lease(name: str, owner: OwnerId, epoch: int) -> Work[bool]:
    """Whether the owner still holds the lease that it took with this epoch."""
    rows = yield (
        "select 1 from leases where name = ? and owner = ? and epoch = ?",
        (name, owner, epoch),
    )
    return bool(rows)


def claim_lease(name: str, owner: OwnerId, dead: set[OwnerId], now: float) -> Work[int | None]:
    """The epoch of a lease that the owner holds from now on; None while a living owner has it."""
    rows = yield "select owner, epoch from leases where name = ?", (name,)
    if rows and rows[0][0] not in ("", owner, *dead):
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
