"""Moves damaged files to a folder of their own, and restores the newest sound snapshot."""

import contextlib
import logging
import os
import shutil
import sqlite3
import time
from collections.abc import Iterable
from pathlib import Path

from hermes.state.paths import Home, sync_folder
from hermes.state.restored import RestoredWork, close_open_work
from hermes.state.sqlite.connection import drive, examine, translated
from hermes.state.sqlite.files import make_private, parts_of, suspicion
from hermes.state.sqlite.migration import prepare
from hermes.state.sqlite.schema_check import missing_part
from hermes.state.sqlite.snapshots import snapshots
from hermes.text.durations import rounded_duration
from hermes.types.errors import StoreUnavailable

log = logging.getLogger(__name__)


def quarantine(home: Home, damage: str) -> None:
    """Replaces a damaged or missing database by the newest sound snapshot, or by an empty
    database.

    The damaged files are kept in `backups/`. If this process is killed or the disk is full, the
    next process that starts repeats or completes the work.
    """
    log.error("%s", damage)
    try:
        snapshot = next((one for one in snapshots(home) if _is_sound(one)), None)
        if snapshot is None:
            move_away(home, (home.store, *parts_of(home.store)))
            suspicion(home.store).unlink(missing_ok=True)
            log.error("there is no sound snapshot: starting with an empty database")
            return
        age = max(time.time() - snapshot.stat().st_mtime, 0.0)
        work = _prepare_copy(snapshot, home, rounded_duration(age))
        finish_restore(home)
    except (OSError, StoreUnavailable) as error:
        raise StoreUnavailable(
            f"{damage}, and no snapshot can replace the database ({error}): free some space on the"
            f" disk, or move the files named {home.store.name}* away yourself"
        ) from error
    log.error(
        "restored a snapshot that is %s old: everything later is lost. %s turns that were open"
        " have failed, %s waiting messages were given up, and %s deliveries may be repeats.",
        rounded_duration(age),
        work.turns,
        work.waiting,
        work.deliveries,
    )


def _is_sound(snapshot: Path) -> bool:
    try:
        with contextlib.closing(examine(snapshot)) as connection:
            if missing_part(connection) is not None:
                return False
            found: str = connection.execute("pragma integrity_check(1)").fetchone()[0]
    except sqlite3.Error:
        return False
    return found == "ok"


def _prepare_copy(snapshot: Path, home: Home, age: str) -> RestoredWork:
    """Creates the file that `finish_restore` moves into place."""
    copy = home.store.with_suffix(".part")
    for old in (copy, *parts_of(copy)):
        old.unlink(missing_ok=True)
    make_private(copy)
    shutil.copyfile(snapshot, copy)
    with contextlib.closing(prepare(copy)) as connection, translated():
        connection.execute("begin immediate")
        work = drive(connection, close_open_work(age, time.time()))
        connection.execute("commit")
        connection.execute("pragma journal_mode = delete")
    with copy.open("rb") as file:
        os.fsync(file.fileno())
    copy.replace(_restored(home))
    sync_folder(home.root)
    return work


def is_restore_pending(home: Home) -> bool:
    """Returns whether there is a prepared copy that was not moved into place, because the process
    that prepared the copy was killed."""
    return _restored(home).exists()


def finish_restore(home: Home) -> None:
    """Moves the prepared copy to the place of the database."""
    # The old WAL must be moved away first, because SQLite would apply it to the new database.
    move_away(home, (home.store, *parts_of(home.store)))
    _restored(home).replace(home.store)
    suspicion(home.store).unlink(missing_ok=True)
    sync_folder(home.root)


def move_away(home: Home, files: Iterable[Path]) -> None:
    """Moves the files that exist to a new folder in `backups/`."""
    found = [path for path in files if path.exists()]
    if not found:
        return
    folder = _folder(home)
    for path in found:
        path.replace(folder / path.name)
    log.error("moved %s to %s", ", ".join(path.name for path in found), folder)


def _folder(home: Home) -> Path:
    stamp = time.strftime("%Y%m%d-%H%M%S")
    folder = home.backups / f"damaged-{stamp}-{time.time_ns() % 1_000_000:06}"
    folder.mkdir(parents=True, mode=0o700)
    return folder


def _restored(home: Home) -> Path:
    return home.store.with_name(f"{home.store.name}-restored")
