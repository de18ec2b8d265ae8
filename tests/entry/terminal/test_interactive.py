"""The interactive terminal on a pseudo-terminal, without `hermes chat`."""

import logging
import os
import pty
import select
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys

from hermes.entry.cli.logs import start_logging
from hermes.entry.terminal.interactive import RECALLED, InteractiveTerminal
from hermes.entry.terminal.line_editor import LineEditor
from hermes.testing.running import until


class Seat:
    """The end of a pseudo-terminal that a person would use. The test types into it and reads from
    it."""

    def __init__(self, descriptor: int, terminal: InteractiveTerminal) -> None:
        self._descriptor = descriptor
        self.terminal = terminal

    def types(self, text: str) -> None:
        os.write(self._descriptor, text.encode())

    def shown(self) -> str:
        """Returns the output since the last call."""
        text = b""
        while select.select([self._descriptor], [], [], 0)[0]:
            text += os.read(self._descriptor, 65536)
        return text.decode().replace("\r\n", "\n")


@pytest.fixture
def seat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Seat]:
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "rb", buffering=0) as keys, os.fdopen(os.dup(theirs), "w") as out:
        monkeypatch.setattr(sys, "stdin", keys)
        monkeypatch.setattr(sys, "stdout", out)
        yield Seat(ours, InteractiveTerminal(tmp_path / "history", {}, {}, color=False))
    os.close(ours)


class Broken(LineEditor):
    """A prompt whose `read` raises the error of a terminal that can't be used."""

    def __init__(self) -> None:
        pass

    async def read(self, draft: str = "", escape: str = "") -> str | None:
        raise PermissionError("Operation not permitted")


class Unused(LineEditor):
    """A prompt that has read more keys than it needed."""

    def __init__(self) -> None:
        pass

    def take_keys(self) -> list[KeyPress]:
        return [KeyPress(one) for one in ("f", "i", "r", "s", "t", Keys.ControlM, "s", "e", "c")]


def test_keys_are_not_echoed_into_an_answer(seat: Seat) -> None:
    with seat.terminal.working():
        seat.types("typed ahead")
        assert select.select([sys.stdin], [], [], 2)[0], "the terminal waits for a whole line"
    assert "typed" not in seat.shown()
    assert termios.tcgetattr(sys.stdin.fileno())[3] & termios.ECHO


async def test_keys_that_the_line_editor_did_not_use_are_sent(seat: Seat) -> None:
    sent = list[str]()

    async def send(line: str) -> None:
        sent.append(line)

    async def stop() -> None:
        raise AssertionError("nobody pressed Esc")

    with seat.terminal.working(), anyio.fail_after(10):
        seat.terminal._reader = Unused()
        async with anyio.create_task_group() as group:
            group.start_soon(seat.terminal.read_ahead, send, stop)
            await until(lambda: sent)
            seat.types("ond\r")
            await until(lambda: len(sent) > 1)
            group.cancel_scope.cancel()
    assert sent == ["first", "second"]


async def test_plain_input_is_read_by_the_line_during_a_chat(seat: Seat) -> None:
    seat.terminal._reader = Broken()

    def echoes() -> bool:
        return bool(termios.tcgetattr(sys.stdin.fileno())[3] & termios.ECHO)

    async def type_line() -> None:
        await until(echoes)
        seat.types("hello\r")

    with seat.terminal.working():
        assert not echoes()
        async with anyio.create_task_group() as group:
            group.start_soon(type_line)
            assert await seat.terminal.read() == "hello\n"
        assert not echoes()


async def test_plain_input_replaces_a_line_editor_that_does_not_work(seat: Seat) -> None:
    seat.terminal._reader = Broken()
    seat.types("hello\n")
    assert await seat.terminal.read() == "hello\n"
    assert "The line editor does not work here (Operation not permitted)" in seat.shown()
    seat.types("again\n")
    assert await seat.terminal.read() == "again\n"
    assert "does not work" not in seat.shown()


def test_only_the_beginning_of_a_long_earlier_answer_is_shown_again(seat: Seat) -> None:
    seat.terminal.show_exchange("how many?", "word " * RECALLED)
    text = seat.shown()
    assert "› how many?" in text
    assert text.count("word") == RECALLED // len("word ")
    assert "…" in text


def test_log_lines_wait_until_the_next_line_of_output(seat: Seat) -> None:
    before = logging.getLogger().handlers
    try:
        start_logging("WARNING", [], seat.terminal.log)
        logging.getLogger("hermes").warning("the disk is full")
        assert seat.shown() == ""
        seat.terminal.remark("Done.")
    finally:
        logging.getLogger().handlers = before
    assert "the disk is full" in seat.shown().replace("\n", " ")


async def test_esc_stops_the_turn_and_keeps_the_line(seat: Seat) -> None:
    sent, stopped = list[str](), anyio.Event()

    async def send(line: str) -> None:
        sent.append(line)

    async def stop() -> None:
        stopped.set()

    with seat.terminal.working(), anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(seat.terminal.read_ahead, send, stop)
            seat.types("sent\rhalf\x1b[A a line")
            await until(lambda: seat.terminal._output.typed == "half a line")
            assert not stopped.is_set()
            seat.types("\x1b")
            await stopped.wait()
            group.cancel_scope.cancel()
    assert sent == ["sent"]
    assert seat.terminal._type_ahead.take() == "half a line"
