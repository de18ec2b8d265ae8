"""The output of a command, as a person would see it."""

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.text.console import console_text

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
def test_a_person_would_see_this(printed: bytes, text: str) -> None:
    assert console_text(printed) == text


@given(st.binary() | ODD)
def test_nothing_that_steers_a_terminal_is_left(printed: bytes) -> None:
    text = console_text(printed)
    assert not [c for c in text if unicodedata.category(c) == "Cc" and c not in "\n\t"]
    assert console_text(text.encode()) == text


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"])))
def test_plain_text_stays_as_it_is(text: str) -> None:
    assert console_text(text.encode()) == text


@pytest.mark.parametrize(
    "piece", [b"\x1b]", b"\x1b[", b"\x1b[0", b"\r", b"a\r", b"\x1b", b"\r\r\n"]
)
def test_what_is_odd_takes_no_longer(piece: bytes) -> None:
    since = time.process_time()
    console_text(piece * 200_000)
    assert time.process_time() - since < 1.0
