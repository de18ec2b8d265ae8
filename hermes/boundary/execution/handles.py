"""Handles of commands on this machine. A handle is a stored text with which a later gateway can
find and end the command.

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
"""The environment variable that marks the processes of a command, so that they can be found
again."""
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_PID_NAMESPACE = Path("/proc/self/ns/pid")


@cache
def boot_id() -> str:
    """Returns an id that changes with every boot of the machine. Two machines never have the same
    id. So if another machine has recorded a process number, Hermes never mistakes this number for a
    process of this machine. Two containers on one machine have different ids too, because each
    container has its own process numbers.
    """
    try:
        number = "".join(filter(str.isdecimal, str(_PID_NAMESPACE.readlink())))
    except OSError:
        return _machine_boot()
    return f"{_machine_boot()}-{number}"


@cache
def _machine_boot() -> str:
    """Returns the boot id in the form that earlier versions used: the id of the system, or the
    machine's name if the system has no boot id."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return platform.node().replace(":", "-")


def is_here(boot: str) -> bool:
    """Returns whether a process that was started when the machine had this boot id can still be
    running here. Also accepts the ids that earlier versions recorded: an empty id, or an id that is
    the same in all containers of a machine."""
    return boot in ("", boot_id(), _machine_boot())


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
    if not is_here(boot) or not mark or group is None or (supervised and not supervisor):
        return False
    return end_command(group, mark, supervisor)


def end_command(group: ProcessGroup, mark: str, supervisor: ProcessGroup | None) -> bool:
    """Ends the command and everything that it has started. Returns False if nothing was running.
    The process group and the processes with the mark are ended separately: if the supervisor was
    killed, these processes are no longer its descendants.
    """
    ended = end_supervised(supervisor) if supervisor else False
    ended = end_group(group) or ended
    return end_marked(f"{CALL_MARK}={mark}") > 0 or ended


def _parse(number: str, started: str) -> ProcessGroup | None:
    """Returns the process group; None if the two texts do not describe a process group."""
    if not (number.isdecimal() and started.isdecimal()):
        return None
    # The numbers 0 and 1 are refused: 0 would be our own group, and 1 belongs to the system.
    return ProcessGroup(group=int(number), started=int(started)) if int(number) > 1 else None
