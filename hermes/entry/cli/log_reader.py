"""`hermes logs`: shows the last lines of the service's log, and follows new lines."""

import contextlib
import os
import re
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import click

from hermes import settings as configuration
from hermes.entry.cli.main import plainly
from hermes.entry.output import say, say_unwrapped
from hermes.text.console import printable_line

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
LOG_POLL_SECONDS = 0.2
"""Seconds before a log without new lines is read again."""

_LEVEL = re.compile(r'^\S+ \S+ ([A-Z]+) |"level":\s*"([A-Z]+)"')


@click.command()
@click.option("-f", "--follow", is_flag=True, help="Show new lines until Ctrl-C.")
@click.option(
    "-n",
    "--lines",
    type=click.IntRange(min=0),
    default=50,
    show_default=True,
    help="Number of lines to show.",
)
@click.option(
    "--level",
    type=click.Choice(LEVELS, case_sensitive=False),
    default="DEBUG",
    help="Only records of this level and above.",
)
@plainly
def logs(follow: bool, lines: int, level: str) -> None:
    """Show the log of the service."""
    path = configuration.locate().logs / "hermes.log"
    wanted = LevelFilter(level)
    if not path.exists() and not follow:
        say(f"There is no log yet: `hermes gateway` writes it to {path}.", err=True)
        raise SystemExit(1)
    # Ctrl-C is the usual end of `--follow`, so it is no error.
    with contextlib.suppress(KeyboardInterrupt):
        for line in LogTail(path, follow=follow).last(lines, wanted):
            say_unwrapped(printable_line(line))


class LevelFilter:
    """Selects the records at or above a level, with their tracebacks."""

    def __init__(self, least: str) -> None:
        self._least = LEVELS.index(least.upper())
        self._selected = True
        """Whether the last record was selected. If it was, the lines of its traceback are selected,
        too."""

    def __call__(self, line: str) -> bool:
        if found := _LEVEL.search(line):
            level = found[1] or found[2]
            self._selected = level not in LEVELS or LEVELS.index(level) >= self._least
        return self._selected


class LogTail:
    """Reads a log file. When the log is rotated, also reads the new log file."""

    def __init__(self, path: Path, *, follow: bool) -> None:
        self._path = path
        self._follow = follow

    def last(self, count: int, wanted: LevelFilter) -> Iterator[str]:
        """Yields the last `count` lines that the filter `wanted` lets pass. If the log is followed,
        continues with new lines as soon as they are written."""
        file = self._opened()
        if file is None:
            return
        try:
            yield from deque(filter(wanted, _lines(file)), maxlen=count)
            while self._follow:
                yield from filter(wanted, _lines(file))
                if self._replaced(file):
                    # These lines were written between the last read and the rotation.
                    yield from filter(wanted, _lines(file))
                    file.close()
                    file = self._opened() or file
                else:
                    time.sleep(LOG_POLL_SECONDS)
        finally:
            file.close()

    def _opened(self) -> TextIO | None:
        while True:
            try:
                return self._path.open(encoding="utf-8", errors="replace")
            except FileNotFoundError:
                if not self._follow:
                    return None
            time.sleep(LOG_POLL_SECONDS)

    def _replaced(self, file: TextIO) -> bool:
        try:
            named = self._path.stat()
        except FileNotFoundError:
            return False
        own = os.fstat(file.fileno())
        return (named.st_dev, named.st_ino) != (own.st_dev, own.st_ino)


def _lines(file: TextIO) -> Iterator[str]:
    """Yields the lines from the current position to the end. An incomplete line is left for the
    next call."""
    while True:
        start = file.tell()
        line = file.readline()
        if not line.endswith("\n"):
            file.seek(start)
            return
        yield line.rstrip("\n")
