"""Both databases return rows in batches. When a store is copied, a value of the wrong type is
converted. If the value can't be converted, the copy is refused."""

from pathlib import Path

import pytest

from hermes.state.table_shapes import (
    BATCH_ROWS,
    BATCH_SIZE,
    Key,
    TableShape,
    count_rows,
    insertion,
    keys_of,
    next_rows,
    portable,
    rows_with_keys,
)
from hermes.testing.stores import open_test_store
from hermes.types.errors import StoreDamaged
from hermes.types.store import Row, Store, Work
from hermes.types.store_copy import CopyRefused

EVENTS = TableShape(
    name="run_events",
    columns=(
        ("body", "bytes"),
        ("first_seq", "integer"),
        ("last_seq", "integer"),
        ("turn", "text"),
    ),
    key=("turn", "first_seq"),
)
CURSORS = TableShape(
    name="cursors", columns=(("account", "text"), ("value", "text")), key=("account",)
)


def insert(table: TableShape, rows: list[Row]) -> Work[None]:
    for row in rows:
        yield insertion(table, row)


async def batches(store: Store, table: TableShape, upto: Key | None = None) -> list[list[Row]]:
    found: list[list[Row]] = []
    while rows := await store.read(
        next_rows, table, keys_of(table, found[-1])[-1] if found else None, upto
    ):
        found.append(rows)
    return found


async def test_batches_contain_every_row_once(tmp_path: Path) -> None:
    rows = [(b"%d" % number, number, number, f"t{number % 7}") for number in range(2 * BATCH_ROWS)]
    async with open_test_store(tmp_path) as store:
        await store.run(insert, EVENTS, rows)
        found = await batches(store, EVENTS)
        assert [len(batch) for batch in found] == [BATCH_ROWS, BATCH_ROWS]
        assert sorted(row for batch in found for row in batch) == sorted(rows)
        assert await store.read(count_rows, EVENTS) == len(rows)
        part = await batches(store, EVENTS, ("t3", 3))
        assert max((row[3], row[1]) for batch in part for row in batch) == ("t3", 3)


async def test_a_batch_of_large_rows_is_small(tmp_path: Path) -> None:
    large = b"x" * (BATCH_SIZE // 2 - 1)
    rows = [(large * size, number, 0, "t") for number, size in enumerate((1, 1, 1, 5, 1))]
    async with open_test_store(tmp_path) as store:
        await store.run(insert, EVENTS, rows)
        found = await batches(store, EVENTS)
    assert [[row[1] for row in batch] for batch in found] == [[0, 1], [2], [3], [4]]


@pytest.mark.parametrize("table", [EVENTS, CURSORS], ids=lambda table: table.name)
async def test_rows_are_found_by_their_keys(tmp_path: Path, table: TableShape) -> None:
    one: list[Row] = [(b"", number, 0, "a") for number in range(5)]
    other: list[Row] = [(f"a{number}", "") for number in range(5)]
    rows = one if table is EVENTS else other
    async with open_test_store(tmp_path) as store:
        await store.run(insert, table, rows)
        wanted = keys_of(table, [rows[1], rows[3]])
        assert sorted(await store.read(rows_with_keys, table, wanted)) == [rows[1], rows[3]]


def test_text_in_a_binary_column_becomes_its_bytes() -> None:
    assert portable(EVENTS, ("é", 1, 1, "t")) == (b"\xc3\xa9", 1, 1, "t")


def test_nul_is_replaced_except_in_a_key() -> None:
    assert portable(CURSORS, ("a", "b\0")) == ("a", "b\N{REPLACEMENT CHARACTER}")
    with pytest.raises(CopyRefused, match=r"a NUL character in its key, 'a\\x00'"):
        portable(CURSORS, ("a\0", "b"))


@pytest.mark.parametrize("row", [(b"", 1.5, 1, "t"), (b"", "one", 1, "t"), (b"", 1, 1, b"t")])
def test_a_value_of_another_type_counts_as_damage(row: Row) -> None:
    with pytest.raises(StoreDamaged, match="of the table 'run_events' is of the type"):
        portable(EVENTS, row)
