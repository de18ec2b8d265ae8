"""Finds out whether a disk is full."""

import errno
import os
from pathlib import Path
from tempfile import TemporaryFile

ROOM_BYTES = 1 << 20
"""Number of bytes that a process may need to start: for the WAL, the WAL index and the
migrations."""
FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


def has_room(folder: Path) -> bool:
    """Returns whether the folder's disk and quota have enough room for a process to start."""
    try:
        with TemporaryFile(dir=folder) as file:
            os.posix_fallocate(file.fileno(), 0, ROOM_BYTES)
    except OSError as error:
        return error.errno not in FULL
    return True
