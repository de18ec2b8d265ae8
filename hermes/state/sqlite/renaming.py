"""Renames the database of an earlier version, `state.db`, and its snapshots to their present
names.

Another program, Hermes Agent, gives its own database the same name. A database of Hermes Agent is
only read, and never changed.
"""

import logging
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from hermes.state.locks import FileLock
from hermes.state.paths import Home, sync_folder
from hermes.state.schema import APPLICATION_ID
from hermes.state.sqlite.connection import connect, examine, translated
from hermes.state.sqlite.files import parts_of, suspicion, wal_of
from hermes.state.sqlite.quarantine import move_away
from hermes.state.sqlite.snapshots import SNAPSHOT_PREFIX
from hermes.types.errors import StoreDamaged, StoreUnavailable

log = logging.getLogger(__name__)

FORMER_SNAPSHOT_PREFIX = "state-"
OWN_TABLES = {"owners", "leases", "inbox", "turns", "deliveries", "run_events"}
"""Tables of the first version of Hermes, which did not set the application id of its databases. A
database with these tables belongs to Hermes."""


def rename_former(home: Home, lock: FileLock) -> None:
    """Renames the database of an earlier version and its snapshots, if the home has them.

    `lock` is the lock of the home's store. If there was a database to rename, the lock is held
    exclusively afterwards.
    """
    if not home.store.exists() and is_ours(home.former_store, home.run):
        if not lock.try_acquire():
            raise StoreUnavailable(
                f"{home.former_store} must be renamed, but a hermes process of an earlier version"
                " still uses it: stop that process, for example with `hermes gateway stop`"
            )
        # Another starting process may have renamed the database before we got the lock.
        if not home.store.exists():
            _rename_database(home)
    for old in home.backups.glob(f"{FORMER_SNAPSHOT_PREFIX}*.db"):
        if is_ours(old, home.run):
            # Another process that is starting may have renamed the snapshot already.
            with suppress(FileNotFoundError):
                name = SNAPSHOT_PREFIX + old.name.removeprefix(FORMER_SNAPSHOT_PREFIX)
                old.rename(old.with_name(name))


def _rename_database(home: Home) -> None:
    """Renames the database in one step, after its WAL has been checkpointed and removed."""
    former = home.former_store
    try:
        with translated(), closing(connect(former)) as connection:
            connection.execute("pragma journal_mode = delete")
        # A WAL of an earlier `hermes.db` must be moved away, because SQLite would apply that WAL to
        # this database.
        move_away(home, parts_of(home.store))
        if suspicion(former).exists():
            suspicion(former).replace(suspicion(home.store))
        former.rename(home.store)
        sync_folder(home.root)
    except StoreDamaged as error:
        log.error("%s, the store of an earlier version, is not used: %s", former, error)
    except OSError as error:
        raise StoreUnavailable(f"{former} can't be renamed ({error})") from error
    else:
        log.warning("the store has a new name: %s is now %s", former, home.store.name)


def is_ours(path: Path, scratch: Path) -> bool:
    """Returns whether a version of Hermes has written the database; False if it is missing or
    damaged.

    Neither the database nor any other file in its folder is changed. `scratch` is a folder for
    temporary files.
    """
    if not path.is_file():
        return False
    try:
        if _looks_ours(path):
            return True
        # A database without tables may be ours, because all tables of a young database may still be
        # in its WAL.
        if not _is_blank(path) or not wal_of(path).exists():
            return False
        with TemporaryDirectory(dir=scratch) as folder:
            copy = Path(folder) / path.name
            shutil.copyfile(path, copy)
            shutil.copyfile(wal_of(path), wal_of(copy))
            with closing(connect(copy)) as connection:
                connection.execute("pragma journal_mode = delete")
            return _looks_ours(copy)
    except (sqlite3.Error, OSError, StoreUnavailable):
        return False


def _looks_ours(path: Path) -> bool:
    with closing(examine(path)) as connection:
        if connection.execute("pragma application_id").fetchone()[0] == APPLICATION_ID:
            return True
        return {row[0] for row in connection.execute(_TABLES)} >= OWN_TABLES


def _is_blank(path: Path) -> bool:
    with closing(examine(path)) as connection:
        return not connection.execute(_TABLES).fetchall()


_TABLES = "select name from sqlite_master where type = 'table'"
