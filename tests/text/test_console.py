"""Text for terminals and logs contains no control characters."""

import json
import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.text.console import (
    console_text,
    printable,
    printable_json,
    printable_line,
    visible,
)

ODD = st.lists(
    st.sampled_from([b"\x1b", b"[", b"]0;", b"31m", b"\x07", b"\\", b"\r", b"\n", b"\xff", b"a"])
).map(b"".join)


@pytest.mark.parametrize(
    ("printed", "text"),
    [
        (b"\x1b[1;31mred\x1b[0m \x1b[38;5;9mtoo\x1b[m", "red too"),
        (b"\x1b]0;title\x07x\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\", "xlink"),
        (b"\x1b]0;cut off\nnext", "\nnext"),
        (b"\x1b(B\x1b=\x1b7kept\x1bM", "kept"),
        (b"one\r\ntwo\r\r\n", "one\ntwo\n"),
        (b"10 %\r50 %\r100 %\ndone", "100 %\ndone"),
        (b"waiting\r", "waiting"),
        (b"tab\tbell\x07nul\0del\x7f", "tab\tbellnuldel"),
        (b"caf\xc3\xa9 \xff \xc2\x9b1m", "café \N{REPLACEMENT CHARACTER} 1m"),
    ],
)
def test_command_output_is_shown_as_in_a_terminal(printed: bytes, text: str) -> None:
    assert console_text(printed) == text


@given(st.binary() | ODD)
def test_no_control_characters_are_left_in_command_output(printed: bytes) -> None:
    text = console_text(printed)
    assert not [c for c in text if unicodedata.category(c) == "Cc" and c not in "\n\t"]
    assert console_text(text.encode()) == text


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"])))
def test_plain_text_is_not_changed(text: str) -> None:
    assert console_text(text.encode()) == text


@pytest.mark.parametrize(
    "piece", [b"\x1b]", b"\x1b[", b"\x1b[0", b"\r", b"a\r", b"\x1b", b"\r\r\n"]
)
def test_unusual_output_is_converted_in_linear_time(piece: bytes) -> None:
    since = time.process_time()
    console_text(piece * 200_000)
    assert time.process_time() - since < 1.0


UNSAFE = st.sampled_from("\x1b\x07\x9b\x9d\x7f\r\u202e\u2066\u200b\ufeff\U000e0041\u2028")
HOSTILE = st.lists(st.text() | UNSAFE | st.sampled_from(["\x1b]52;c;", "\x1b[2J", "[", "\n"])).map(
    "".join
)


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ("\x1b]52;c;ZXZpbA==\x07copied", "copied"),
        ("\x1b[2J\x1b[Hcleared", "cleared"),
        ("\x1b]0;never ended", "0;never ended"),
        ("user \u202egpj.exe", "user gpj.exe"),
        ("a\u2066b\u2069c\u200ed\u061ce", "abcde"),
        ("pass\u200bword \ufeffand \U000e0041tags", "password and tags"),
        ("\x9b31m and \x9d52;c;x", "31m and 52;c;x"),
        ("\ud800half", "half"),
        ("two\r\nlines\tand a tab", "two\nlines\tand a tab"),
        ("👩\u200d👩\u200d👧 می\u200cخواهم", "👩\u200d👩\u200d👧 می\u200cخواهم"),
    ],
)
def test_untrusted_text_can_not_control_a_terminal(stored: str, shown: str) -> None:
    assert printable(stored) == shown


@given(HOSTILE)
def test_printable_text_can_not_control_a_terminal_or_hide_characters(text: str) -> None:
    kept = printable(text)
    assert not [c for c in kept if unicodedata.category(c) in ("Cc", "Cs") and c not in "\n\t"]
    assert not [c for c in kept if unicodedata.bidirectional(c) in DIRECTIONS]
    assert printable(kept) == kept


DIRECTIONS = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


@given(HOSTILE)
def test_a_printable_line_is_one_line(text: str) -> None:
    assert len(printable_line(text).splitlines()) <= 1


def test_a_line_break_is_shown_as_an_escape() -> None:
    assert printable_line("first\r\nsecond\u2028third") == r"first\nsecond\nthird"


@given(
    HOSTILE.filter(lambda text: text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text))
)
def test_json_keeps_every_character_and_can_not_control_a_terminal(text: str) -> None:
    written = printable_json(json.dumps({"text": text}, ensure_ascii=False))
    assert json.loads(written) == {"text": text}
    assert printable(written) == written


@pytest.mark.parametrize("piece", ["\x1b]", "\x1b[", "\x1b[0", "\x1b", "\u202e", "\x9d"])
def test_hostile_text_is_made_printable_in_linear_time(piece: str) -> None:
    since = time.process_time()
    printable(piece * 200_000)
    assert time.process_time() - since < 1.0


def test_text_is_made_visible_without_removing_anything() -> None:
    text = "rm \u202egpj.a\x1b[2K\r\u200b é 👍\n\tb"
    assert visible(text) == "rm \\u202egpj.a\\x1b[2K\\r\\u200b é 👍\n\tb"
    assert visible("plain") == "plain"
