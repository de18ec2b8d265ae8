"""Compares a database with the schema of its version."""

import contextlib
import sqlite3
from functools import cache

from hermes.state.schema import MIGRATIONS
from hermes.state.sqlite.migration import statements


def missing_part(connection: sqlite3.Connection) -> str | None:
    """Describes a table, index or column that the database lacks, although the schema of its
    version has it; None if nothing is missing."""
    version: int = connection.execute("pragma user_version").fetchone()[0]
    lacking = _names_in_schema(version) - _names(connection)
    return f"the database lacks {min(lacking)}" if lacking else None


@cache
def _names_in_schema(version: int) -> frozenset[tuple[str, str, str]]:
    with contextlib.closing(sqlite3.connect(":memory:")) as pattern:
        for _, script in MIGRATIONS[:version]:
            for statement in statements(script):
                pattern.execute(statement)
        return _names(pattern)


def _names(connection: sqlite3.Connection) -> frozenset[tuple[str, str, str]]:
    found = connection.execute(
        "select m.type, m.name, coalesce(c.name, '') from sqlite_master m"
        " left join pragma_table_info(m.name) c"
    )
    return frozenset(found)
