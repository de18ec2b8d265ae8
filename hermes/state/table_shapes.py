"""Describes the tables of a store for a copy, and contains the SQL that reads and writes their
rows."""

# The table and column names in the SQL come from the schema of the database.
# ruff: noqa: S608

import re
from collections.abc import Sequence
from typing import Literal

from hermes.state.schema import MIGRATIONS
from hermes.state.storable import storable
from hermes.types.errors import StoreDamaged
from hermes.types.store import Row, Statement, Work
from hermes.types.store_copy import CopyRefused
from hermes.types.value import Value

ColumnKind = Literal["integer", "real", "text", "bytes"]
Key = tuple[str | int, ...]
"""The values of the primary key of a row."""

BATCH_ROWS = 500
BATCH_SIZE = 4 << 20
"""Maximum size of a batch: the characters of its texts plus the bytes of its blobs. A single row
may be larger."""
_CHANGED = re.compile(
    r"^(create table|drop table|alter table) (\w+)(?: rename to (\w+))?", re.MULTILINE
)
_TYPES = {"integer": "bigint", "text": "text"}
"""Maps the kind of a primary key's column to an SQL type that SQLite and PostgreSQL both accept."""
_CLASSES: dict[ColumnKind, type] = {"integer": int, "real": float, "text": str, "bytes": bytes}


class TableShape(Value):
    """The description of a table, read from the database."""

    name: str
    columns: tuple[tuple[str, ColumnKind], ...]
    """The names and types of the columns in alphabetical order, without columns that the database
    computes."""
    key: tuple[str, ...]
    """The columns of the primary key."""

    @property
    def key_places(self) -> tuple[int, ...]:
        """The positions of the primary key's columns in a row."""
        names = [name for name, _ in self.columns]
        return tuple(names.index(name) for name in self.key)


def our_tables() -> frozenset[str]:
    """Returns the names of all tables of the schema that hold data."""
    tables: set[str] = set()
    for _, script in MIGRATIONS:
        for change, name, new_name in _CHANGED.findall(script):
            if change == "create table":
                tables.add(name)
            elif change == "drop table":
                tables.remove(name)
            elif new_name:
                tables -= {name}
                tables.add(new_name)
    return frozenset(tables)


def keys_of(table: TableShape, rows: Sequence[Row]) -> list[Key]:
    places = table.key_places
    return [tuple(row[place] for place in places) for row in rows]


def count_rows(table: TableShape) -> Work[int]:
    rows = yield f"select count(*) from {quoted(table.name)}", ()
    count: int = rows[0][0]
    return count


def next_rows(table: TableShape, after: Key | None, upto: Key | None) -> Work[list[Row]]:
    """Returns the rows of the next batch. Their keys come after `after`, and are at most `upto`.
    The rows are sorted by key, in the sort order of this database."""
    last = yield from _end_of_batch(table, after, upto)
    if last is None:
        return []
    where, parameters = _between(table, after, last)
    rows = yield (
        f"select {_columns(table)} from {quoted(table.name)}{where} order by {_key(table)}",
        parameters,
    )
    return rows


def _end_of_batch(table: TableShape, after: Key | None, upto: Key | None) -> Work[Key | None]:
    """Returns the key of the last row that fits into the batch, or None if no row is left."""
    where, parameters = _between(table, after, upto)
    long = [quoted(name) for name, kind in table.columns if kind in ("text", "bytes")]
    size = " + ".join(f"coalesce(length({name}), 0)" for name in long) or "0"
    rows = yield (
        f"select {size}, {_key(table)} from {quoted(table.name)}{where}"
        f" order by {_key(table)} limit {BATCH_ROWS}",
        parameters,
    )
    last: Key | None = None
    total = 0
    for length, *key in rows:
        total += length
        if last is not None and total > BATCH_SIZE:
            break
        last = tuple(key)
    return last


def rows_with_keys(table: TableShape, keys: Sequence[Key]) -> Work[list[Row]]:
    """Returns the rows that have these keys. The keys are given one by one and not as a range. Two
    databases may sort text differently, and would return different rows for a range of keys."""
    if len(table.key) == 1:
        wanted = ", ".join("?" for _ in keys)
    else:
        kinds = dict(table.columns)
        casts = ", ".join(f"cast(? as {_TYPES[kinds[name]]})" for name in table.key)
        wanted = "values " + ", ".join(f"({casts})" for _ in keys)
    rows = yield (
        f"select {_columns(table)} from {quoted(table.name)} where ({_key(table)}) in ({wanted})",
        [value for key in keys for value in key],
    )
    return rows


def insertion(table: TableShape, row: Row) -> Statement:
    places = ", ".join("?" for _ in row)
    return f"insert into {quoted(table.name)} ({_columns(table)}) values ({places})", row


def delete_rows(table: TableShape) -> Statement:
    return f"delete from {quoted(table.name)}", ()


def portable(table: TableShape, row: Row) -> Row:
    """Returns the row with values that every store can hold.

    NUL characters, which earlier versions stored in SQLite, are replaced by U+FFFD. Raises
    StoreDamaged if a value does not have the type of its column. SQLite would accept such a value,
    but Hermes never stores such values, so the database must be damaged.
    """
    return tuple(
        _portable(table, name, kind, value)
        for value, (name, kind) in zip(row, table.columns, strict=True)
    )


def _portable(table: TableShape, name: str, kind: ColumnKind, value: object) -> object:
    if value is None or type(value) is _CLASSES[kind]:
        if isinstance(value, str) and "\0" in value:
            if name in table.key:
                raise CopyRefused(
                    f"the table {table.name!r} has a row with a NUL character in its key,"
                    f" {value!r}, which PostgreSQL can't store: delete the row"
                )
            return storable(value)
        return value
    if kind == "bytes" and isinstance(value, str):
        return value.encode()
    raise StoreDamaged(
        f"the column {name!r} of the table {table.name!r} is of the type {kind}, and a row has a"
        f" {type(value).__name__} in it: restore a backup"
    )


def quoted(name: str) -> str:
    """Quotes a name for SQL, because some of our names are also keywords of SQL."""
    return f'"{name}"'


def _columns(table: TableShape) -> str:
    return ", ".join(quoted(name) for name, _ in table.columns)


def _key(table: TableShape) -> str:
    return ", ".join(quoted(name) for name in table.key)


def _between(
    table: TableShape, after: Key | None, upto: Key | None
) -> tuple[str, tuple[str | int, ...]]:
    """Returns an SQL condition for the keys after `after` and up to `upto`, and the parameters of
    the condition."""
    places = ", ".join("?" for _ in table.key)
    parts = []
    if after is not None:
        parts.append(f"({_key(table)}) > ({places})")
    if upto is not None:
        parts.append(f"({_key(table)}) <= ({places})")
    where = f" where {' and '.join(parts)}" if parts else ""
    return where, (*(after or ()), *(upto or ()))
