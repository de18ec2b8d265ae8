"""Races against the file tools: another process keeps replacing a folder by a symbolic link and
back."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hermes.boundary.scan import Scan, ScanTask
from hermes.boundary.workspace import Workspace
from hermes.types.errors import ToolFailed

HARMLESS, OUTSIDE = b"harmless", b"outside"
_EXCHANGE = """
import ctypes, os, sys
os.chdir(sys.argv[1])
print(flush=True)
here, exchange = -100, 2
while not ctypes.CDLL(None).renameat2(here, b"real", here, b"link", exchange):
    pass
"""


@contextmanager
def exchanged_link(root: Path) -> Iterator[None]:
    """During the block, the folder `real` of the workspace `root` is replaced again and again by a
    link to the folder above the root. Both folders have a file `secret`."""
    (root / "real").mkdir(parents=True)
    (root / "real" / "secret").write_bytes(HARMLESS)
    (root.parent / "secret").write_bytes(OUTSIDE)
    (root / "link").symlink_to(root.parent)
    command = [sys.executable, "-I", "-S", "-c", _EXCHANGE, str(root)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as exchanging:  # noqa: S603
        assert exchanging.stdout
        exchanging.stdout.readline()
        try:
            yield
        finally:
            exchanging.kill()


def is_intact(root: Path) -> bool:
    """Returns whether the files outside of the workspace are unchanged."""
    names = sorted(path.name for path in root.parent.iterdir())
    return names == sorted(["secret", root.name]) and (
        (root.parent / "secret").read_bytes() == OUTSIDE
    )


def _read(root: Path) -> bool:
    return Workspace(root).read("real/secret") == HARMLESS


def _write(root: Path) -> bool:
    Workspace(root).write("real/secret", HARMLESS)
    return True


def _search(root: Path) -> bool:
    task = ScanTask(pattern="", path="", names=False, glob="secret", limit=9, seconds=9)
    place = Workspace(root).open(".")
    try:
        hits = list(Scan(task).hits(place))
    finally:
        os.close(place)
    if not hits:
        raise ToolFailed("The folder was replaced by a link.")
    return all(path.endswith("/secret") and text == "harmless" for path, _, text in hits)


def _list(root: Path) -> bool:
    return all(info.name == "secret" for info in Workspace(root).list("real"))


def _remove(root: Path) -> bool:
    Workspace(root).write("real/secret", HARMLESS)
    Workspace(root).remove("real/secret")
    return True


FILE_RACES: Sequence[Callable[[Path], bool]] = (_write, _read, _search, _list, _remove)
"""Operations of the file tools. Each operation returns whether it has only touched files of the
workspace, and raises ToolFailed if it was refused."""
