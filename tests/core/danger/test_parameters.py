"""The operators of parameter expansions such as `${a:-b}` are applied."""

import pytest

from hermes.core.danger.holes import ANYTHING, PLAIN_NAME, SECRET_TEXT
from hermes.core.danger.parameters import apply_operator


@pytest.mark.parametrize(
    ("operator", "value", "operand", "result"),
    [
        (":-", "", "b", "b"),
        (":-", "a", "b", "a"),
        (":+", "a", "b", "b"),
        ("#", "a/b/c", "*/", "b/c"),
        ("##", "a/b/c", "*/", "c"),
        ("%", "a.b.c", ".*", "a.b"),
        ("%%", "a.b.c", ".*", "a"),
        ("/", "aXbX", "X/y", "aybX"),
        ("//", "aXbX", "X", "ab"),
        ("^", "ab", "", "Ab"),
        ("^^", "ab", "", "AB"),
        (",", "AB", "", "aB"),
        (",,", "AB", "", "ab"),
        (":", "abcd", "1:2", "bc"),
        (":", "abcd", " -2", "cd"),
        ("length", "abc", "", "3"),
    ],
)
def test_an_operator_is_applied(operator: str, value: str, operand: str, result: str) -> None:
    assert apply_operator(operator, value, operand) == result


@pytest.mark.parametrize(
    ("operator", "value", "operand", "result"),
    [
        (":-", ANYTHING, "b", ANYTHING),
        (":-", SECRET_TEXT, "b", SECRET_TEXT),
        ("length", ANYTHING, "", PLAIN_NAME),
        ("#", PLAIN_NAME, "x", PLAIN_NAME),
        ("//", "abc", "[ab]/x", ANYTHING),
        ("@", "abc", "Q", ANYTHING),
        (":", "abc", "x:y", ANYTHING),
        ("#", "a" * 500, "*b", ANYTHING),
    ],
)
def test_an_unclear_result_is_unknown(operator: str, value: str, operand: str, result: str) -> None:
    assert apply_operator(operator, value, operand) == result
