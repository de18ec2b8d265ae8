"""What a command prints, as text, and never more of it than fits."""

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.boundary.execution.output import HEAD, LINE, TAIL, Output, plain

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
    assert plain(printed) == text


@given(st.binary() | ODD)
def test_nothing_that_steers_a_terminal_is_left(printed: bytes) -> None:
    text = plain(printed)
    assert not [c for c in text if unicodedata.category(c) == "Cc" and c not in "\n\t"]
    assert plain(text.encode()) == text


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"])))
def test_plain_text_stays_as_it_is(text: str) -> None:
    assert plain(text.encode()) == text


@pytest.mark.parametrize(
    "piece", [b"\x1b]", b"\x1b[", b"\x1b[0", b"\r", b"a\r", b"\x1b", b"\r\r\n"]
)
def test_what_is_odd_takes_no_longer(piece: bytes) -> None:
    since = time.process_time()
    plain(piece * 200_000)
    assert time.process_time() - since < 1.0


NUMBERS = b"".join(b"%07d\n" % number for number in range((HEAD + TAIL) // 2))


@given(st.lists(st.integers(0, len(NUMBERS) // 4), max_size=6))
def test_the_beginning_and_the_end_are_kept(sizes: list[int]) -> None:
    output, whole = Output(), b""
    for size in sizes:
        piece = NUMBERS[len(whole) :][:size]
        output.add(piece)
        whole += piece
    if len(whole) <= HEAD + TAIL:
        assert output.text() == whole.decode()
    else:
        head, tail = whole[:HEAD].decode(), whole[-TAIL:].decode()
        tail = tail[tail.index("\n") :]
        note = f"\n\n[{len(whole) - HEAD - len(tail)} bytes are left out here]\n\n"
        assert output.text() == head + note + tail
    assert len(output._head) + len(output._tail) <= HEAD + 2 * TAIL


@given(st.integers(0, LINE), st.integers(0, 40), st.sampled_from([b"\n", b" ", b""]))
def test_no_half_of_a_secret_is_shown(before: int, after: int, end: bytes) -> None:
    output = Output()
    output.add(b"z" * (HEAD - before) + b"tok-5f3c9a7be21d4480" + end)
    output.add(b"z" * (HEAD + TAIL) + b"tok-5f3c9a7be21d4480" + b"z" * (TAIL - after))
    shown = output.text() + output.last_line()
    assert "tok" not in shown.replace("tok-5f3c9a7be21d4480", "")
    assert "480" not in shown.replace("tok-5f3c9a7be21d4480", "")


def test_the_last_line_tells_how_far_it_is() -> None:
    output = Output()
    assert output.last_line() == ""
    output.add(b"one\n\x1b[32mtwo\x1b[0m\n\n")
    assert output.last_line() == "two"
    output.add(b"x" * LINE)
    assert output.last_line() == ""
    output.add(b"\r10 %\r20 %")
    assert output.last_line() == "20 %"
    output.add(b"\n" * HEAD + b"far on\n")
    assert output.last_line() == "far on"
