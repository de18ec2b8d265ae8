"""Snapshots of the database, one of which replaces a damaged file."""

import contextlib
import sqlite3
import time
from pathlib import Path

from hermes.state.paths import Home
from hermes.state.sqlite.connection import connect, translated
from hermes.state.sqlite.files import make_private, wal_of

SNAPSHOTS = 3
"""How many are kept."""


def snapshots(home: Home) -> list[Path]:
    """The newest first."""
    found = home.backups.glob("state-*.db")
    return sorted(found, key=lambda path: path.stat().st_mtime, reverse=True)


def snapshot_due(home: Home, age: float) -> bool:
    """Whether the store has changed since a snapshot that is older than so many seconds."""
    newest = next((path.stat().st_mtime for path in snapshots(home)), 0.0)
    files = (home.store, wal_of(home.store))
    changed = max(path.stat().st_mtime for path in files if path.exists())
    return newest < min(changed, time.time() - age)


def take_snapshot(home: Home) -> Path:
    """A consistent copy of the store beside the older ones."""
    target = home.backups / f"state-{time.time_ns() // 1_000_000}.db"
    copy(home.store, target)
    for old in snapshots(home)[SNAPSHOTS:]:
        old.unlink(missing_ok=True)
    return target


def copy(source: Path, target: Path) -> None:
    """An online backup that appears under its name only when it is complete."""
    half = target.with_suffix(".part")
    half.unlink(missing_ok=True)
    make_private(half)
    with (
        translated(),
        contextlib.closing(connect(source)) as origin,
        contextlib.closing(sqlite3.connect(half)) as copied,
    ):
        # In one step: a commit between two steps would restart the backup, under load for ever.
        # Nobody waits for it, because a reader of a WAL blocks no writer.
        origin.backup(copied)
    half.replace(target)
