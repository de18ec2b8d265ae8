"""Printed text can't control the terminal."""

import json

import click
import pytest

from hermes.entry.output import say, say_heading, say_json, say_line, say_unwrapped, write

CLIPBOARD = "\x1b]52;c;ZXZpbA==\x07"
CLEAR = "\x1b[2J\x1b[H"


def test_text_of_any_origin_is_printed_without_control_characters(
    capsys: pytest.CaptureFixture[str],
) -> None:
    say_unwrapped(f"{CLIPBOARD}one\n{CLEAR}two\u202e", nl=False)
    assert capsys.readouterr().out == "one\ntwo"
    say(ValueError(f"wrong: {CLEAR}"), err=True)
    assert capsys.readouterr().err == "wrong: \n"


def test_a_row_of_a_table_stays_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    say_line(f"a title\n2026-01-01 forged{CLEAR}")
    assert capsys.readouterr().out == "a title\\n2026-01-01 forged\n"


def test_headings_are_also_printed_without_control_characters(
    capsys: pytest.CaptureFixture[str],
) -> None:
    say_heading(f"{CLEAR}memory")
    assert click.unstyle(capsys.readouterr().out) == "memory\n"


def test_json_output_keeps_escaped_characters(capsys: pytest.CaptureFixture[str]) -> None:
    text = "\x9b2J\u202e\x7f"
    say_json(json.dumps([text], ensure_ascii=False))
    printed = capsys.readouterr().out
    assert printed == '["\\u009b2J\\u202e\\u007f"]\n'
    assert json.loads(printed) == [text]


def test_our_own_terminal_output_is_written_unchanged(capsys: pytest.CaptureFixture[str]) -> None:
    write("\x1b[2mdim\x1b[0m")
    write("")
    assert capsys.readouterr().out == "\x1b[2mdim\x1b[0m"
