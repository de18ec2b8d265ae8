"""Takes snapshots of the database. The newest undamaged snapshot replaces a damaged or missing
database."""

import contextlib
import shutil
import sqlite3
import time
from pathlib import Path

from hermes.state.locks import FileLock
from hermes.state.paths import Home
from hermes.state.sqlite.connection import connect, translated
from hermes.state.sqlite.file_watch import FileWatch
from hermes.state.sqlite.files import make_private, wal_of
from hermes.types.errors import StoreUnavailable

SNAPSHOTS = 3
"""Maximum number of snapshots that are kept."""
SNAPSHOT_PREFIX = "hermes-"
DISK_SHARE = 0.1
"""The share of the free disk space that all snapshots together may use."""


def snapshots(home: Home) -> list[Path]:
    """Returns the snapshots, the newest first."""
    found = home.backups.glob(f"{SNAPSHOT_PREFIX}*.db")
    return sorted(found, key=lambda path: path.stat().st_mtime, reverse=True)


def database_size(home: Home) -> int:
    """Returns the size of the database in bytes; 0 if there is none."""
    return home.store.stat().st_size if home.store.exists() else 0


def snapshot_due(home: Home, age: float) -> bool:
    """Returns whether the newest snapshot is older than `age` seconds and the store has changed
    since that snapshot."""
    newest = next((path.stat().st_mtime for path in snapshots(home)), 0.0)
    files = (home.store, wal_of(home.store))
    changed = max((path.stat().st_mtime for path in files if path.exists()), default=0.0)
    return newest < min(changed, time.time() - age)


def take_due_snapshot(home: Home, watch: FileWatch, age: float) -> None:
    """Takes a snapshot if one is due, unless another process is taking one."""
    with FileLock(home.run / "snapshot.lock") as lock:
        if lock.try_acquire() and snapshot_due(home, age):
            _remove_unfinished(home)
            take_snapshot(home, watch)


def take_snapshot(home: Home, watch: FileWatch) -> Path:
    """Takes a consistent copy of the store.

    Raises StoreUnavailable if the disk has no room, or if `watch` finds that a file of the database
    was removed, replaced or truncated. In both cases the older snapshots are kept.
    """
    watch.check()
    kept = _room(home)
    target = home.backups / f"{SNAPSHOT_PREFIX}{time.time_ns() // 1_000_000}.db"
    half = target.with_suffix(".part")
    try:
        copy(home.store, half)
        # The file is checked again, because it may have been replaced between the first check and
        # the opening.
        watch.check()
        half.replace(target)
    finally:
        half.unlink(missing_ok=True)
    for old in snapshots(home)[kept:]:
        old.unlink(missing_ok=True)
    return target


def _remove_unfinished(home: Home) -> None:
    """Removes incomplete copies of processes that were killed while they took a snapshot."""
    for path in home.backups.glob(f"{SNAPSHOT_PREFIX}*.part*"):
        path.unlink(missing_ok=True)


def _room(home: Home) -> int:
    """Returns the number of snapshots that may be kept, including the snapshot that is about to be
    taken. Raises StoreUnavailable if there is no room for a snapshot."""
    size = max(database_size(home) + wal_of(home.store).stat().st_size, 1)
    used = sum(path.stat().st_size for path in snapshots(home))
    room = int((shutil.disk_usage(home.backups).free + used) * DISK_SHARE)
    if room < size:
        raise StoreUnavailable(
            f"a snapshot of {size >> 20} MB would use more than a tenth of the free disk: make room"
        )
    return min(room // size, SNAPSHOTS)


def copy(source: Path, target: Path) -> None:
    """Copies a database while other processes use it (an online backup). Raises an error if the
    source does not exist."""
    target.unlink(missing_ok=True)
    make_private(target)
    with (
        translated(),
        contextlib.closing(connect(source)) as origin,
        contextlib.closing(sqlite3.connect(target)) as copied,
    ):
        # The backup runs in one step, because a commit between two steps would restart it. The long
        # step delays no commit, because in WAL mode a reader does not block the writer.
        origin.backup(copied)
