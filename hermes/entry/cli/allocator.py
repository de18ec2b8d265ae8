"""Settings of the C library's memory allocator for a process that runs for a long time."""

import ctypes
from contextlib import suppress

MMAP_THRESHOLD = -3
"""The name of the option in `malloc.h`."""
RETURNED_BYTES = 1 << 20


def return_large_blocks() -> None:
    """From now on the memory of a large request or answer is returned to the system with it.

    By itself glibc raises its threshold to the largest block that was ever freed. Later blocks of
    that size are then cut from the heaps of its threads, which fragment and are never returned.
    """
    # Other C libraries have no such option, or return large blocks anyway.
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).mallopt(MMAP_THRESHOLD, RETURNED_BYTES)
