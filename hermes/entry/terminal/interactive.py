"""The terminal of a person who sits at it: drawn answers, an editable prompt."""

import io
import os
import sys
import termios
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import anyio
from rich.text import Text

from hermes.entry.output import write
from hermes.entry.terminal.completion import Completions
from hermes.entry.terminal.line_editor import MARK, LineEditor
from hermes.entry.terminal.live_output import LiveOutput
from hermes.entry.terminal.live_screen import LiveScreen
from hermes.entry.terminal.plain import PlainTerminal
from hermes.entry.terminal.type_ahead import TypeAhead
from hermes.text.console import printable

RECALLED = 600
"""Characters of what was said before that are shown again."""
_PASTE_ON, _PASTE_OFF = "\x1b[?2004h", "\x1b[?2004l"


class InteractiveTerminal:
    """Draws answers as they grow, and lets messages be edited before they go."""

    def __init__(self, history: Path, commands: Mapping[str, str], *, color: bool) -> None:
        self._history = history
        self._completions = Completions(commands, Path.cwd())
        self._color = color
        self._output = LiveOutput(sys.stdout, color=color)
        self._draft = TypeAhead()
        self._reader: LineEditor | PlainTerminal | None = None
        self.log: TextIO = _Notes(self._output)
        """Where log lines don't disturb what is drawn."""

    def greet(self, title: str, notes: Sequence[str]) -> None:
        name, _, rest = printable(title).partition(" · ")
        self._output.put(Text.assemble((name, "bold"), f" · {rest}"))
        self._output.put(*(Text(printable(note), "dim") for note in notes))

    def remark(self, text: str) -> None:
        self._output.put(Text(printable(text), "dim"))

    def show_exchange(self, asked: str, answer: str) -> None:
        said = f"{MARK}{cut(asked)}\n{cut(answer)}".rstrip()
        self._output.put(Text(), Text(printable(said), "dim"))

    def new_screen(self) -> LiveScreen:
        return LiveScreen(self._output)

    @contextmanager
    def working(self) -> Iterator[None]:
        """What is typed meanwhile is not echoed into the answer."""
        descriptor = sys.stdin.fileno()
        before = termios.tcgetattr(descriptor)
        quiet = termios.tcgetattr(descriptor)
        quiet[0] &= ~termios.ICRNL
        quiet[3] &= ~(termios.ECHO | termios.ICANON)
        termios.tcsetattr(descriptor, termios.TCSANOW, quiet)
        write(_PASTE_ON)
        try:
            yield
        finally:
            write(_PASTE_OFF)
            termios.tcsetattr(descriptor, termios.TCSANOW, before)

    async def read_ahead(self, say: Callable[[str], Awaitable[None]]) -> None:
        while keys := await _typed(sys.stdin.fileno()):
            for line in self._draft.feed(keys):
                await say(line)
            self._output.typed = self._draft.text

    async def read(self) -> str | None:
        self._output.put(Text())
        self._output.typed = ""
        try:
            if self._reader is None:
                self._reader = LineEditor(self._history, self._completions, color=self._color)
            if isinstance(self._reader, PlainTerminal):
                return await self._reader.read()
            return await self._reader.read(self._draft.take())
        except OSError as error:
            self.remark(f"The prompt does not work here ({error}); lines are read plainly.")
            self._reader = PlainTerminal(color=self._color)
            return await self._reader.read()

    def leave(self) -> None:
        if self._reader is not None:
            self._reader.leave()


async def _typed(descriptor: int) -> bytes:
    await anyio.wait_readable(descriptor)
    return os.read(descriptor, 65536)


def cut(text: str) -> str:
    return text if len(text) <= RECALLED else f"{text[:RECALLED].rstrip()} …"


class _Notes(io.StringIO):
    """Takes lines for a output, from any thread."""

    def __init__(self, output: LiveOutput) -> None:
        super().__init__()
        self._output = output

    def write(self, text: str) -> int:
        if text.strip():
            self._output.note(printable(text.rstrip()))
        return len(text)
