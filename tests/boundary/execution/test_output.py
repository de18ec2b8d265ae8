"""The output of a command is shown as text of a limited length. No part of a secret is shown, even
if the limit cuts the secret."""

from hypothesis import given
from hypothesis import strategies as st

from hermes.boundary.execution.output import OUTPUT_HEAD, OUTPUT_TAIL, PROGRESS_LINE, Output

NUMBERS = b"".join(b"%07d\n" % number for number in range((OUTPUT_HEAD + OUTPUT_TAIL) // 2))


@given(st.lists(st.integers(0, len(NUMBERS) // 4), max_size=6))
def test_the_beginning_and_the_end_are_kept(sizes: list[int]) -> None:
    output, whole = Output(), b""
    for size in sizes:
        piece = NUMBERS[len(whole) :][:size]
        output.add(piece)
        whole += piece
    if len(whole) <= OUTPUT_HEAD + OUTPUT_TAIL:
        assert output.text() == whole.decode()
    else:
        head, tail = whole[:OUTPUT_HEAD].decode(), whole[-OUTPUT_TAIL:].decode()
        tail = tail[tail.index("\n") :]
        note = f"\n\n[{len(whole) - OUTPUT_HEAD - len(tail)} bytes are left out here]\n\n"
        assert output.text() == head + note + tail
    assert len(output._head) + len(output._tail) <= OUTPUT_HEAD + 2 * OUTPUT_TAIL


@given(st.integers(0, PROGRESS_LINE), st.integers(0, 40), st.sampled_from([b"\n", b" ", b""]))
def test_no_half_of_a_secret_is_shown(before: int, after: int, end: bytes) -> None:
    output = Output()
    output.add(b"z" * (OUTPUT_HEAD - before) + b"tok-5f3c9a7be21d4480" + end)
    output.add(
        b"z" * (OUTPUT_HEAD + OUTPUT_TAIL) + b"tok-5f3c9a7be21d4480" + b"z" * (OUTPUT_TAIL - after)
    )
    shown = output.text() + output.last_line()
    assert "tok" not in shown.replace("tok-5f3c9a7be21d4480", "")
    assert "480" not in shown.replace("tok-5f3c9a7be21d4480", "")


def test_the_last_line_of_output_is_shown_as_progress() -> None:
    output = Output()
    assert output.last_line() == ""
    output.add(b"one\n\x1b[32mtwo\x1b[0m\n\n")
    assert output.last_line() == "two"
    output.add(b"x" * PROGRESS_LINE)
    assert output.last_line() == ""
    output.add(b"\r10 %\r20 %")
    assert output.last_line() == "20 %"
    output.add(b"\n" * OUTPUT_HEAD + b"far on\n")
    assert output.last_line() == "far on"
