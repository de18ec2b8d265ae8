"""Measures the processes, memory and files of a command, so that a command over a limit is ended.

Supervisors use this module, so it imports only the standard library.
"""

import contextlib
import os
import stat
import time
from collections.abc import Iterator, Mapping, Sequence

from hermes.boundary.execution.cgroup import ControlGroup
from hermes.boundary.execution.process_tree import child_pids

LIMIT_CHECK_SECONDS = 0.1
"""Seconds between two checks of a command."""
SLACK_BYTES = 32_000_000
"""The files are measured again when the free space of the disk has shrunk by this number of bytes.
If fewer bytes are left until the limit, the files are measured again earlier."""
WALK_SECONDS = 5.0
"""Seconds after which the files are measured again, even if the free space has not shrunk."""
WALK_SHARE = 20
"""Minimum pause between two measurements of the files, as a multiple of the time that the last
measurement took."""
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Watchdog:
    """Checks whether one command exceeds its limits."""

    def __init__(
        self,
        root: int,
        limits: Mapping[str, int],
        folders: Sequence[str],
        group: ControlGroup | None = None,
    ) -> None:
        """`root` is the process whose descendants are the processes of the command. `limits` maps
        the names of the fields of CommandLimits to their values. The files in `folders` are
        measured. `group` is the control group of the command, if there is one."""
        self._root = root
        self._group = group
        self._processes = limits["processes"]
        self._memory = limits["memory"]
        self._files = FileMeter(folders, limits["workspace_bytes"])
        self._next = 0.0

    def due(self) -> bool:
        """Returns whether the time for the next check has come."""
        return time.monotonic() >= self._next

    def exceeded(self) -> str:
        """Returns the name of a limit that the command exceeds; empty if it exceeds none."""
        self._next = time.monotonic() + LIMIT_CHECK_SECONDS
        if self._group and (found := self._group.exceeded()):
            return found
        pids: list[int] = []
        for pid in _below(self._root):
            pids.append(pid)
            if self._processes and len(pids) > self._processes:
                return "processes"
        if self._memory and self._uses_too_much_memory(pids):
            return "memory"
        return "workspace" if self._files.full(pids) else ""

    def _uses_too_much_memory(self, pids: Sequence[int]) -> bool:
        held = sum(
            size
            for device, size in deleted_files(pids).values()
            if not os.major(device) and device not in self._files.devices
        )
        # The quick sum counts shared pages once for each process, so it is only an upper bound. The
        # exact sum is slow, and is needed only if the upper bound exceeds the limit.
        if sum(map(_resident, pids)) + held <= self._memory:
            return False
        return sum(map(_proportional, pids)) + held > self._memory


class FileMeter:
    """Measures folders only as often as necessary. The free space of the disk shows how many bytes
    can have been written since the last measurement."""

    def __init__(self, folders: Sequence[str], limit: int) -> None:
        self._folders = folders
        self._limit = limit if folders else 0
        self.devices = set(_devices(folders))
        """The device numbers of the folders. With these numbers, the watchdog distinguishes deleted
        files on a disk from files in memory, such as a `memfd`."""
        self._room = SLACK_BYTES
        self._free = self._free_bytes()
        self._next = 0.0

    def full(self, pids: Sequence[int]) -> bool:
        """Returns whether the files use more bytes than the limit. The sum includes the files in
        the folders, and the deleted files that the processes `pids` still hold open."""
        if not self._limit:
            return False
        now = time.monotonic()
        if self._free - self._free_bytes() < self._room and now < self._next:
            return False
        self._free = self._free_bytes()
        used = sum(map(folder_bytes, self._folders))
        used += sum(size for at, size in deleted_files(pids).values() if at in self.devices)
        self._room = max(SLACK_BYTES // 4, min(SLACK_BYTES, self._limit - used))
        self._next = now + max(WALK_SECONDS, WALK_SHARE * (time.monotonic() - now))
        return used > self._limit

    def _free_bytes(self) -> int:
        with contextlib.suppress(OSError, IndexError):
            known = os.statvfs(self._folders[0])
            return known.f_bfree * known.f_frsize
        return 0


def folder_bytes(folder: str) -> int:
    """Returns the number of bytes that the files below the folder occupy. A file with several names
    counts once."""
    total, seen, waiting = 0, set[int](), [folder]
    while waiting:
        # A folder may be deleted or made unreadable while it is measured.
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                known = entry.stat(follow_symlinks=False)
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif known.st_ino not in seen:
                    total += known.st_blocks * 512
                    if known.st_nlink > 1:
                        seen.add(known.st_ino)
    return total


def _below(root: int) -> Iterator[int]:
    """Yields the descendants of the process. A process that ends meanwhile may be left out."""
    waiting = [root]
    while waiting:
        for child in child_pids(waiting.pop()):
            waiting.append(child)
            yield child


def _resident(pid: int) -> int:
    fields = _content(f"/proc/{pid}/statm").split()
    return int(fields[1]) * _PAGE if fields else 0


def _proportional(pid: int) -> int:
    """Returns the memory of the process. A page of memory that several processes share is divided
    among them."""
    for line in _content(f"/proc/{pid}/smaps_rollup").splitlines():
        if line.startswith(b"Pss:"):
            return int(line.split()[1]) * 1024
    return 0


def _devices(folders: Sequence[str]) -> Iterator[int]:
    for folder in folders:
        with contextlib.suppress(OSError):
            yield os.stat(folder).st_dev  # noqa: PTH116


def deleted_files(pids: Sequence[int]) -> dict[tuple[int, int], tuple[int, int]]:
    """Finds the deleted files that these processes hold open. Maps the device and the inode of each
    file to its device and its size in bytes."""
    found: dict[tuple[int, int], tuple[int, int]] = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            for name in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208
                with contextlib.suppress(OSError):
                    known = os.stat(f"/proc/{pid}/fd/{name}")  # noqa: PTH116
                    if stat.S_ISREG(known.st_mode) and not known.st_nlink:
                        key = (known.st_dev, known.st_ino)
                        found[key] = (known.st_dev, known.st_blocks * 512)
    return found


def _content(path: str) -> bytes:
    try:
        with open(path, "rb") as file:  # noqa: PTH123  # for every check: it is hot
            return file.read()
    except OSError:
        return b""
