"""Finds out whether a disk is full."""

import errno
import os
import shutil
from pathlib import Path
from tempfile import TemporaryFile

from hermes.types.checks import Check, CheckLevel

ROOM_BYTES = 1 << 20
"""Number of free bytes that a process needs to start. They are for the WAL, the WAL index and the
migrations."""
LOW_BYTES = 500_000_000
"""Free space in bytes below which `hermes doctor` warns."""
FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


def has_room(folder: Path) -> bool:
    """Returns whether the folder's disk and quota have enough room for a process to start."""
    try:
        with TemporaryFile(dir=folder) as file:
            os.posix_fallocate(file.fileno(), 0, ROOM_BYTES)
    except OSError as error:
        return error.errno not in FULL
    return True


def check_disk(folder: Path) -> Check:
    """Checks the free space of the disk on which the folder is, or would be created."""
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    text = f"{free / 1e9:.1f} GB are free on the disk of {folder}"
    if free >= LOW_BYTES:
        return Check(name="disk", level="ok", text=text)
    hint = "free some space: nothing is accepted while the disk is full"
    level: CheckLevel = "error" if free < ROOM_BYTES else "warning"
    return Check(name="disk", level=level, text=text, hint=hint)
