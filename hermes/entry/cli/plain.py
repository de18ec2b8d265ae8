"""The plain terminal: for scripts, pipes, and terminals that can't do more."""

import math
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import anyio
import click

from hermes.entry.cli.conversation import Screen
from hermes.streaming.stdout import JsonLines, StdoutStream
from hermes.types.events import AgentEvent, Notice

PROMPT = "› "
PASTE_SECONDS = 0.02
"""Lines that follow this closely were pasted: they are one message."""


class PlainScreen:
    """Writes what comes as it comes: words, or each event as JSON."""

    def __init__(self, *, as_json: bool, color: bool) -> None:
        self._as_json = as_json
        self._stream = JsonLines() if as_json else StdoutStream(color)

    def show(self, event: AgentEvent) -> None:
        if text := self._stream.feed(event):
            sys.stdout.write(text)
            sys.stdout.flush()

    def tell(self, text: str) -> None:
        if self._as_json:
            self.show(Notice(text=text))
        else:
            click.echo(text)

    def draw(self) -> float:
        return math.inf


class PlainTerminal:
    """Reads lines and writes words: nothing is drawn."""

    def __init__(self, *, color: bool) -> None:
        self._color = color
        self._reading: anyio.CancelScope | None = None

    def greet(self, title: str, notes: Sequence[str]) -> None:
        click.echo("\n".join([title, *notes]))

    def remark(self, text: str) -> None:
        click.echo(text)

    def recall(self, asked: str, answer: str) -> None:
        click.echo(f"{PROMPT}{asked}\n{answer}")

    def new_screen(self) -> Screen:
        return PlainScreen(as_json=False, color=self._color)

    @contextmanager
    def working(self) -> Iterator[None]:
        yield

    async def read(self) -> str | None:
        click.echo(PROMPT, nl=False)
        typed: str | None = None
        with anyio.CancelScope() as self._reading:
            typed = await read_lines(sys.stdin.fileno())
        if typed is None:
            click.echo()
        return typed

    def leave(self) -> None:
        if self._reading is not None:
            self._reading.cancel()


async def read_lines(descriptor: int) -> str | None:
    """A line of the terminal, with those pasted behind it; None at its end."""
    read = b""
    while True:
        await anyio.wait_readable(descriptor)
        if not (more := os.read(descriptor, 65536)):
            return read.decode(errors="replace") if read else None
        read += more
        if not read.endswith(b"\n"):
            continue
        with anyio.move_on_after(PASTE_SECONDS) as pause:
            await anyio.wait_readable(descriptor)
        if pause.cancelled_caught:
            return read.decode(errors="replace")
