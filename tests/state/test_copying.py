"""The digest of a batch distinguishes all values that a store can contain."""

import itertools

from hermes.state.copying import digest
from hermes.types.store import Row

ROWS: list[list[Row]] = [
    [],
    [(None,)],
    [(0,)],
    [(0.0,)],
    [(b"",)],
    [("",)],
    [("0",)],
    [(b"0",)],
    [(0.1,)],
    [(0.1 + 2**-56,)],
    [(1_790_000_000.123456,)],
    [(1_790_000_000.1234562,)],
    [("a", "b")],
    [("ab", "")],
    [("a",), ("b",)],
    [("a",), ("a",), ("b",)],
]


def test_different_rows_have_different_digests() -> None:
    for one, other in itertools.combinations(ROWS, 2):
        assert digest(one) != digest(other), (one, other)


def test_the_order_of_rows_does_not_matter() -> None:
    assert digest([("a", 1), ("b", 2)]) == digest([("b", 2), ("a", 1)])


def test_the_sign_of_zero_is_ignored_because_sqlite_does_not_store_it() -> None:
    assert digest([(-0.0,)]) == digest([(0.0,)])
