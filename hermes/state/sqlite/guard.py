"""Checks the database before it is opened, and replaces it if it is damaged or missing. A database
that a process has open must not be replaced. Therefore each process holds a shared lock while it
has the store open, and a replacement needs the exclusive lock. This module opens the database file
only through SQLite, because closing any other descriptor of the file would release the locks that
SQLite holds.
"""

import contextlib
import logging
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from hermes.state.locks import FileLock
from hermes.state.paths import Home
from hermes.state.sqlite.connection import connect, translated
from hermes.state.sqlite.files import is_emptied, suspicion, wal_of
from hermes.state.sqlite.migration import is_blank, outdated
from hermes.state.sqlite.owner_locks import sweep_up, unclean
from hermes.state.sqlite.quarantine import finish_restore, is_restore_pending, quarantine
from hermes.state.sqlite.renaming import rename_former
from hermes.state.sqlite.schema_check import missing_part
from hermes.state.sqlite.snapshots import snapshots
from hermes.types.errors import StoreDamaged, StoreUnavailable

log = logging.getLogger(__name__)

SHARE_SECONDS = 5.0
"""Seconds that a starting process waits for a process that holds the exclusive lock."""
CHECKED_BYTES = 256 << 20
"""Size in bytes above which a file is not checked completely at the start. Damage in such a file is
found when the damaged part is read."""


@contextlib.contextmanager
def guarded(home: Home) -> Iterator[FileLock]:
    """Makes sure that the database can be opened safely until the block ends.

    Yields the shared lock that every process holds while it has the store open.
    """
    try:
        home.run.mkdir(parents=True, exist_ok=True)
        lock = FileLock(home.run / "store.lock")
    except OSError as error:
        raise _not_opened(home, error) from error
    try:
        try:
            _make_sound(home, lock)
        except OSError as error:
            raise _not_opened(home, error) from error
        yield lock
    finally:
        _leave(home, lock)


def _make_sound(home: Home, lock: FileLock) -> None:
    """Checks the database. A damaged database is replaced by a snapshot. When the function returns,
    this process has a shared lock."""
    if not lock.share_within(SHARE_SECONDS):
        raise StoreUnavailable(
            f"another hermes process repairs, upgrades or copies {home.store}: wait until it has"
            " finished"
        )
    rename_former(home, lock)
    # `_lost_wal` must be called before `_damage`. `_damage` opens the database, and thereby
    # checkpoints and removes the WAL.
    lost = _lost_wal(home)
    sweep_up(home.run)
    if (damage := _damage(home)) is not None:
        if not lock.try_acquire():
            raise StoreUnavailable(
                f"{damage}, and another hermes process uses the store: stop that process first"
            )
        # Another starting process may have repaired the database before we got the lock. So the
        # database is checked again.
        if is_restore_pending(home):
            finish_restore(home)
        elif (damage := _damage(home)) is not None:
            quarantine(home, damage)
    elif lost:
        log.error(
            "%s-wal is missing although the last process was killed: its last commits may be"
            " lost. Another program has removed the file.",
            home.store,
        )
    if outdated(home.store) and not lock.try_acquire():
        raise StoreUnavailable(
            "the database must be upgraded, but a hermes process of an earlier version"
            " still uses it: stop that process, for example with `hermes gateway stop`"
        )
    lock.share()


def _not_opened(home: Home, error: OSError) -> StoreUnavailable:
    return StoreUnavailable(f"the store in {home.root} can't be opened ({error})")


def _damage(home: Home) -> str | None:
    if is_restore_pending(home):
        return f"{home.store} was being replaced by a snapshot"
    if not home.store.exists():
        if snapshots(home) or wal_of(home.store).exists():
            return f"{home.store} is missing: another program has removed it"
        return None
    if (damage := damage_of(home.store)) is None and is_blank(home.store) and snapshots(home):
        return f"{home.store} is empty, though there are snapshots of it"
    return damage


def damage_of(path: Path) -> str | None:
    """Returns a description of the damage to the file; None if the file is sound or missing."""
    if not path.exists():
        return None
    if is_emptied(path):
        return f"{path} was truncated"
    closely = suspicion(path).exists()
    # If there is a WAL, an incomplete page is not damage, because a checkpoint may have been
    # interrupted.
    size = 0 if wal_of(path).exists() else path.stat().st_size
    try:
        with translated(), contextlib.closing(connect(path)) as connection:
            if size % connection.execute("pragma page_size").fetchone()[0]:
                return f"{path} was truncated"
            if damage := missing_part(connection):
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


def _reindex(connection: sqlite3.Connection) -> None:
    """Rebuilds the full-text index, because SQLite's checks do not find all damage in this
    index."""
    connection.execute("begin immediate")
    connection.execute("insert into messages_fts (messages_fts) values ('delete-all')")
    connection.execute(
        "insert into messages_fts (rowid, text)"
        " select id, text from messages where transient = 0 and text <> ''"
    )
    connection.execute("commit")


def _leave(home: Home, lock: FileLock) -> None:
    """Frees the shared lock.

    If this is the last process and there is no WAL any more, the database file contains all
    commits. In this case, removes the lock files of killed processes. Otherwise the next process
    would conclude from these files and the missing WAL that commits were lost.
    """
    if lock.try_acquire() and not wal_of(home.store).exists():
        sweep_up(home.run)
    lock.close()


def _lost_wal(home: Home) -> bool:
    """Returns whether commits were lost because the WAL of a killed process is missing. A process
    that exits cleanly removes the WAL and its own lock file. So a lock file without a WAL means
    that a process was killed and that the WAL was lost afterwards."""
    return home.store.exists() and bool(unclean(home.run)) and not wal_of(home.store).exists()
