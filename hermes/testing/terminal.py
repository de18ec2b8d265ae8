"""A terminal for tests: sends keys to a real process and reads its screen."""

import errno
import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import pyte
from pyte.screens import Char

SCROLLBACK = 10_000


class Terminal:
    """Runs a program in a terminal of its own until the block ends."""

    def __init__(
        self,
        command: Sequence[str],
        environ: Mapping[str, str],
        cwd: Path,
        columns: int = 80,
        rows: int = 24,
    ) -> None:
        self._descriptor, other = pty.openpty()
        self._screen = _Screen(columns, rows, self.send)
        self._stream = pyte.ByteStream(self._screen)
        self.written = b""
        """All output of the program."""
        self._set_size(columns, rows)
        self.process = subprocess.Popen(  # noqa: S603  # a test's own command
            command,
            stdin=other,
            stdout=other,
            stderr=other,
            env=environ,
            cwd=cwd,
            start_new_session=True,
            preexec_fn=_own_terminal,  # noqa: PLW1509  # between fork and exec, one system call
        )
        os.close(other)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._descriptor)

    @property
    def lines(self) -> list[str]:
        """The lines of the screen, without trailing blanks."""
        return [line.rstrip() for line in self._screen.display]

    @property
    def text(self) -> str:
        """The text of the screen, and all text above the screen to which a user can scroll."""
        return "\n".join([*self._screen.scrollback, *self.lines]).rstrip()

    @property
    def row(self) -> str:
        """The text of the line with the cursor."""
        return self.lines[self._screen.cursor.y]

    @property
    def echoes(self) -> bool:
        """Whether the terminal itself shows typed keys, as in a shell."""
        return bool(termios.tcgetattr(self._descriptor)[3] & termios.ECHO)

    @property
    def cells(self) -> list[list[Char]]:
        """The characters of the screen with their styles."""
        screen = self._screen
        columns, rows = range(screen.columns), range(screen.lines)
        return [[screen.buffer[row][column] for column in columns] for row in rows]

    def style(self, text: str) -> Char:
        """Returns the style of the first letter of a text on the screen."""
        row = next(index for index, line in enumerate(self.lines) if text in line)
        return self.cells[row][self.lines[row].index(text)]

    def send(self, keys: str) -> None:
        os.write(self._descriptor, keys.encode())

    def resize(self, columns: int, rows: int) -> None:
        self._screen.resize(rows, columns)
        self._set_size(columns, rows)

    def until(self, wanted: str | Callable[[], object], within: float = 20.0) -> None:
        """Returns when the text is on the screen, or when the condition is true. Fails after
        `within` seconds."""
        seen = wanted if callable(wanted) else lambda: wanted in self.text
        deadline = time.monotonic() + within
        while not seen():
            if not self._read(deadline - time.monotonic()):
                raise AssertionError(f"no {wanted!r} within {within} s in:\n{self.text}")

    def ended(self, within: float = 20.0) -> int:
        """Waits until the program has ended, and returns its exit code."""
        deadline = time.monotonic() + within
        while self._read(deadline - time.monotonic()):
            pass
        return self.process.wait(max(0.0, deadline - time.monotonic()))

    def _read(self, seconds: float) -> bool:
        if not select.select([self._descriptor], [], [], max(0.0, seconds))[0]:
            return False
        try:
            data = os.read(self._descriptor, 65536)
        except OSError as error:
            # On Linux, EIO means that the program has closed its end of the terminal.
            if error.errno != errno.EIO:
                raise
            return False
        self.written += data
        self._stream.feed(data)
        return bool(data)

    def _set_size(self, columns: int, rows: int) -> None:
        size = struct.pack("HHHH", rows, columns, 0, 0)
        fcntl.ioctl(self._descriptor, termios.TIOCSWINSZ, size)


class _Screen(pyte.HistoryScreen):
    """Answers the queries that programs send to their terminal."""

    def __init__(self, columns: int, rows: int, answer: Callable[[str], None]) -> None:
        super().__init__(columns, rows, history=SCROLLBACK, ratio=0.5)
        self._answer = answer

    def select_graphic_rendition(self, *attrs: int, **kwargs: bool) -> None:
        # pyte, the terminal emulator, does not know faint text (code 2). Faint text gets the colour
        # (90) in which most terminals show it.
        shown = attrs if {38, 48} & {*attrs} else [90 if one == 2 else one for one in attrs]
        super().select_graphic_rendition(*shown, **kwargs)

    def write_process_input(self, data: str) -> None:
        self._answer(data)

    @property
    def scrollback(self) -> list[str]:
        return [
            "".join(line[column].data for column in range(self.columns)).rstrip()
            for line in self.history.top
        ]


def _own_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
