"""The output of a terminal: lines that stand for good, and a tail that is drawn again."""

import os
import re
from collections import deque
from collections.abc import Callable, Sequence
from io import StringIO
from typing import TextIO

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.text import Text

KEPT_NOTES = 100
_STYLE = re.compile(r"\x1b\[[\d;]*m")


class LiveOutput:
    """Writes each line once; only the tail, never higher than the screen, is written again."""

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
        """A line of the person's that is not sent yet, to be drawn below the rest."""

    @property
    def columns(self) -> int:
        return self._size().columns

    def note(self, text: str) -> None:
        """A line that will stand above what is drawn next; may come from any thread."""
        self._notes.append(text)

    def put(self, *what: RenderableType) -> None:
        """Writes for good, in the place of the tail."""
        self.draw(what, ())

    def draw(self, what: Sequence[RenderableType], tail: Sequence[RenderableType]) -> None:
        """Writes `what` for good, and beneath it a new tail."""
        size = self._size()
        notes = [Text(self._notes.popleft(), "dim") for _ in range(len(self._notes))]
        lines = self._lines([*notes, *what], size.columns)
        shown = self._lines(tail, size.columns)[-max(1, size.lines - 1) :]
        if lines or shown != self._tail or size.columns != self._columns:
            self._out.write(self._erased(size.columns) + _joined(lines, shown))
            self._out.flush()
        self._tail, self._columns = shown, size.columns

    def _lines(self, what: Sequence[RenderableType], columns: int) -> list[str]:
        # The last column stays free: terminals differ in what they do behind it.
        self._console.width = max(1, columns - 1)
        with self._console.capture() as captured:
            self._console.print(Group(*what), end="")
        return [line.rstrip(" ") for line in captured.get().split("\n")[:-1]]

    def _erased(self, columns: int) -> str:
        """Leads back to where the tail began."""
        if not self._tail:
            return ""
        # Terminals break lines anew that are wider than they have become.
        widths = (cell_len(_STYLE.sub("", line)) for line in self._tail)
        rows = sum(max(1, -(-width // columns)) for width in widths)
        up = f"\x1b[{rows - 1}A" if rows > 1 else ""
        return f"\r{up}\x1b[J"


def terminal_size(out: TextIO) -> os.terminal_size:
    size = os.get_terminal_size(out.fileno())
    # A terminal that nobody has told its size says 0.
    return os.terminal_size((size.columns or 80, size.lines or 24))


def _joined(lines: Sequence[str], tail: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines) + "\n".join(tail)
