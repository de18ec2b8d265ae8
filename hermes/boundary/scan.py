"""Looks through files for a pattern, as a process of its own: no pattern can be stopped otherwise.

It is run by its path, without the rest of the package, so that it starts within milliseconds.
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
"""Bytes of a file that is not looked into."""
DEPTH = 64
"""Folders inside each other."""
MEMORY = 1 << 29
"""Bytes that matching may take."""
WIDTH = 300
"""Characters of a line that are shown."""
BEFORE = 100
"""Of them, before the match."""
HIT, REMARK, WRONG = "=", "!", "?"
"""What a line of the output begins with."""


class Query(NamedTuple):
    pattern: str
    path: str
    """Of what is searched, as the results shall name it; empty for the workspace itself."""
    names: bool
    """The paths are matched, not the contents."""
    glob: str
    """Of files to look at; empty for all."""
    limit: int
    seconds: float
    left_out: tuple[int, int] | None = None
    """The device and the number of a folder that is not looked into."""


class Scan:
    """One search, below an open folder or in one open file. It follows no link."""

    def __init__(self, query: Query) -> None:
        self._query = query
        self._pattern = re.compile(query.pattern)
        self._glob = query.glob.removeprefix("./").replace("**/", "")
        self.large = 0
        """Files that were not looked into."""

    def hits(self, place: int) -> Iterator[str]:
        path = self._query.path
        if not stat.S_ISDIR(os.fstat(place).st_mode):
            yield from self._file(place, path)
            return
        within = f"{path}/" if path else ""
        for folder, name, found in walk(place, within, DEPTH, self._query.left_out):
            if self._glob and not fnmatchcase(found if "/" in self._glob else name, self._glob):
                continue
            if self._query.names:
                yield from self._named(found)
            elif (file := _opened(name, os.O_NONBLOCK, folder)) is not None:
                try:
                    yield from self._file(file, found)
                finally:
                    os.close(file)

    def _file(self, file: int, path: str) -> Iterator[str]:
        if self._query.names:
            yield from self._named(path)
            return
        for number, line in enumerate(self._lines(file), 1):
            if match := self._pattern.search(line):
                start = max(match.start() - BEFORE, 0) if len(line) > WIDTH else 0
                yield f"{_printable(path)}:{number}: {_cut(line, start)}"

    def _named(self, path: str) -> Iterator[str]:
        if self._pattern.search(path):
            yield _printable(path)

    def _lines(self, file: int) -> list[str]:
        known = os.fstat(file)
        if not stat.S_ISREG(known.st_mode):
            return []
        if known.st_size > LARGE:
            self.large += 1
            return []
        data = os.pread(file, known.st_size, 0)
        if b"\0" in data[:8192]:
            return []
        text = data.decode("utf-8", errors="replace")
        return text.replace("\r\n", "\n").removesuffix("\n").split("\n") if text else []


def walk(
    folder: int, path: str, depth: int, left_out: tuple[int, int] | None = None
) -> Iterator[tuple[int, str, str]]:
    """Every file below: an open folder, the name in it, and the path."""
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
    shown = line[start : start + WIDTH]
    return f"{'…' * (start > 0)}{shown}{'…' * (start + WIDTH < len(line))}"


def output(place: int, query: Query) -> Iterator[str]:
    """The hits, then what there is to remark; or what is wrong with the pattern."""
    try:
        scan = Scan(query)
    except (re.error, OverflowError, RecursionError) as error:
        yield f"{WRONG}{error}"
        return
    for number, hit in enumerate(scan.hits(place), 1):
        yield f"{HIT}{hit}"
        if number == query.limit:
            yield f"{REMARK}stopped at {number} results; narrow it down or raise the limit"
            break
    if scan.large:
        yield f"{REMARK}not searched, because larger than {LARGE} bytes: {scan.large} files"


def _query(text: str) -> Query:
    given = json.loads(text)
    left_out = given.pop("left_out")
    return Query(**given, left_out=left_out and tuple(left_out))


def main() -> None:
    place, query = int(sys.argv[1]), _query(sys.argv[2])
    # The kernel ends what never comes back from matching, even when nobody waits for it any more.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, query.seconds)
    with contextlib.suppress(ValueError, OSError):  # macOS knows no such limit
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for line in output(place, query):
        sys.stdout.buffer.write(f"{line}\n".encode())
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
