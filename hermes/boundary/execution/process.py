"""Processes that a restart can find and end."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

import anyio
from anyio.abc import Process as AnyioProcess

from hermes.types.tools import Process

# The command waits behind a pipe until its group is on record: if we die before, the pipe closes
# and it never begins; if we die after, the record says what to end.
GATE = 'read -r go && [ "$go" = go ] && exec "$@" </dev/null'
CALL_MARK = "HERMES_CALL"
"""The variable by which everything that a call starts is known."""
GRACE = 2.0
"""Seconds between the request to end and the kill."""


class Gated:
    """A process group that exists and has not begun."""

    def __init__(self, process: AnyioProcess, gate: int) -> None:
        self.process = process
        self.record = Process(group=process.pid, started=start_time(process.pid) or 0)
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
    """Starts the command in a session of its own, held back until `release`."""
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


def end_group(process: Process) -> bool:
    """Kills the group unless its number belongs to somebody else by now; whether it was there."""
    return signal_group(process, signal.SIGKILL)


def signal_group(process: Process, number: signal.Signals) -> bool:
    """Signals the group unless its number belongs to somebody else by now."""
    started = start_time(process.group)
    if started is not None and started != process.started:
        return False
    try:
        os.killpg(process.group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def end_marked(mark: str, spared: int = 0) -> int:
    """Kills those whose environment holds the mark, `NAME=value`, also in groups of their own, but
    for the spared one; how many there were. Who cleaned its environment is not found."""
    ended: set[int] = set()
    while found := {pid for pid in _pids() - ended - {spared} if _end_if_marked(pid, mark)}:
        # What a process started before it was killed has a number that is not known yet.
        ended |= found
    return len(ended)


def _pids() -> set[int]:
    with contextlib.suppress(FileNotFoundError):
        return {int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()}
    return set()


def _end_if_marked(pid: int, mark: str) -> bool:
    with contextlib.suppress(OSError):
        # Opened before the look: the signal reaches who was looked at, or nobody.
        descriptor = os.pidfd_open(pid)
        try:
            if mark.encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
                return True
        finally:
            os.close(descriptor)
    return False


def runs(process: Process) -> bool:
    """Whether the leader of the group lives: a zombie does not."""
    stat = _stat(process.group)
    return stat is not None and stat[0] not in ("Z", "X") and int(stat[19]) == process.started


def start_time(pid: int) -> int | None:
    """When the process began, in the kernel's ticks: with the pid it names a process for ever."""
    stat = _stat(pid)
    return int(stat[19]) if stat else None


def _stat(pid: int) -> list[str] | None:
    """The process's fields from its state on."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The name in brackets may hold spaces and brackets itself.
    return stat.rpartition(")")[2].split()
