"""Searches files for a pattern in a separate process, because only killing the process can stop a
slow match.

The script is run by its path and does not import the package, so that it starts within
milliseconds.
"""

import contextlib
import json
import os
import re
import resource
import signal
import stat
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import NamedTuple

SKIPPED = frozenset({".git", ".hg", ".svn", ".venv", "__pycache__", "node_modules"})
LARGE = 10_000_000
"""Maximum size in bytes of a file that is searched."""
DEPTH = 64
"""Maximum depth of the folders that are searched."""
MATCH_MEMORY = 1 << 29
"""Maximum number of bytes of memory for matching."""
HIT_WIDTH = 300
"""Maximum number of characters of a line that are shown."""
HIT_BEFORE = 100
"""Number of characters that are shown before the match."""
HIT, REMARK, WRONG = "=", "!", "?"
"""First character of each output line: a hit as JSON `[path, line, text]`, a remark, or an
error."""


class ScanTask(NamedTuple):
    """A search query, as the gateway sends it to the search process."""

    pattern: str
    path: str
    """The path of the searched folder or file, as the hits show it; empty for the workspace."""
    names: bool
    """Whether to match paths instead of contents."""
    glob: str
    """A glob of the files to search; empty for all."""
    limit: int
    seconds: float
    left_out: tuple[int, int] | None = None
    """The device and inode of a folder that is not searched."""


Hit = tuple[str, int, str]
"""A hit: the path of the file, and the number and the text of the line. If the path itself matches,
the number is 0 and the text is empty."""


class Scan:
    """One search below an open folder or in one open file. It follows no link."""

    def __init__(self, task: ScanTask) -> None:
        self._task = task
        self._pattern = re.compile(task.pattern)
        self._glob = task.glob.removeprefix("./").replace("**/", "")
        self.large = 0
        """Number of files that were too large."""

    def hits(self, place: int) -> Iterator[Hit]:
        path = self._task.path
        if not stat.S_ISDIR(os.fstat(place).st_mode):
            yield from self._file(place, path)
            return
        within = f"{path}/" if path else ""
        for folder, name, found in walk(place, within, DEPTH, self._task.left_out):
            if not self.selects(found):
                continue
            if self._task.names:
                yield from self.named(found)
            elif (file := _opened(name, os.O_NONBLOCK, folder)) is not None:
                try:
                    yield from self._file(file, found)
                finally:
                    os.close(file)

    def selects(self, path: str) -> bool:
        """Returns whether the glob selects the file."""
        name = path if "/" in self._glob else path.rpartition("/")[2]
        return not self._glob or fnmatchcase(name, self._glob)

    def named(self, path: str) -> Iterator[Hit]:
        """Yields a hit if the pattern matches a part of the path itself."""
        if self._pattern.search(path):
            yield _printable(path), 0, ""

    def inside(self, path: str, data: bytes) -> Iterator[Hit]:
        """Yields the hits in the content of a file."""
        for number, line in enumerate(_lines(data), 1):
            if match := self._pattern.search(line):
                start = max(match.start() - HIT_BEFORE, 0) if len(line) > HIT_WIDTH else 0
                yield _printable(path), number, _cut(line, start)

    def _file(self, file: int, path: str) -> Iterator[Hit]:
        known = os.fstat(file)
        if self._task.names:
            yield from self.named(path)
        elif known.st_size > LARGE:
            self.large += stat.S_ISREG(known.st_mode)
        elif stat.S_ISREG(known.st_mode):
            yield from self.inside(path, os.pread(file, known.st_size, 0))


def _lines(data: bytes) -> list[str]:
    """Returns the lines of a text; none if the file is binary."""
    if b"\0" in data[:8192]:
        return []
    text = data.decode("utf-8", errors="replace")
    return text.replace("\r\n", "\n").removesuffix("\n").split("\n") if text else []


def walk(
    folder: int, path: str, depth: int, left_out: tuple[int, int] | None = None
) -> Iterator[tuple[int, str, str]]:
    """Yields three values for every file below the folder: the descriptor of the folder that
    contains the file, the name of the file, and its path."""
    known = os.fstat(folder)
    if (known.st_dev, known.st_ino) == left_out:
        return
    with os.scandir(folder) as entries:
        inside = sorted(
            (one.name, one.is_dir(follow_symlinks=False)) for one in entries if not one.is_symlink()
        )
    for name, is_folder in inside:
        if not is_folder:
            yield folder, name, path + name
        elif name not in SKIPPED and depth:
            inner = _opened(name, os.O_DIRECTORY, folder)
            if inner is not None:
                try:
                    yield from walk(inner, f"{path}{name}/", depth - 1, left_out)
                finally:
                    os.close(inner)


def _opened(name: str, flags: int, folder: int) -> int | None:
    try:
        return os.open(name, flags | os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return None


def _printable(path: str) -> str:
    return path if path.isprintable() else ascii(path)


def _cut(line: str, start: int) -> str:
    shown = line[start : start + HIT_WIDTH]
    return f"{'…' * (start > 0)}{shown}{'…' * (start + HIT_WIDTH < len(line))}"


def output(place: int, task: ScanTask) -> Iterator[str]:
    """Yields the output lines: the hits and then the remarks. If the pattern is invalid, yields
    only the error. `place` is the descriptor of the searched folder or file."""
    try:
        scan = Scan(task)
    except (re.error, OverflowError, RecursionError) as error:
        yield f"{WRONG}{error}"
        return
    for number, hit in enumerate(scan.hits(place), 1):
        yield f"{HIT}{json.dumps(hit)}"
        if number == task.limit:
            yield f"{REMARK}stopped at {number} results; narrow it down or raise the limit"
            break
    if scan.large:
        yield f"{REMARK}not searched, because larger than {LARGE} bytes: {scan.large} files"


def _task(text: str) -> ScanTask:
    given = json.loads(text)
    left_out = given.pop("left_out")
    return ScanTask(**given, left_out=left_out and tuple(left_out))


def main() -> None:
    place, task = int(sys.argv[1]), _task(sys.argv[2])
    # The kernel ends a match that never returns, even if the gateway has died.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, task.seconds)
    with contextlib.suppress(ValueError, OSError):  # macOS has no such limit
        resource.setrlimit(resource.RLIMIT_AS, (MATCH_MEMORY, MATCH_MEMORY))
    for line in output(place, task):
        sys.stdout.buffer.write(f"{line}\n".encode())
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
