"""Processes that a restarted gateway can find and end."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import anyio
from anyio.abc import Process

from hermes.boundary.execution.process_tree import (
    DEAD,
    RESCAN_SECONDS,
    end_descendants,
    find_process,
    process_table,
    send_signal,
)
from hermes.types.value import Value

# The command waits for a line from a pipe. This process sends the line after it has recorded the
# process group of the command. If this process dies earlier, the pipe closes and the command never
# begins.
GATE = 'read -r go && [ "$go" = go ] && exec "$@" </dev/null'
KILL_GRACE = 2.0
"""Seconds between SIGTERM and SIGKILL."""
SUPERVISOR_GRACE = 1.0
"""Seconds within which a supervisor must end after its command."""


class ProcessGroup(Value):
    """A process group. The start time of its leader distinguishes the group from a later group with
    the same number."""

    group: int
    started: int


class Gated:
    """A process group whose command has not begun."""

    def __init__(self, process: Process, gate: int) -> None:
        self.process = process
        self.record = ProcessGroup(group=process.pid, started=start_time(process.pid) or 0)
        self._gate = gate

    def release(self) -> None:
        """Lets the command begin."""
        os.write(self._gate, b"go\n")
        os.close(self._gate)
        self._gate = -1

    async def end(self) -> None:
        """Ends the group and everything in it."""
        if self._gate >= 0:
            os.close(self._gate)
            self._gate = -1
        end_group(self.record)
        with anyio.CancelScope(shield=True):
            await self.process.aclose()


async def spawn_gated(command: Sequence[str], cwd: Path, environment: dict[str, str]) -> Gated:
    """Starts the command in a session of its own. The command begins when `release` is called."""
    reading, writing = os.pipe()
    try:
        process = await anyio.open_process(
            ["/bin/sh", "-c", GATE, "sh", *command],
            cwd=cwd,
            env=environment,
            stdin=reading,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except BaseException:
        os.close(writing)
        raise
    finally:
        os.close(reading)
    return Gated(process, writing)


def end_group(process: ProcessGroup) -> bool:
    """Kills the group. Returns False if the group does not exist any more, even if another group
    has its number now."""
    return signal_group(process, signal.SIGKILL)


def signal_group(process: ProcessGroup, number: signal.Signals) -> bool:
    """Signals the group unless its number was reused. Returns True if the group existed."""
    started = start_time(process.group)
    if started is not None and started != process.started:
        return False
    try:
        os.killpg(process.group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def end_supervised(supervisor: ProcessGroup) -> bool:
    """Kills everything that a supervisor has started. Returns True if anything was running.

    When its descendants have ended, the supervisor ends by itself. If it does not end in time, this
    function kills it.
    """
    if not runs(supervisor):
        return False
    ended = end_descendants(supervisor.group)
    deadline = time.monotonic() + SUPERVISOR_GRACE
    while runs(supervisor) and time.monotonic() < deadline:
        time.sleep(RESCAN_SECONDS)
    send_signal(supervisor.group, supervisor.started, signal.SIGKILL)
    return ended > 0


def end_marked(mark: str, spared: int = 0) -> int:
    """Kills every process, except `spared`, whose environment contains the mark (`NAME=value`).

    Returns the number of killed processes. A process that cleared its environment is not found.
    """
    ended: set[int] = set()
    while found := {pid for pid in _pids() - ended - {spared} if _end_if_marked(pid, mark)}:
        # The search is repeated, because a killed process may have started another process just
        # before.
        ended |= found
    return len(ended)


def _pids() -> set[int]:
    return {entry.pid for entry in process_table()}


def _end_if_marked(pid: int, mark: str) -> bool:
    with contextlib.suppress(OSError):
        # The process is opened before its environment is read, so that a later process with the
        # same id can't get the signal.
        descriptor = os.pidfd_open(pid)
        try:
            if mark.encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
                return True
        finally:
            os.close(descriptor)
    return False


def runs(process: ProcessGroup) -> bool:
    """Returns whether the leader of the group is alive. A zombie does not count as alive."""
    entry = find_process(process.group)
    return entry is not None and entry.state not in DEAD and entry.started == process.started


def start_time(pid: int) -> int | None:
    """Returns the start time of the process in clock ticks since boot; None if there is no such
    process."""
    entry = find_process(pid)
    return entry.started if entry else None
