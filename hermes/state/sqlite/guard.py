"""Checks the database before it is opened, and quarantines a damaged one.

The file of a running process must not be replaced: each process holds a shared lock while it has
the store open, and the quarantine needs the lock exclusively. Only SQLite opens the database
itself: closing any other descriptor of it would release the locks that SQLite holds.
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
from hermes.state.paths import Home
from hermes.state.schema import MIGRATIONS
from hermes.state.sqlite.connection import connect, translated
from hermes.state.sqlite.files import make_private, suspicion, wal_of
from hermes.state.sqlite.migration import outdated, statements
from hermes.state.sqlite.owner_locks import sweep_up, unclean
from hermes.state.sqlite.snapshots import snapshots
from hermes.types.errors import StoreDamaged, StoreUnavailable

log = logging.getLogger(__name__)

CHECKED_BYTES = 256 << 20
"""Bytes. A larger file is not checked completely at the start: damage is found in use."""


@contextlib.contextmanager
def guarded(home: Home) -> Iterator[None]:
    """Makes sure that the database can be opened safely until the block ends."""
    home.run.mkdir(parents=True, exist_ok=True)
    lock = FileLock(home.run / "store.lock")
    try:
        lock.share()
        # Before the check of the file, which checkpoints the WAL and removes it.
        lost = _lost_wal(home)
        sweep_up(home.run)
        if (damage := _damage(home)) is not None:
            if not lock.try_acquire():
                raise StoreUnavailable(
                    f"{damage}, and another hermes process works on the store: stop it first"
                )
            # Another start may have repaired it before we had the lock.
            if (damage := _damage(home)) is not None:
                quarantine(home, damage)
        elif lost:
            log.error(
                "%s-wal is missing although the last process was killed: its last commits may be"
                " lost. Another program has removed the file.",
                home.store,
            )
        if outdated(home.store) and not lock.try_acquire():
            raise StoreUnavailable(
                "the database must be upgraded, and another hermes process of an earlier version"
                " works on it: stop it first, for example with `hermes gateway stop`"
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
    """A description of the damage to the file; None if it is sound or missing."""
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
                _reindex(connection)
    except StoreDamaged as error:
        return str(error)
    except sqlite3.Error as error:
        return f"the database is damaged ({error})"
    suspicion(path).unlink(missing_ok=True)
    return None


def _unlike_schema(connection: sqlite3.Connection) -> str | None:
    """A table or column of its schema version that the database lacks."""
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


def _reindex(connection: sqlite3.Connection) -> None:
    """Rebuilds the full-text index: no check of the file finds all damage in it."""
    connection.execute("begin immediate")
    connection.execute("insert into messages_fts (messages_fts) values ('delete-all')")
    connection.execute(
        "insert into messages_fts (rowid, text)"
        " select id, text from messages where transient = 0 and text <> ''"
    )
    connection.execute("commit")


def quarantine(home: Home, damage: str) -> None:
    """Moves the damaged files to a folder of their own, and restores the newest sound snapshot.

    The damaged file stays in place until the sound one replaces it: if this start is killed or
    finds the disk full, the next start does the same work.
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
            f"{damage}, and it can't be quarantined in {aside} ({error}): make room or move"
            f" {home.store} away yourself"
        ) from error
    suspicion(home.store).unlink(missing_ok=True)
    log.error("the database is damaged (%s): quarantined in %s", damage, aside)
    if snapshot:
        age = int(time.time() - snapshot.stat().st_mtime)
        log.error("restored a snapshot, %s s old; later work is in %s", age, aside)
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


def _leave(home: Home, lock: FileLock) -> None:
    """Frees the shared lock.

    The last process to exit has checkpointed the WAL, so a missing WAL no longer means lost
    commits: it removes the lock files of processes that were killed.
    """
    if lock.try_acquire() and not wal_of(home.store).exists():
        sweep_up(home.run)
    lock.close()


def _lost_wal(home: Home) -> bool:
    """Whether the WAL of a killed process is missing; a process that ends cleanly removes both."""
    return home.store.exists() and bool(unclean(home.run)) and not wal_of(home.store).exists()
