"""Finds out whether a disk is full."""

import errno
import os
from pathlib import Path
from tempfile import TemporaryFile

ROOM_BYTES = 1 << 20
"""Number of bytes that a start may need: for the WAL, its index and the migrations."""
FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


def has_room(folder: Path) -> bool:
    """Returns whether the disk and the quota of the folder have enough room for a start."""
    try:
        with TemporaryFile(dir=folder) as file:
            os.posix_fallocate(file.fileno(), 0, ROOM_BYTES)
    except OSError as error:
        return error.errno not in FULL
    return True
