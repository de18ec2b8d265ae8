"""Brings a database to the current schema."""

import sqlite3
from contextlib import closing
from pathlib import Path

from hermes.state.schema import APPLICATION_ID, MIGRATIONS
from hermes.state.sqlite.connection import connect, translated
from hermes.state.sqlite.files import make_private
from hermes.types.errors import StoreUnavailable


def prepare(path: Path) -> sqlite3.Connection:
    """Opens a database and runs the missing migrations. Creates the file if necessary."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreUnavailable(f"the database can't be used ({error})") from error
    make_private(path)
    with translated():
        connection = connect(path)
        try:
            migrate(connection)
        except BaseException:
            connection.close()
            raise
    return connection


def outdated(path: Path) -> bool:
    """Returns whether an earlier version has written the database."""
    return path.exists() and 0 < schema_version(path) < len(MIGRATIONS)


def is_blank(path: Path) -> bool:
    """Returns whether no migration has run on the database."""
    return schema_version(path) == 0


def schema_version(path: Path) -> int:
    """Returns the number of migrations that have run on the database."""
    with translated(), closing(connect(path)) as connection:
        done: int = connection.execute("pragma user_version").fetchone()[0]
    return done


def migrate(connection: sqlite3.Connection) -> None:
    """Runs the migrations that are missing, all in one transaction."""
    connection.execute("begin immediate")
    done: int = connection.execute("pragma user_version").fetchone()[0]
    if done > len(MIGRATIONS):
        connection.execute("rollback")
        raise StoreUnavailable(
            f"the database was written by a newer version (schema {done}, this version knows only"
            f" {len(MIGRATIONS)}): install the newer version again or restore a backup"
        )
    for _, script in MIGRATIONS[done:]:
        for statement in statements(script):
            connection.execute(statement)
    # The version is written only if it changes, so that a process can also start on a full disk.
    if done < len(MIGRATIONS):
        connection.execute(f"pragma user_version = {len(MIGRATIONS)}")
        connection.execute(f"pragma application_id = {APPLICATION_ID}")
    connection.execute("commit")


def statements(script: str) -> list[str]:
    """Splits a script into statements, because `executescript` would commit before the first
    statement."""
    found, current = [], ""
    for line in script.splitlines(keepends=True):
        current += line
        if sqlite3.complete_statement(current):
            found.append(current.strip())
            current = ""
    assert not current.strip(), f"a statement without an end: {current!r}"
    return found
