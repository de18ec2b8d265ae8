"""Checks the database for `hermes doctor`, without changing it."""

import sqlite3
import time
from contextlib import closing
from pathlib import Path

from hermes.state.paths import Home
from hermes.state.schema import MIGRATIONS
from hermes.state.sqlite.connection import LOCK_SECONDS, error_class, examine
from hermes.state.sqlite.files import is_emptied, wal_of
from hermes.state.sqlite.schema_check import missing_part
from hermes.types.checks import Check, CheckLevel
from hermes.types.errors import StoreDamaged

LARGE_WAL = 256 << 20
"""Size in bytes from which the WAL counts as too large. Usually it has a few megabytes."""
CLOCK_STEPS = 100_000
"""Number of instructions of SQLite's virtual machine between two checks of the time limit."""
_RESTORE = "restart Hermes: at the start, it replaces a damaged database with the newest snapshot"


def check_database(home: Home, seconds: float) -> list[Check]:
    """Checks the database of the home. The search for damage stops after this number of seconds."""
    path = home.store
    if not path.exists():
        return [_found("ok", f"{path} does not exist yet")]
    if is_emptied(path):
        return [_found("error", f"{path} was truncated", _RESTORE)]
    before = path.stat().st_mtime_ns
    found = _examine(path, seconds)
    if found.level == "error" and path.stat().st_mtime_ns != before:
        # Another process has changed the database during the check, so the database is checked
        # again.
        found = _examine(path, seconds)
    return [found, *_check_wal(wal_of(path))]


def _examine(path: Path, seconds: float) -> Check:
    try:
        with closing(_open(path)) as connection:
            return _check(connection, path, seconds)
    except sqlite3.Error as error:
        if error_class(error) is StoreDamaged:
            return _found("error", f"{path} is damaged ({error})", _RESTORE)
        hint = "check the permissions of the file, and the disk"
        return _found("error", f"{path} can't be read ({error})", hint)


def _open(path: Path) -> sqlite3.Connection:
    """Opens a read-only connection."""
    if wal_of(path).exists():
        uri = f"{path.absolute().as_uri()}?mode=ro"
        return sqlite3.connect(uri, uri=True, timeout=LOCK_SECONDS)
    # There is no WAL, and an ordinary connection would create a WAL. `examine` creates no file.
    return examine(path)


def _check(connection: sqlite3.Connection, path: Path, seconds: float) -> Check:
    version: int = connection.execute("pragma user_version").fetchone()[0]
    if version > len(MIGRATIONS):
        text = f"a newer version of Hermes has written {path} (schema {version})"
        return _found("error", text, "install that version again, or restore a backup")
    if damage := missing_part(connection):
        return _found("error", f"{path}: {damage}", _RESTORE)
    text = f"{path}, SQLite, {path.stat().st_size / 1e6:.1f} MB, schema {version}"
    if version < len(MIGRATIONS):
        text += f" (the next start migrates it to {len(MIGRATIONS)})"
    deadline = time.monotonic() + seconds
    connection.set_progress_handler(lambda: time.monotonic() > deadline, CLOCK_STEPS)
    try:
        damage = connection.execute("pragma quick_check(1)").fetchone()[0]
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
            raise
        return _found("ok", f"{text}, no damage found in {seconds:g} s, not checked completely")
    if damage != "ok":
        return _found("error", f"{path} is damaged: {damage}", _RESTORE)
    return _found("ok", f"{text}, no damage found")


def _check_wal(wal: Path) -> list[Check]:
    size = wal.stat().st_size if wal.exists() else 0
    if size < LARGE_WAL:
        return []
    hint = "end programs that keep the database open for a long time, such as a backup"
    return [_found("warning", f"the write-ahead log {wal} has {size / 1e6:.0f} MB", hint)]


def _found(level: CheckLevel, text: str, hint: str = "") -> Check:
    return Check(name="store", level=level, text=text, hint=hint)
