"""Finds processes in /proc, and ends everything that a process has started.

The fork server also uses this module, so it imports only the standard library. Systems without
/proc have an empty process table, and only process groups can be ended there.
"""

import contextlib
import ctypes
import errno
import os
import signal
import sys
import time
from collections.abc import Iterator
from typing import NamedTuple

END_SECONDS = 20.0
"""Seconds to wait for killed processes to end."""
RESCAN_SECONDS = 0.002
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
DEAD = (b"Z", b"X")
"""States of processes that have ended."""


class ProcessEntry(NamedTuple):
    """A process in the process table."""

    pid: int
    started: int
    """The start time, in clock ticks since boot. The start time distinguishes the process from a
    later process with the same number."""
    parent: int
    group: int
    state: bytes


def find_process(pid: int) -> ProcessEntry | None:
    """Reads a process from /proc; None if there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123  # for every process: it is hot
            stat = file.read()
    except OSError:
        return None
    # The program's name is in parentheses, and may itself contain spaces and parentheses.
    state, parent, group, *fields = stat.rpartition(b")")[2].split()
    return ProcessEntry(pid, int(fields[16]), int(parent), int(group), state)


def process_table() -> list[ProcessEntry]:
    """Returns all processes; empty on systems without /proc."""
    with contextlib.suppress(FileNotFoundError):
        names = os.listdir("/proc")  # noqa: PTH208
        return [one for name in names if name.isdigit() and (one := find_process(int(name)))]
    return []


def descendants(root: int) -> list[ProcessEntry]:
    """Returns all descendants of `root`."""
    by_parent: dict[int, list[ProcessEntry]] = {}
    for entry in process_table():
        by_parent.setdefault(entry.parent, []).append(entry)
    found = list(by_parent.get(root, ()))
    for entry in found:
        found += by_parent.get(entry.pid, ())
    return found


def child_pids(pid: int) -> list[int]:
    """Returns the children of a process. A child that ends meanwhile may be left out."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:  # noqa: PTH123
                found += map(int, file.read().split())
    return found


def _first_descendants(root: int, number: int) -> list[ProcessEntry]:
    found: list[ProcessEntry] = []
    waiting = [root]
    while waiting and len(found) < number:
        children = child_pids(waiting.pop(0))
        found += [entry for pid in children if (entry := find_process(pid))]
        waiting += children
    return found[:number]


def end_descendants(root: int) -> int:
    """Kills all descendants of the process. Returns how many were alive.

    If the process is a subreaper, its descendants include orphans in other sessions.
    """
    ended: set[tuple[int, int]] = set()
    deadline = time.monotonic() + END_SECONDS
    while stopped := _stop_descendants(root, deadline):
        for pid, started in stopped:
            send_signal(pid, started, signal.SIGKILL)
        ended |= stopped
        if time.monotonic() >= deadline:
            break
        time.sleep(RESCAN_SECONDS)
    return len(ended)


def _stop_descendants(root: int, deadline: float) -> set[tuple[int, int]]:
    """Stops all descendants with SIGSTOP, so that none of them can start another process before it
    is killed."""
    stopped: set[tuple[int, int]] = set()
    while True:
        alive = [one for one in descendants(root) if one.state not in DEAD]
        # Parents are stopped before their children, because a parent that still runs may start more
        # processes.
        fresh = [(one.pid, one.started) for one in alive if (one.pid, one.started) not in stopped]
        for pid, started in fresh:
            send_signal(pid, started, signal.SIGSTOP)
        stopped.update(fresh)
        if not fresh or time.monotonic() >= deadline:
            return stopped


def terminate_wrapped(root: int) -> None:
    """Sends SIGTERM to the processes in a sandbox of bubblewrap. The process `root` has started
    bubblewrap.

    The first two descendants of `root` are processes of bubblewrap itself, and get no signal. These
    two processes end when the command ends. If they ended earlier, the command could not clean up.
    """
    for entry in descendants(root)[2:]:
        send_signal(entry.pid, entry.started, signal.SIGTERM)


def end_at_once(root: int, group: int, *, wrapped: bool) -> None:
    """Kills the processes of a command faster than they can start others. `root` is their
    supervisor, and `group` is the process group of the command.

    A wrapped command runs in a namespace of bubblewrap. The kernel kills all processes of a
    namespace, or of a process group, at once. If the command is not wrapped, a process that has
    left the group is not killed.
    """
    if wrapped:
        # The first two descendants are bubblewrap and the first process of the namespace. To read
        # the whole process table would take too long if the command starts many processes.
        for entry in _first_descendants(root, 2):
            send_signal(entry.pid, entry.started, signal.SIGKILL)
    else:
        with contextlib.suppress(OSError):
            os.killpg(group, signal.SIGKILL)


def send_signal(pid: int, started: int, number: signal.Signals) -> bool:
    """Signals the process unless its number was reused. Returns True if the process existed."""
    with contextlib.suppress(OSError), _pidfd(pid) as descriptor:
        entry = find_process(pid)
        if entry is not None and entry.started == started:
            if descriptor is None:
                os.kill(pid, number)
            else:
                signal.pidfd_send_signal(descriptor, number)
            return True
    return False


@contextlib.contextmanager
def _pidfd(pid: int) -> Iterator[int | None]:
    """Opens the process, so that a later process with the same id can't get a signal by mistake.
    Yields None on a kernel without pidfds, such as gVisor."""
    try:
        descriptor = os.pidfd_open(pid)
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def restore_signals() -> None:
    """Restores the default action of all ignored signals, because a program that this process
    executes would inherit the ignored signals.

    Python ignores SIGPIPE and SIGXFSZ. `nohup` and shells make the gateway ignore other signals.
    """
    for number in signal.valid_signals():
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def adopt_orphans() -> None:
    """Makes this process a subreaper: orphans among its descendants become its children.

    Only Linux has subreapers. On other systems, a descendant that leaves its process group can't be
    found again.
    """
    set_process_option(PR_SET_CHILD_SUBREAPER, 1)


def forbid_inspection() -> None:
    """Hides the memory, environment and descriptors of this process from other processes of its
    user.

    Root can still inspect every process. The protection exists on Linux only, and ends if this
    process executes another program.
    """
    set_process_option(PR_SET_DUMPABLE, 0)


def set_process_option(option: int, value: int) -> None:
    """Sets an option of this process with `prctl`. Does nothing on systems other than Linux."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
