"""The record of how far the copy of a store has progressed. The record is stored in the target of
the copy, in the same commits as the copied rows."""

import msgspec

from hermes.state.table_shapes import Key, TableShape, delete_rows, insertion
from hermes.types.store import Row, Work
from hermes.types.value import Value

CREATE_RECORD = (
    "create table if not exists hermes_copy"
    " (id bigint primary key, source text not null, progress text not null,"
    " finished_at double precision)"
)
"""The statement that creates the table of the record, in SQL for both SQLite and PostgreSQL. The
table has one row, with the id 1."""


class TableProgress(Value):
    """The progress of the copy of one table."""

    last: Key | None = None
    """The key of the last copied row; None if no row was copied. Rows are copied in the order of
    the source."""
    rows: int = 0
    complete: bool = False


class CopyRecord(Value):
    """A copy that has begun."""

    source: str
    """The store that is copied: the address of a PostgreSQL database without its password, or the
    path of a SQLite file."""
    tables: dict[str, TableProgress]
    finished_at: float | None = None
    """The time at which the copy was complete and equal to its source; None until then."""


def load_record() -> Work[CopyRecord | None]:
    """Returns the record of the target, or None if no copy has begun. The table must exist."""
    rows = yield "select source, progress, finished_at from hermes_copy where id = 1", ()
    if not rows:
        return None
    source, progress, finished_at = rows[0]
    tables = msgspec.json.decode(progress, type=dict[str, TableProgress])
    return CopyRecord(source=source, tables=tables, finished_at=finished_at)


def begin_record(source: str) -> Work[None]:
    """Records that a copy begins, unless a copy is already recorded."""
    yield (
        "insert into hermes_copy (id, source, progress) values (1, ?, '{}')"
        " on conflict (id) do nothing",
        (source,),
    )


def store_batch(table: TableShape, rows: list[Row], tables: dict[str, TableProgress]) -> Work[None]:
    """Inserts the rows of a batch, and records the progress."""
    for row in rows:
        yield insertion(table, row)
    progress = msgspec.json.encode(tables).decode()
    yield "update hermes_copy set progress = ? where id = 1", (progress,)


def start_again(shapes: tuple[TableShape, ...]) -> Work[None]:
    """Deletes all copied rows and resets the progress."""
    for table in shapes:
        yield delete_rows(table)
    yield "update hermes_copy set progress = '{}', finished_at = null where id = 1", ()


def finish_record(now: float) -> Work[None]:
    """Records that the copy is complete. From now on, a gateway may use the copy."""
    yield "update hermes_copy set finished_at = ? where id = 1", (now,)
