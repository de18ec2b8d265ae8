"""Looks at the database before it is opened, and sets a damaged one aside.

Nobody may touch the file of a living process: each holds a shared lock while it works on the store,
and setting aside needs the lock alone. The database itself is never opened but by SQLite: closing
any descriptor of it would drop the locks that SQLite holds.
"""

import contextlib
import logging
import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

from hermes.state.locks import FileLock
from hermes.state.owners import sweep_up, unclean
from hermes.state.paths import Home
from hermes.state.schema import MIGRATIONS
from hermes.state.sqlite import connect, copy, make_private, statements, suspicion, translated
from hermes.types.errors import StoreDamaged, StoreUnavailable

log = logging.getLogger(__name__)

CHECKED_BYTES = 256 << 20
"""A larger file is not read through at the start: its damage shows when it is met."""
SNAPSHOTS = 3


@contextlib.contextmanager
def guarded(home: Home) -> Iterator[None]:
    """A sound database to open, for as long as the block lasts."""
    home.run.mkdir(parents=True, exist_ok=True)
    lock = FileLock(home.run / "store.lock")
    try:
        lock.share()
        # Before the look at the file: it merges the log and removes it, and is no proof of loss.
        lost = _lost_log(home)
        sweep_up(home.run)
        if (damage := _damage(home)) is not None:
            if not lock.try_acquire():
                raise StoreUnavailable(
                    f"{damage}, and another hermes process works on the store: stop it first"
                )
            # Another start may have mended it before we had the lock.
            if (damage := _damage(home)) is not None:
                set_aside(home, damage)
        elif lost:
            log.error(
                "%s-wal is missing though the last process was killed: what it committed last"
                " may be gone. Somebody or something removed it.",
                home.store,
            )
        lock.share()
        yield
    finally:
        _leave(home, lock)


def _damage(home: Home) -> str | None:
    if home.store.exists() and home.store.stat().st_size == 0 and snapshots(home):
        return "the database is empty, though there are snapshots of it"
    return damage_of(home.store)


def damage_of(path: Path) -> str | None:
    """What is wrong with the file; None for a sound or a missing one."""
    if not path.exists():
        return None
    closely = suspicion(path).exists()
    try:
        with translated(), contextlib.closing(connect(path)) as connection:
            if damage := _unlike_schema(connection):
                return damage
            if closely or path.stat().st_size <= CHECKED_BYTES:
                check = "integrity_check" if closely else "quick_check"
                found: str = connection.execute(f"pragma {check}(1)").fetchone()[0]
                if found != "ok":
                    return found
            if closely:
                _index_anew(connection)
    except StoreDamaged as error:
        return str(error)
    except sqlite3.Error as error:
        return f"the database is damaged ({error})"
    suspicion(path).unlink(missing_ok=True)
    return None


def _unlike_schema(connection: sqlite3.Connection) -> str | None:
    """What the database lacks of the tables and columns that its version has."""
    version: int = connection.execute("pragma user_version").fetchone()[0]
    with contextlib.closing(sqlite3.connect(":memory:")) as pattern:
        for _, script in MIGRATIONS[:version]:
            for statement in statements(script):
                pattern.execute(statement)
        lacking = _names(pattern) - _names(connection)
    return f"the database lacks {min(lacking)}" if lacking else None


def _names(connection: sqlite3.Connection) -> set[tuple[str, str, str]]:
    found = connection.execute(
        "select m.type, m.name, coalesce(c.name, '') from sqlite_master m"
        " left join pragma_table_info(m.name) c"
    )
    return set(found)


def _index_anew(connection: sqlite3.Connection) -> None:
    """The full-text index can be damaged where no check of the file sees it."""
    connection.execute("begin immediate")
    connection.execute("insert into messages_fts (messages_fts) values ('delete-all')")
    connection.execute(
        "insert into messages_fts (rowid, text)"
        " select id, text from messages where transient = 0 and text <> ''"
    )
    connection.execute("commit")


def set_aside(home: Home, damage: str) -> None:
    """Keeps the damaged files for a look, and goes on from the newest sound snapshot.

    The damaged file stays in place until the sound one replaces it: a start that is killed here, or
    finds the disk full, leaves the next one the same work to do.
    """
    name = f"damaged-{time.strftime('%Y%m%d-%H%M%S')}-{time.time_ns() % 1000:03}"
    aside = home.backups / name
    try:
        snapshot = next((one for one in snapshots(home) if damage_of(one) is None), None)
        fresh = _copied(snapshot, home) if snapshot else None
        aside.mkdir(parents=True, mode=0o700)
        (aside / home.store.name).hardlink_to(home.store)
        for suffix in ("-wal", "-shm"):
            part = home.store.with_name(home.store.name + suffix)
            if part.exists():
                part.replace(aside / part.name)
        if fresh:
            fresh.replace(home.store)
        else:
            home.store.unlink()
    except OSError as error:
        raise StoreUnavailable(
            f"{damage}, and it can't be set aside in {aside} ({error}): make room or move"
            f" {home.store} away yourself"
        ) from error
    suspicion(home.store).unlink(missing_ok=True)
    log.error("the database is damaged (%s): set aside in %s", damage, aside)
    if snapshot:
        age = int(time.time() - snapshot.stat().st_mtime)
        log.error("went back to a snapshot, %s s old; later work is in %s", age, aside)
    else:
        log.error("there is no sound snapshot: starting with an empty database")


def _copied(snapshot: Path, home: Home) -> Path:
    fresh = home.store.with_suffix(".part")
    fresh.unlink(missing_ok=True)
    make_private(fresh)
    shutil.copyfile(snapshot, fresh)
    with fresh.open("rb") as file:
        os.fsync(file.fileno())
    return fresh


def snapshots(home: Home) -> list[Path]:
    """The newest first."""
    found = home.backups.glob("state-*.db")
    return sorted(found, key=lambda path: path.stat().st_mtime, reverse=True)


def snapshot_due(home: Home, age: float) -> bool:
    """Whether the store has changed since a snapshot that is older than so many seconds."""
    newest = next((path.stat().st_mtime for path in snapshots(home)), 0.0)
    changed = max(path.stat().st_mtime for path in (home.store, _log_of(home)) if path.exists())
    return newest < min(changed, time.time() - age)


def take_snapshot(home: Home) -> Path:
    """A consistent copy of the store beside the older ones."""
    target = home.backups / f"state-{time.time_ns() // 1_000_000}.db"
    copy(home.store, target)
    for old in snapshots(home)[SNAPSHOTS:]:
        old.unlink(missing_ok=True)
    return target


def _leave(home: Home, lock: FileLock) -> None:
    # The last process to exit has checkpointed the WAL, so a missing WAL no longer means lost
    # commits.
    if lock.try_acquire() and not _log_of(home).exists():
        sweep_up(home.run)
    lock.close()


def _log_of(home: Home) -> Path:
    return home.store.with_name(home.store.name + "-wal")


def _lost_log(home: Home) -> bool:
    """A killed process leaves its write-ahead log; a clean end removes both."""
    return home.store.exists() and bool(unclean(home.run)) and not _log_of(home).exists()
