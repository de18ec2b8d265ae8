"""Looks at the database before it is opened, and sets a damaged one aside.

Nobody may touch the file of a living process: each holds a shared lock while it works on the store,
and setting aside needs the lock alone. The database itself is never opened but by SQLite: closing
any descriptor of it would drop the locks that SQLite holds.
"""

import contextlib
import fcntl
import logging
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from hermes.state.owners import unclean
from hermes.state.paths import Home
from hermes.state.sqlite import connect, copy, translated
from hermes.types.errors import StoreDamaged, StoreUnavailable

log = logging.getLogger(__name__)

CHECKED_BYTES = 256 << 20
"""A larger file is not read through at the start: its damage shows when it is met."""
SNAPSHOTS = 3


@contextlib.contextmanager
def guarded(home: Home) -> Iterator[None]:
    """A sound database to open, for as long as the block lasts."""
    home.run.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(home.run / "store.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        if (damage := damage_of(home.store)) is not None:
            _alone(descriptor, damage)
            # Somebody may have mended it while we waited for the lock.
            if (damage := damage_of(home.store)) is not None:
                set_aside(home, damage)
        elif _lost_log(home):
            log.error(
                "%s-wal is missing though the last process was killed: what it committed last"
                " may be gone. Somebody or something removed it.",
                home.store,
            )
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield
    finally:
        os.close(descriptor)


def damage_of(path: Path) -> str | None:
    """What is wrong with the file; None for a sound or a missing one."""
    if not path.exists():
        return None
    try:
        with translated(), contextlib.closing(connect(path)) as connection:
            connection.execute("select count(*) from sqlite_master").fetchone()
            if path.stat().st_size <= CHECKED_BYTES:
                found: str = connection.execute("pragma quick_check(1)").fetchone()[0]
                return None if found == "ok" else found
    except StoreDamaged as error:
        return str(error)
    return None


def set_aside(home: Home, damage: str) -> None:
    """Keeps the damaged files for a look, and goes on from the newest sound snapshot."""
    name = f"damaged-{time.strftime('%Y%m%d-%H%M%S')}-{time.time_ns() % 1000:03}"
    aside = home.backups / name
    aside.mkdir(parents=True, mode=0o700)
    for suffix in ("", "-wal", "-shm"):
        part = home.store.with_name(home.store.name + suffix)
        if part.exists():
            part.replace(aside / part.name)
    log.error("the database is damaged (%s): set aside in %s", damage, aside)
    for snapshot in snapshots(home):
        if damage_of(snapshot) is None:
            shutil.copyfile(snapshot, home.store)
            home.store.chmod(0o600)
            age = int(time.time() - snapshot.stat().st_mtime)
            log.error("went back to a snapshot, %s s old; later work is in %s", age, aside)
            return
    log.error("there is no sound snapshot: starting with an empty database")


def snapshots(home: Home) -> list[Path]:
    """The newest first."""
    found = home.backups.glob("state-*.db")
    return sorted(found, key=lambda path: path.stat().st_mtime, reverse=True)


def take_snapshot(home: Home) -> Path:
    """A consistent copy of the store beside the older ones."""
    target = home.backups / f"state-{time.time_ns() // 1_000_000}.db"
    copy(home.store, target)
    for old in snapshots(home)[SNAPSHOTS:]:
        old.unlink(missing_ok=True)
    return target


def _alone(descriptor: int, why: str) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise StoreUnavailable(
            f"{why}, and another hermes process works on the store: stop it first"
        ) from None


def _lost_log(home: Home) -> bool:
    """A killed process leaves its write-ahead log; a clean end removes both."""
    wal = home.store.with_name(home.store.name + "-wal")
    return home.store.exists() and bool(unclean(home.run)) and not wal.exists()
