"""Copies every row of a store to another store, and compares the two stores."""

import hashlib
import time
from collections.abc import Callable, Sequence
from typing import Literal, Protocol

import msgspec

from hermes.state.copy_record import (
    CopyRecord,
    TableProgress,
    finish_record,
    load_record,
    start_again,
    store_batch,
)
from hermes.state.table_shapes import (
    Key,
    TableShape,
    count_rows,
    keys_of,
    next_rows,
    portable,
    rows_with_keys,
)
from hermes.types.errors import StoreDamaged
from hermes.types.store import Row, Store, Work
from hermes.types.store_copy import CopyRefused, CopyStep

ReportStep = Callable[[CopyStep], None]
"""A function that receives the progress after each batch and at the end of each phase."""


class CopyEnd(Protocol):
    """The store that is the source or the target of a copy. No other process changes this store
    during the copy."""

    @property
    def store(self) -> Store: ...

    @property
    def place(self) -> str:
        """The path or address of the store, without its password, as it is shown to people."""
        ...

    def shapes(self) -> Work[tuple[TableShape, ...]]:
        """Returns the tables that hold data, in alphabetical order."""
        ...

    def counters(self) -> Work[dict[str, int]]:
        """Returns the highest row number ever used, by table. Tables that do not number their rows
        are left out."""
        ...

    def settle(self, counters: dict[str, int]) -> Work[None]:
        """Sets the counter of each table to its value in `counters`, so that new rows get higher
        numbers. Call this when all rows are copied."""
        ...

    async def confirm(self) -> None:
        """Raises StoreUnavailable if other processes may have changed the store during the copy."""
        ...


class StoreCopy:
    """One run of a copy. If its process is killed, the next run with the same target continues the
    copy."""

    def __init__(self, source: CopyEnd, target: CopyEnd, report: ReportStep) -> None:
        self.rows: dict[str, int] = {}
        """Maps each table to the number of its rows."""
        self.resumed = False
        """Whether rows of an interrupted copy were kept."""
        self._source = source
        self._target = target
        self._report = report
        self._shapes: tuple[TableShape, ...] = ()

    async def run(self) -> None:
        """Copies all rows, and returns when the target is equal to the source and recorded as
        complete. The target must already have a `CopyRecord`.
        """
        await self._match_schemas()
        done = await self._continued()
        await self._copy(done)
        counters = await self._source.store.read(self._source.counters)
        await self._target.store.run(self._target.settle, counters)
        if (different := await self._first_difference("compare", {})) is not None:
            raise StoreDamaged(
                f"the table {different!r} of the copy is not equal to the table in"
                f" {self._source.place}: run the command again to copy everything again"
            )
        await self._source.confirm()
        await self._target.store.run(finish_record, time.time())

    async def _match_schemas(self) -> None:
        self._shapes = await self._source.store.read(self._source.shapes)
        theirs = await self._target.store.read(self._target.shapes)
        different = set(self._shapes) ^ set(theirs)
        if different:
            name = min(shape.name for shape in different)
            raise CopyRefused(
                f"the table {name!r} does not have the same columns in {self._source.place} and in"
                f" {self._target.place}: copy into an empty database"
            )
        for shape in self._shapes:
            self.rows[shape.name] = await self._source.store.read(count_rows, shape)

    async def _continued(self) -> dict[str, TableProgress]:
        """Returns the progress of an interrupted copy. If rows that were already copied differ from
        the source, all copied rows are deleted and the progress is empty."""
        record: CopyRecord | None = await self._target.store.read(load_record)
        assert record is not None, "whoever opens a target makes its record"
        if not record.tables:
            return {}
        if await self._first_difference("check", record.tables) is None:
            self.resumed = True
            return dict(record.tables)
        # A gateway has changed the source since the copy was interrupted, so everything is copied
        # again.
        await self._target.store.run(start_again, self._shapes)
        return {}

    async def _copy(self, done: dict[str, TableProgress]) -> None:
        for table in self._shapes:
            progress = done.get(table.name, TableProgress())
            while not progress.complete:
                found = await self._source.store.read(next_rows, table, progress.last, None)
                rows = [portable(table, row) for row in found]
                progress = TableProgress(
                    last=keys_of(table, rows)[-1] if rows else progress.last,
                    rows=progress.rows + len(rows),
                    complete=not rows,
                )
                done[table.name] = progress
                await self._target.store.run(store_batch, table, rows, done)
                copied = sum(one.rows for one in done.values())
                self._tell("copy", copied, sum(self.rows.values()))

    async def _first_difference(
        self, phase: Literal["check", "compare"], copied: dict[str, TableProgress]
    ) -> str | None:
        """Returns the name of the first table that differs, or None if all tables are equal.
        Compares only the rows that were copied according to `copied`. If `copied` is empty,
        compares all rows."""
        total = sum(one.rows for one in copied.values()) or sum(self.rows.values())
        compared = 0
        for table in self._shapes:
            progress = copied.get(table.name, TableProgress(complete=not copied))
            upto = None if progress.complete else progress.last
            expected = 0
            after: Key | None = None
            # The loop is skipped if no row of the table was copied. The check below then expects 0
            # rows.
            while progress.complete or upto is not None:
                rows = await self._source.store.read(next_rows, table, after, upto)
                if not rows:
                    break
                if not await self._equal(table, rows):
                    return table.name
                after = keys_of(table, rows)[-1]
                expected += len(rows)
                compared += len(rows)
                self._tell(phase, compared, total)
            if await self._target.store.read(count_rows, table) != expected:
                return table.name
        return None

    async def _equal(self, table: TableShape, rows: Sequence[Row]) -> bool:
        ours = [portable(table, row) for row in rows]
        theirs = await self._target.store.read(rows_with_keys, table, keys_of(table, ours))
        return digest(ours) == digest(theirs)

    def _tell(self, phase: Literal["check", "copy", "compare"], rows: int, total: int) -> None:
        self._report(CopyStep(phase=phase, rows=rows, total=max(rows, total)))


def digest(rows: Sequence[Row]) -> bytes:
    """Returns a hash of the rows that does not depend on their order. Different values give
    different hashes, and null differs from every value."""
    encoded = sorted(msgspec.msgpack.encode([_canonical(value) for value in row]) for row in rows)
    return hashlib.sha256(b"".join(encoded)).digest()


def _canonical(value: object) -> object:
    # SQLite stores -0.0 as 0.0, so both must have the same hash.
    return value + 0.0 if isinstance(value, float) else value
