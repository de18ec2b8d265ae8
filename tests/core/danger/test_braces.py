"""Braces are expanded as in bash, up to a limit."""

import pytest

from hermes.core.danger.braces import expand_braces
from hermes.core.danger.syntax import LiteralText, NotParsed, Parameter


def expanded(text: str) -> list[str]:
    words = expand_braces((LiteralText(text=text),))
    return ["".join(part.text for part in word if isinstance(part, LiteralText)) for word in words]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a{b,c}d", ["abd", "acd"]),
        ("{a,b}{1,2}", ["a1", "a2", "b1", "b2"]),
        ("{a,{b,c}}", ["a", "b", "c"]),
        ("{1..3}", ["1", "2", "3"]),
        ("{3..1..2}", ["3", "1"]),
        ("{a..c}", ["a", "b", "c"]),
        ("{a}", ["{a}"]),
        ("{a,b", ["{a,b"]),
        ("{}", ["{}"]),
        ("{,x}", ["", "x"]),
    ],
)
def test_braces_are_expanded(text: str, words: list[str]) -> None:
    assert expanded(text) == words


def test_quoted_braces_stay_as_they_are() -> None:
    word = (LiteralText(text="{a,b}", quoted=True),)
    assert expand_braces(word) == [word]


def test_expansions_inside_of_braces_are_kept() -> None:
    word = (LiteralText(text="{a,"), Parameter(name="x"), LiteralText(text="}"))
    assert expand_braces(word) == [(LiteralText(text="a"),), (Parameter(name="x"),)]


@pytest.mark.parametrize("text", ["{1..999}", "{a,b}" * 10, "{" * 100])
def test_too_many_words_are_refused(text: str) -> None:
    with pytest.raises(NotParsed):
        expanded(text)
