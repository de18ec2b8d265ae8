"""Both databases keep the record of a copy."""

from pathlib import Path

from hermes.state.copy_record import (
    CREATE_RECORD,
    TableProgress,
    begin_record,
    finish_record,
    load_record,
    start_again,
    store_batch,
)
from hermes.state.table_shapes import TableShape, count_rows
from hermes.testing.stores import open_test_store
from hermes.types.store import Work

CURSORS = TableShape(
    name="cursors", columns=(("account", "text"), ("value", "text")), key=("account",)
)


def begin(source: str) -> Work[None]:
    yield CREATE_RECORD, ()
    yield from begin_record(source)


async def test_a_copy_is_recorded_from_its_start_to_its_end(tmp_path: Path) -> None:
    async with open_test_store(tmp_path) as store:
        await store.run(begin, "one")
        # The second attempt keeps the record of the first attempt, so that it can continue the
        # copy.
        await store.run(begin, "two")
        record = await store.read(load_record)
        assert record is not None
        assert (record.source, record.tables, record.finished_at) == ("one", {}, None)
        progress = TableProgress(last=("b",), rows=2)
        await store.run(store_batch, CURSORS, [("a", ""), ("b", "")], {"cursors": progress})
        record = await store.read(load_record)
        assert record is not None
        assert record.tables == {"cursors": progress}
        assert await store.read(count_rows, CURSORS) == 2
        await store.run(finish_record, 7.5)
        record = await store.read(load_record)
        assert record is not None
        assert record.finished_at == 7.5
        await store.run(start_again, (CURSORS,))
        record = await store.read(load_record)
        assert record is not None
        assert (record.tables, record.finished_at) == ({}, None)
        assert await store.read(count_rows, CURSORS) == 0
