"""Words are expanded into arguments as in bash."""

import pytest

from hermes.core.danger.expansion import MAX_CHARACTERS, WordExpander
from hermes.core.danger.holes import ANYTHING, ONE_WORD, PLAIN_NAME
from hermes.core.danger.parsing import parse
from hermes.core.danger.scope import ShellScope
from hermes.core.danger.syntax import NotParsed, SimpleCommand


def arguments(text: str, scope: ShellScope | None = None) -> list[str]:
    (statement,) = parse(f": {text}")
    command = statement.pipelines[0].commands[0]
    assert isinstance(command, SimpleCommand)
    return WordExpander(scope or ShellScope(), lambda _: "out put").arguments(command.words)[1:]


@pytest.fixture
def scope() -> ShellScope:
    made = ShellScope()
    made.variables = {"x": ("a b",), "list": ("1 2", "3"), "empty": ("",), "n": ("x",)}
    made.arguments = ("p", "q r")
    return made


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$x", ["a", "b"]),
        ('"$x"', ["a b"]),
        ("-$x-", ["-a", "b-"]),
        ("$empty", []),
        ('"$empty"', [""]),
        ("''", [""]),
        ('"${list[@]}"', ["1 2", "3"]),
        ("${list[@]}", ["1", "2", "3"]),
        ('"${list[1]}"', ["3"]),
        ('"${list[*]}"', ["1 2 3"]),
        ('"$@"', ["p", "q r"]),
        ("$2", ["q", "r"]),
        ("${!n}", ["a", "b"]),
        ("$(c)", ["out", "put"]),
        ('"$(c)"', ["out put"]),
        ("$((1 + 1))", [PLAIN_NAME]),
        ("$unset", [ANYTHING]),
        ('"$unset"', [ONE_WORD]),
        ("{a,b}$x", ["aa", "b", "ba", "b"]),
    ],
)
def test_words_become_arguments(text: str, expected: list[str], scope: ShellScope) -> None:
    assert arguments(text, scope) == expected


def test_another_separator_splits_words(scope: ShellScope) -> None:
    scope.variables["IFS"] = ("_",)
    scope.variables["c"] = ("rm_-rf_/srv",)
    assert arguments("$c", scope) == ["rm", "-rf", "/srv"]


def test_an_unknown_separator_makes_the_words_unknown(scope: ShellScope) -> None:
    scope.variables["IFS"] = (ANYTHING,)
    assert arguments("$x", scope) == [ANYTHING]


def test_a_word_can_not_grow_without_limit(scope: ShellScope) -> None:
    scope.variables["x"] = ("a" * MAX_CHARACTERS,)
    with pytest.raises(NotParsed):
        arguments("${unset:-$x$x}", scope)
