"""The memory of a large request is returned to the system."""

import subprocess
import sys

SCRIPT = """
from pathlib import Path
from hermes.entry.cli.allocator import return_large_blocks


def used():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


return_large_blocks()
before = used()
for size in (8, 30, 20, 12):
    # A normal heap shrinks only at its end. The small block is allocated after the large block, so
    # the heap could not shrink when the large block is freed.
    large = bytearray(size << 20)
    small = bytearray(100_000)
    held = globals().setdefault("held", [])
    held.append(small)
    del large
print(used() - before)
"""


def test_large_blocks_are_returned_when_they_are_freed() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 4_000_000
