"""A plain terminal reads lines and prints events, without an editor."""

import json
import os
from collections.abc import Iterator

import anyio
import pytest

from hermes.entry.terminal.plain import (
    JsonScreen,
    PlainScreen,
    PlainTerminal,
    SplitScreen,
    read_lines,
)
from hermes.types.events import Notice, TextDelta, TurnFinished


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


async def test_lines_that_arrive_together_are_one_message(pipe: tuple[int, int]) -> None:
    out, into = pipe
    os.write(into, b"one\ntwo\n")
    assert await read_lines(out) == "one\ntwo\n"
    os.write(into, b"three\n")
    assert await read_lines(out) == "three\n"


async def test_a_line_may_arrive_in_pieces(pipe: tuple[int, int]) -> None:
    out, into = pipe

    async def later() -> None:
        os.write(into, b"lo\n")

    os.write(into, b"hel")
    async with anyio.create_task_group() as group:
        group.start_soon(later)
        assert await read_lines(out) == "hello\n"


async def test_an_incomplete_last_line_is_read_and_then_the_input_has_ended() -> None:
    out, into = os.pipe()
    os.write(into, b"half")
    os.close(into)
    assert await read_lines(out) == "half"
    assert await read_lines(out) is None
    os.close(out)


def test_the_answer_and_the_events_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    screen = PlainScreen(color=False, answers=True)
    screen.show(TextDelta(text="Hi"))
    screen.show(TurnFinished(outcome="completed"))
    screen.show_reply("Idle.")
    assert capsys.readouterr().out == "Hi\nIdle.\n"
    JsonScreen("trip").show_reply("Idle.")
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [
        {"type": "Session", "name": "trip"},
        {"type": "Notice", "text": "Idle."},
    ]


def test_everything_except_the_answer_goes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    screen = SplitScreen(answers=True)
    screen.show(Notice(text="a pause"))
    screen.show(TextDelta(text="Hi"))
    screen.note("Queued")
    screen.show(TurnFinished(outcome="failed", text="No key."))
    screen.remark("Left.")
    assert capsys.readouterr() == ("Hi\n", "[a pause]\n[Queued]\nNo key.\nLeft.\n")


def test_earlier_messages_are_shown_again_unchanged(capsys: pytest.CaptureFixture[str]) -> None:
    PlainTerminal(color=False).show_exchange("how many?", "Two.")
    assert capsys.readouterr().out == "› how many?\nTwo.\n"
