"""Plain output for scripts, pipes and terminals without cursor movement."""

import math
import os
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager

import anyio

from hermes.control.context_use import ContextUse
from hermes.entry.output import say_unwrapped, write
from hermes.entry.terminal.protocols import MARK, AnswerScreen
from hermes.streaming.stdout import JsonLines, Session, SplitStream, StdoutStream
from hermes.types.events import AgentEvent, Notice

PASTE_SECONDS = 0.02
"""Longest pause in seconds between two lines of the same paste. Lines that follow each other faster
belong to the same message."""


class PlainScreen:
    """Writes the answer and all notices to stdout, for a person who reads both there."""

    def __init__(self, *, color: bool, answers: bool) -> None:
        self._stream = StdoutStream(color, answers=answers)

    def show_question(self, text: str) -> None:
        say_unwrapped(f"{MARK}{text}")

    def show(self, event: AgentEvent) -> None:
        write(self._stream.feed(event))

    def show_reply(self, text: str) -> None:
        say_unwrapped(text)

    def remark(self, text: str) -> None:
        say_unwrapped(text)

    def note(self, text: str) -> None:
        self.show(Notice(text=text))

    def draw(self) -> float:
        return math.inf


class SplitScreen:
    """Writes the answer to stdout, and everything else to stderr."""

    def __init__(self, *, answers: bool) -> None:
        self._stream = SplitStream(answers)

    def show_question(self, text: str) -> None:
        say_unwrapped(f"{MARK}{text}", err=True)

    def show(self, event: AgentEvent) -> None:
        written = self._stream.feed(event)
        write(written.answer)
        say_unwrapped(written.aside, nl=False, err=True)

    def show_reply(self, text: str) -> None:
        say_unwrapped(text)

    def remark(self, text: str) -> None:
        say_unwrapped(text, err=True)

    def note(self, text: str) -> None:
        self.show(Notice(text=text))

    def draw(self) -> float:
        return math.inf


class JsonScreen:
    """Writes each event as a line of JSON, after a line that names the session."""

    def __init__(self, session: str) -> None:
        self._lines = JsonLines()
        write(self._lines.feed(Session(name=session)))

    def show_question(self, text: str) -> None:
        self.show(Notice(text=f"{MARK}{text}"))

    def show(self, event: AgentEvent) -> None:
        write(self._lines.feed(event))

    def show_reply(self, text: str) -> None:
        self.show(Notice(text=text))

    def remark(self, text: str) -> None:
        self.show(Notice(text=text))

    def note(self, text: str) -> None:
        self.show(Notice(text=text))

    def draw(self) -> float:
        return math.inf


def plain_screen(*, color: bool, answers: bool) -> AnswerScreen:
    """Returns the screen for plain text. If stdout and stderr are both a terminal, the screen
    writes everything to stdout. Otherwise, it writes the answer to stdout and everything else to
    stderr. `answers` says whether the person can answer questions here."""
    together = sys.stdout.isatty() and sys.stderr.isatty()
    return PlainScreen(color=color, answers=answers) if together else SplitScreen(answers=answers)


class PlainTerminal:
    """Reads lines and writes plain text, without drawing."""

    def __init__(self, *, color: bool) -> None:
        self._color = color
        self._reading: anyio.CancelScope | None = None
        self._ended = False

    def greet(self, title: str, notes: Sequence[str]) -> None:
        say_unwrapped("\n".join([title, *notes]))

    def remark(self, text: str) -> None:
        say_unwrapped(text)

    def show_exchange(self, asked: str, answer: str) -> None:
        say_unwrapped(f"{MARK}{asked}\n{answer}")

    def new_screen(self) -> AnswerScreen:
        return plain_screen(color=self._color, answers=True)

    def show_context(self, use: ContextUse) -> None:
        """Does nothing, because a status line needs cursor movement."""

    def skip_suggestion(self, text: str) -> None:
        """Does nothing, because there are no suggestions."""

    @contextmanager
    def working(self) -> Iterator[None]:
        yield

    async def read_ahead(
        self, send: Callable[[str], Awaitable[None]], stop: Callable[[], Awaitable[None]]
    ) -> None:
        """Sends complete lines. The Esc key has no effect, because input arrives in whole lines."""
        while (typed := await read_lines(sys.stdin.fileno())) is not None:
            if typed.strip():
                await send(typed.strip("\n"))
        self._ended = True

    async def read(self, escape: str = "") -> str | None:
        if self._ended:
            return None
        say_unwrapped(MARK, nl=False)
        typed: str | None = None
        with anyio.CancelScope() as self._reading:
            typed = await read_lines(sys.stdin.fileno())
        if typed is None:
            say_unwrapped("")
        return typed

    def leave(self) -> None:
        if self._reading is not None:
            self._reading.cancel()


async def read_lines(descriptor: int) -> str | None:
    """Returns the next line of input, with lines that were pasted after it; None at the end of
    input."""
    read = b""
    while True:
        await anyio.wait_readable(descriptor)
        if not (more := os.read(descriptor, 65536)):
            return read.decode(errors="replace") if read else None
        read += more
        if not read.endswith(b"\n"):
            continue
        with anyio.move_on_after(PASTE_SECONDS, shield=True) as pause:
            await anyio.wait_readable(descriptor)
        if pause.cancelled_caught:
            return read.decode(errors="replace")
