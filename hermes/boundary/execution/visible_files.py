"""Chooses the files of this machine that sandboxed commands can see: the programs and settings of
the system, except the files that only some users are allowed to read."""

import os
import stat
import time
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from hermes.types.value import Value

SYSTEM_FOLDERS = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"),
    *("/opt", "/nix/store", "/gnu/store", "/run/current-system"),
)
SETTINGS_FOLDER = "/etc"
VALID_SECONDS = 30
DEVICES = ("full", "null", "random", "urandom", "zero")


class SettingsFiles(Value):
    """The files in /etc, divided into those that every user may read and the others."""

    open: tuple[str, ...]
    """Files, and folders in which every user may read everything."""
    mixed: tuple[str, ...]
    """Folders in which every user may read some files."""
    closed: tuple[str, ...]
    """Files and folders that only some users are allowed to read. The content of such a folder is
    not listed."""


def settings_files() -> SettingsFiles:
    """Examines /etc. The result may be up to `VALID_SECONDS` old."""
    return _examined_at(int(time.monotonic() // VALID_SECONDS))


@lru_cache(maxsize=1)
def _examined_at(instant: int) -> SettingsFiles:
    return examined(SETTINGS_FOLDER)


def examined(folder: str) -> SettingsFiles:
    """Divides the files in the folder into two groups: the files that every user may read, and all
    other files."""
    opened: list[str] = []
    mixed: list[str] = [folder]
    closed: list[str] = []
    for entry in _entries(folder):
        mode = entry.stat(follow_symlinks=False).st_mode
        if stat.S_ISLNK(mode):
            # A link gives no access to its target, so links need not be hidden.
            continue
        if stat.S_ISDIR(mode) and mode & 0o005 == 0o005:
            inner = examined(entry.path)
            if inner.closed:
                opened += inner.open
                mixed += inner.mixed
                closed += inner.closed
            else:
                opened.append(entry.path)
        elif stat.S_ISREG(mode) and mode & 0o004:
            opened.append(entry.path)
        else:
            closed.append(entry.path)
    return SettingsFiles(open=tuple(opened), mixed=tuple(mixed), closed=tuple(closed))


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            yield from found
    except OSError:
        return


def contains_system(workspace: Path) -> bool:
    """Returns whether a folder of the system is inside the workspace."""
    return any(Path(one).is_relative_to(workspace) for one in (*SYSTEM_FOLDERS, SETTINGS_FOLDER))
