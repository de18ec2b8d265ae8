"""Shows the progress of a long piece of work."""

from collections.abc import Callable
from typing import TextIO

BAR_WIDTH = 30


class ProgressBar:
    """Shows a bar on a terminal. In other output, writes a line for every tenth of the work.

    `amount` describes the finished part and the total as text. The text should always have the same
    width.
    """

    def __init__(self, file: TextIO, label: str, amount: Callable[[int, int], str]) -> None:
        self._file = file
        self._label = label
        self._amount = amount
        self._shown = -1
        self._open = False

    def __call__(self, done: int, total: int) -> None:
        terminal = self._file.isatty()
        share = done / total if total else 1.0
        part = int(share * (100 if terminal else 10))
        if part <= self._shown:
            return
        self._shown = part
        amount = self._amount(done, total)
        if terminal:
            filled = "█" * int(share * BAR_WIDTH)
            self._write(f"\r{self._label} ▕{filled:<{BAR_WIDTH}}▏ {amount}")
            self._open = True
        else:
            self._write(f"{self._label}: {amount}\n")

    def close(self) -> None:
        """Ends the line of the bar, if there is one."""
        if self._open:
            self._write("\n")
            self._open = False

    def _write(self, text: str) -> None:
        self._file.write(text)
        self._file.flush()
