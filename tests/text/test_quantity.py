"""A noun agrees with its number."""

import pytest

from hermes.text.quantity import counted


@pytest.mark.parametrize(
    ("number", "noun", "expected"),
    [
        (1, "line", "1 line"),
        (0, "line", "0 lines"),
        (2, "more line", "2 more lines"),
        (1, "entry", "1 entry"),
        (3, "entry", "3 entries"),
    ],
)
def test_a_noun_agrees_with_its_number(number: int, noun: str, expected: str) -> None:
    assert counted(number, noun) == expected
