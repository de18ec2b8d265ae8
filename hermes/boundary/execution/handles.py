"""Handles of commands on this machine. A handle is a text that is stored and that a later gateway
can read.

A handle is `local:<boot id>:<process group>:<start time>:<mark>:<supervisor>:<start time>`. Older
handles have no supervisor, and the oldest have an empty boot id.
"""

import platform
from functools import cache
from pathlib import Path

from hermes.boundary.execution.process import (
    ProcessGroup,
    end_group,
    end_marked,
    end_supervised,
)

CALL_MARK = "HERMES_CALL"
"""The environment variable by which the processes of a command are found."""
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@cache
def boot_id() -> str:
    """Returns an id that changes with every boot of the machine.

    If the system has no such id, returns the machine's name.

    Two machines never have the same id, so a handle of another machine's command is left alone.
    """
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return platform.node().replace(":", "-")


def handle_of(group: ProcessGroup, mark: str, supervisor: ProcessGroup) -> str:
    fields = (group.group, group.started, mark, supervisor.group, supervisor.started)
    return f"local:{boot_id()}:{':'.join(map(str, fields))}"


def end_handle(handle: str) -> bool:
    """Ends everything that the command has started. Returns False if nothing was running, or if the
    handle is from another backend, another machine or an earlier boot."""
    kind, *fields = handle.split(":")
    if kind != "local" or len(fields) not in (4, 6):
        return False
    boot, number, started, mark, *supervised = fields
    group = _parse(number, started)
    supervisor = _parse(*supervised) if supervised else None
    if boot not in ("", boot_id()) or not mark or group is None or (supervised and not supervisor):
        return False
    return end_command(group, mark, supervisor)


def end_command(group: ProcessGroup, mark: str, supervisor: ProcessGroup | None) -> bool:
    """Ends the command and everything that it has started. Returns False if nothing was running.

    The process group and the processes with the mark are also ended, in case the supervisor was
    killed.
    """
    ended = end_supervised(supervisor) if supervisor else False
    ended = end_group(group) or ended
    return end_marked(f"{CALL_MARK}={mark}") > 0 or ended


def _parse(number: str, started: str) -> ProcessGroup | None:
    """Returns the process group; None if the fields do not describe a process group."""
    if not (number.isdecimal() and started.isdecimal()):
        return None
    # Group 0 would be our own, and group 1 belongs to the system.
    return ProcessGroup(group=int(number), started=int(started)) if int(number) > 1 else None
