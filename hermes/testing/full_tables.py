"""Fills every table of a store with odd values, and reads all rows, for tests of copies."""

import math
import re
import sqlite3
from contextlib import closing

from hermes.state.copying import CopyEnd
from hermes.state.schema import MIGRATIONS
from hermes.state.sqlite.migration import statements
from hermes.state.table_shapes import ColumnKind, TableShape, insertion, quoted
from hermes.types.store import Row, Work
from hermes.types.value import Value

_REALS = (0.1, 1_790_000_000.123456, 5e-324, 1.7976931348623157e308, -1 / 3, math.inf, -0.0)
_BINARY = bytes(range(256))


class TableRules(Value):
    """Rules for the values in a table. The table's `TableShape` does not contain these rules."""

    nullable: frozenset[str]
    states: tuple[str, ...]
    """The values that the column `state` may have."""


def table_rules() -> dict[str, TableRules]:
    """Returns the rules of every table of the current schema."""
    found: dict[str, TableRules] = {}
    with closing(sqlite3.connect(":memory:")) as pattern:
        for _, script in MIGRATIONS:
            for statement in statements(script):
                pattern.execute(statement)
        tables = "select name, sql from sqlite_master where type = 'table' and sql is not null"
        for name, created in pattern.execute(tables).fetchall():
            columns = pattern.execute("select * from pragma_table_info(?)", (name,)).fetchall()
            listed = re.search(r"check \(state in \((.*?)\)", created, re.DOTALL)
            found[name] = TableRules(
                nullable=frozenset(column[1] for column in columns if not column[3]),
                states=tuple(re.findall(r"'(\w+)'", listed[1])) if listed else (),
            )
    return found


def fill_tables(shapes: tuple[TableShape, ...], first: int, count: int) -> Work[None]:
    """Inserts `count` rows into every table. The first row has the number `first`."""
    rules = table_rules()
    for table in shapes:
        yield from fill_table(table, rules[table.name], first, count)


def fill_table(table: TableShape, rules: TableRules, first: int, count: int) -> Work[None]:
    for number in range(first, first + count):
        row = tuple(_value(table, rules, name, kind, number) for name, kind in table.columns)
        yield insertion(table, row)


def _value(
    table: TableShape, rules: TableRules, name: str, kind: ColumnKind, number: int
) -> object:
    if name in table.key and kind == "integer":
        return number
    absent = name in rules.nullable - set(table.key) and (number + len(name)) % 3 == 0
    # `beat_at`, the time of a heartbeat, stays empty. Shortly after the server's start, a process
    # whose heartbeat is older than the start would count as alive.
    if absent or name == "beat_at":
        return None
    if name == "state" and rules.states:
        return rules.states[number % len(rules.states)]
    if name == "transient":
        return number % 2
    match kind:
        case "integer":
            return (-1) ** number * (2**60 + number)
        case "real":
            return _REALS[number % len(_REALS)]
        case "bytes":
            return _BINARY + str(number).encode()
        case "text":
            # Databases sort capital letters and accents differently. A copy must be right whatever
            # the order of its keys is.
            return f"{'bAéZ'[number % 4]} {name} {number} \\ '%s' ? 𝄞"


def every_row(end: CopyEnd) -> Work[dict[str, list[Row]]]:
    """Returns the rows of every table, in an order that does not depend on the database."""
    found: dict[str, list[Row]] = {}
    for table in (yield from end.shapes()):
        columns = ", ".join(quoted(name) for name, _ in table.columns)
        rows = yield f"select {columns} from {quoted(table.name)}", ()  # noqa: S608
        found[table.name] = sorted(rows, key=repr)
    return found
