"""The terminal of an interactive chat: draws answers live, and has a line editor."""

import io
import os
import sys
import termios
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import anyio
from rich.text import Text

from hermes.control.context_use import ContextUse
from hermes.entry.output import write
from hermes.entry.terminal.completion import Completions
from hermes.entry.terminal.line_editor import LineEditor
from hermes.entry.terminal.live_output import LiveOutput
from hermes.entry.terminal.live_screen import LiveScreen
from hermes.entry.terminal.plain import PlainTerminal
from hermes.entry.terminal.protocols import ESCAPE_SECONDS, MARK
from hermes.entry.terminal.suggestions import HistorySuggestions
from hermes.entry.terminal.type_ahead import TypeAhead
from hermes.text.console import printable

RECALLED = 600
"""Maximum number of characters that are shown of an earlier question, and of its answer."""
_PASTE_ON, _PASTE_OFF = "\x1b[?2004h", "\x1b[?2004l"


class InteractiveTerminal:
    """Draws answers as they grow, and reads messages with a line editor."""

    def __init__(
        self,
        history: Path,
        commands: Mapping[str, str],
        aliases: Mapping[str, Collection[str]],
        *,
        color: bool,
    ) -> None:
        """`commands` maps each slash command to its help, and `aliases` maps each slash command to
        its other names."""
        self._history = history
        self._suggestions = HistorySuggestions(aliases)
        self._completions = Completions(commands, Path.cwd())
        self._color = color
        self._output = LiveOutput(sys.stdout, color=color)
        self._type_ahead = TypeAhead()
        self._reader: LineEditor | PlainTerminal | None = None
        self.log: TextIO = _Notes(self._output)
        """Receives log lines, and writes them above the part that is redrawn."""

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

    def show_context(self, use: ContextUse) -> None:
        self._output.context = use

    def skip_suggestion(self, text: str) -> None:
        self._suggestions.skip(text)

    @contextmanager
    def working(self) -> Iterator[None]:
        """Turns off the terminal's echo until the block ends, because typed keys would appear
        inside the answer. The line editor restores this mode when it ends."""
        with _terminal_mode(lines=False):
            yield

    async def read_ahead(
        self, send: Callable[[str], Awaitable[None]], stop: Callable[[], Awaitable[None]]
    ) -> None:
        typed, descriptor = self._type_ahead, sys.stdin.fileno()
        editor = self._reader if isinstance(self._reader, LineEditor) else None
        lines = typed.feed_presses(editor.take_keys() if editor else ())
        write(_PASTE_ON)
        try:
            while True:
                self._output.typed = typed.text
                for line in lines:
                    await send(line)
                if typed.pending and not await _more_follows(descriptor):
                    typed.end_pending()
                    await stop()
                if not (keys := await _typed(descriptor)):
                    break
                lines = typed.feed(keys)
        finally:
            write(_PASTE_OFF)

    async def read(self, escape: str = "") -> str | None:
        self._output.put(Text())
        self._output.typed = ""
        try:
            if self._reader is None:
                self._reader = LineEditor(
                    self._history,
                    self._completions,
                    self._suggestions,
                    self._output.status,
                    color=self._color,
                )
            if isinstance(self._reader, PlainTerminal):
                return await _read_plain(self._reader)
            return await self._reader.read(self._type_ahead.take(), escape)
        except OSError as error:
            self.remark(f"The line editor does not work here ({error}); using plain input.")
            self._reader = PlainTerminal(color=self._color)
            return await _read_plain(self._reader)

    def leave(self) -> None:
        if self._reader is not None:
            self._reader.leave()


@contextmanager
def _terminal_mode(*, lines: bool) -> Iterator[None]:
    """Until the block ends, the terminal shows typed keys and passes on complete lines (`lines`),
    or passes on each key and shows nothing."""
    descriptor = sys.stdin.fileno()
    before, after = termios.tcgetattr(descriptor), termios.tcgetattr(descriptor)
    for position, flags in ((0, termios.ICRNL), (3, termios.ECHO | termios.ICANON)):
        after[position] = after[position] | flags if lines else after[position] & ~flags
    termios.tcsetattr(descriptor, termios.TCSANOW, after)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSANOW, before)


async def _read_plain(reader: PlainTerminal) -> str | None:
    with _terminal_mode(lines=True):
        return await reader.read()


async def _typed(descriptor: int) -> bytes:
    await anyio.wait_readable(descriptor)
    return os.read(descriptor, 65536)


async def _more_follows(descriptor: int) -> bool:
    """Returns whether more bytes arrive at once. Some keys send several bytes, which arrive in
    quick succession."""
    with anyio.move_on_after(ESCAPE_SECONDS):
        await anyio.wait_readable(descriptor)
        return True
    return False


def cut(text: str) -> str:
    return text if len(text) <= RECALLED else f"{text[:RECALLED].rstrip()} …"


class _Notes(io.StringIO):
    """Passes lines to the output, from any thread."""

    def __init__(self, output: LiveOutput) -> None:
        super().__init__()
        self._output = output

    def write(self, text: str) -> int:
        if text.strip():
            self._output.note(printable(text.rstrip()))
        return len(text)
