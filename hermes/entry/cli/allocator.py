"""Adjusts the memory allocator and the garbage collector for a process that runs for a long
time."""

import ctypes
import gc
from contextlib import suppress

MMAP_THRESHOLD = -3
"""The option M_MMAP_THRESHOLD of `malloc.h`."""
RETURNED_BYTES = 1 << 20


def return_large_blocks() -> None:
    """Makes the process return each large block of memory to the system as soon as it is freed.

    By default, glibc raises its threshold for such blocks to the size of the largest block that was
    ever freed. Later blocks of up to that size are then taken from the heaps of the threads. These
    heaps become fragmented and are never returned to the system.
    """
    # Other C libraries have no such option, or return large blocks even if the option is not set.
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).mallopt(MMAP_THRESHOLD, RETURNED_BYTES)


def tune_interpreter() -> None:
    """Tunes memory and garbage collection for thousands of sessions; docs/performance.md has
    the measurements."""
    return_large_blocks()
    # Objects that exist at the start live as long as the process, so the garbage collector need not
    # scan them again. With its default thresholds, each scan would stop the event loop for a
    # quarter of a second.
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
