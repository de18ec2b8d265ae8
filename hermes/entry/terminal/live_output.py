"""Writes to a terminal: permanent lines, and below them a tail that is redrawn."""

import os
import re
from collections import deque
from collections.abc import Callable, Sequence
from io import StringIO
from typing import TextIO

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.text import Text

from hermes.control.context_use import ContextUse
from hermes.entry.terminal.status_line import status_line

KEPT_NOTES = 100
"""Maximum number of lines from `note` that wait for the next drawing. The oldest are dropped."""
_STYLE = re.compile(r"\x1b\[[\d;]*m")


class LiveOutput:
    """Writes each permanent line once. Only the tail, which fits on the screen, is redrawn."""

    def __init__(
        self, out: TextIO, *, color: bool, size: Callable[[], os.terminal_size] | None = None
    ) -> None:
        self._out = out
        self._size = size or (lambda: terminal_size(out))
        self._console = Console(
            file=StringIO(), force_terminal=True, no_color=not color, highlight=False, width=80
        )
        self._tail: list[str] = []
        self._columns = 0
        self._notes: deque[str] = deque(maxlen=KEPT_NOTES)
        self.typed = ""
        """Text that the person has typed and not sent yet. It is drawn below all other text."""
        self.context: ContextUse | None = None
        """The content of the status line; None for no status line."""

    @property
    def columns(self) -> int:
        return self._size().columns

    def status(self, hint: str = "") -> str:
        """Returns the text of the status line; empty if there is none."""
        # The last column of the terminal stays free in every line that is drawn here.
        return status_line(self.context, self.columns - 1, hint) if self.context else ""

    def note(self, text: str) -> None:
        """Adds a line above the tail with the next drawing. This method can be called from any
        thread."""
        self._notes.append(text)

    def put(self, *what: RenderableType) -> None:
        """Erases the tail, and prints `what` as permanent lines."""
        self.draw(what, ())

    def draw(self, what: Sequence[RenderableType], tail: Sequence[RenderableType]) -> None:
        """Erases the old tail, prints `what` as permanent lines, and draws `tail` below them."""
        size = self._size()
        notes = [Text(self._notes.popleft(), "dim") for _ in range(len(self._notes))]
        lines = self._lines([*notes, *what], size.columns)
        shown = self._lines(tail, size.columns)[-max(1, size.lines - 1) :]
        if lines or shown != self._tail or size.columns != self._columns:
            self._out.write(self._erased(size.columns) + _joined(lines, shown))
            self._out.flush()
        self._tail, self._columns = shown, size.columns

    def _lines(self, what: Sequence[RenderableType], columns: int) -> list[str]:
        # The last column stays free: after a character in it, some terminals wrap at once, and
        # others only before the next character.
        self._console.width = max(1, columns - 1)
        with self._console.capture() as captured:
            self._console.print(Group(*what), end="")
        return [line.rstrip(" ") for line in captured.get().split("\n")[:-1]]

    def _erased(self, columns: int) -> str:
        """Returns the codes that move the cursor to the beginning of the tail and erase the
        tail."""
        if not self._tail:
            return ""
        # If the terminal became narrower, it has wrapped the lines that no longer fit. Each of
        # these lines now takes several rows.
        widths = (cell_len(_STYLE.sub("", line)) for line in self._tail)
        rows = sum(max(1, -(-width // columns)) for width in widths)
        up = f"\x1b[{rows - 1}A" if rows > 1 else ""
        return f"\r{up}\x1b[J"


def terminal_size(out: TextIO) -> os.terminal_size:
    """Returns the size of the terminal."""
    size = os.get_terminal_size(out.fileno())
    # The size is 0 if it was never set, as in some containers.
    return os.terminal_size((size.columns or 80, size.lines or 24))


def _joined(lines: Sequence[str], tail: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines) + "\n".join(tail)
