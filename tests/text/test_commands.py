"""Slash commands are parsed."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.text.commands import (
    Ambiguous,
    Command,
    Unknown,
    as_slash_command,
    parse_command,
    resolve,
    unescaped,
)

NAMES = {"new": ("reset",), "status": (), "stop": ("halt", "sto"), "model": ("models",)}


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("/new", Command(name="new")),
        ("  /New \n", Command(name="new")),
        ("/model gpt-5  mini ", Command(name="model", argument="gpt-5  mini")),
        ("/note one\n  two", Command(name="note", argument="one\n  two")),
        ("/note\none", Command(name="note", argument="one")),
        ("/stop@our_bot now", Command(name="stop", argument="now", bot="our_bot")),
        ("/réseau", Command(name="réseau")),
        ("/load-skill /usr/bin/x", Command(name="load-skill", argument="/usr/bin/x")),
    ],
)
def test_a_command_has_a_name_and_an_argument(text: str, command: Command) -> None:
    assert parse_command(text) == command


@pytest.mark.parametrize(
    "text",
    [
        *("", "/", "hello", "say /new", "/usr/bin/x", "/etc/passwd", "/home/", "//new", "/ new"),
        *("/3", "/notes.txt", "/new@", "/-x", "/_x", "/new: a"),
    ],
)
def test_plain_text_and_paths_are_not_commands(text: str) -> None:
    assert parse_command(text) is None


def test_another_prefix_may_be_used() -> None:
    assert parse_command("!new x", "!") == Command(name="new", argument="x")
    assert parse_command("/new", "!") is None


def test_a_doubled_prefix_becomes_a_single_prefix() -> None:
    assert unescaped(" //new day") == "/new day"
    assert unescaped("/new") == "/new"
    assert unescaped(" words") == " words"


@settings(deadline=None)
@given(st.text())
def test_parsing_any_text_never_raises(text: str) -> None:
    command = parse_command("/" + text)
    assert command is None or command.name == command.name.lower() != ""


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("new", "new"),
        ("NEW", "new"),
        ("reset", "new"),
        ("re", "new"),
        ("mo", "model"),
        ("sto", "stop"),
        ("stat", "status"),
        ("st", Ambiguous(candidates=("status", "stop"))),
        ("statsu", Unknown(nearest="status")),
        ("hatl", Unknown(nearest="stop")),
        ("xyzzy", Unknown()),
        ("", Unknown()),
    ],
)
def test_a_command_is_found_by_its_name_an_alias_or_an_unambiguous_beginning(
    name: str, found: str | Unknown | Ambiguous
) -> None:
    assert resolve(name, NAMES) == found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("!stop", "/stop"),
        (" !model gpt", "/model gpt"),
        ("!! really", "!! really"),
        ("wow!", "wow!"),
        ("/stop", "/stop"),
    ],
)
def test_a_command_with_another_prefix_becomes_a_slash_command(text: str, expected: str) -> None:
    assert as_slash_command(text, "!") == expected
