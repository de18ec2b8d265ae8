"""The words of a command are parsed, with their quotes and expansions."""

import pytest

from hermes.core.danger.parsing import parse
from hermes.core.danger.syntax import (
    Arithmetic,
    LiteralText,
    NotParsed,
    Parameter,
    SimpleCommand,
    Substitution,
    Word,
)
from hermes.core.danger.words import unescape


def word(text: str) -> Word:
    """Parses the text as an argument of a command, and returns it as a `Word`."""
    command = parse(f"c {text}")[0].pipelines[0].commands[0]
    assert isinstance(command, SimpleCommand)
    return command.words[1]


def literal(text: str) -> str:
    return "".join(part.text for part in word(text) if isinstance(part, LiteralText))


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("a'b'\"c\"\\d", "abcd"),
        ("'a\"b'", 'a"b'),
        ('"a\\"b\\c"', 'a"b\\c'),
        ("$'\\x41\\102\\u0043\\n'", "ABC\n"),
        ('$"text"', "text"),
        ("a\\\nb", "ab"),
        ("a#b", "a#b"),
        ("?(a|b)", "?(a|b)"),
        ("$", "$"),
    ],
)
def test_quotes_are_removed(written: str, meant: str) -> None:
    assert literal(written) == meant


def test_an_expansion_keeps_its_operator_and_its_quotes() -> None:
    assert word('"${x:-y}"')[0] == Parameter(
        name="x", operator=":-", operand=(LiteralText(text="y", quoted=True),), quoted=True
    )
    assert word("${#x}") == (Parameter(name="x", operator="length"),)
    assert word("${!x}") == (Parameter(name="x", operator="indirect"),)
    assert word("${a[@]}") == (Parameter(name="a", index="@"),)
    assert word("$1a") == (Parameter(name="1"), LiteralText(text="a"))


@pytest.mark.parametrize("text", ["$(ls)", "`ls`", "<(ls)", ">(ls)", "$( (ls) )", "$((ls) | wc)"])
def test_substitutions_are_parsed(text: str) -> None:
    assert isinstance(word(text)[0], Substitution)


@pytest.mark.parametrize("text", ["$((1 + (2)))", "$[1 + 2]", "$((a[$(ls)]))"])
def test_arithmetic_is_recognised(text: str) -> None:
    assert isinstance(word(text)[0], Arithmetic)


@pytest.mark.parametrize(
    "text", ["'a", '"a', "`a", "$(a", "${a", "$((1", "$'a", "${}", "$[1", "?(a", "<(a"]
)
def test_an_unclosed_word_is_not_parsed(text: str) -> None:
    with pytest.raises(NotParsed):
        parse(f"c {text}")


def test_characters_that_stand_for_unknown_text_can_not_be_written() -> None:
    assert unescape("\\x01\\0\\ca") == "\2\2\2"
