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
    started = start_time(process.group)
    if started is not None and started != process.started:
        return False
    try:
        os.killpg(process.group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def start_time(pid: int) -> int | None:
    """When the process began, in the kernel's ticks: with the pid it names a process for ever."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        stat = Path(f"/proc/{pid}/stat").read_text()
        # The name in brackets may hold spaces and brackets itself.
        return int(stat.rpartition(")")[2].split()[19])
    return None
