"""Compares a database with the schema of its version."""

import contextlib
import sqlite3

from hermes.state.schema import MIGRATIONS
from hermes.state.sqlite.migration import statements


def missing_part(connection: sqlite3.Connection) -> str | None:
    """Describes a table, index or column that the database lacks, although the schema of its
    version has it; None if nothing is missing."""
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
