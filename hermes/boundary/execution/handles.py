"""Handles of commands on this machine: text that is stored, and that a later gateway understands.

A handle is `local:<boot id>:<process group>:<start time>:<mark>`. Handles from before version
0.2 have no boot id.
"""

from functools import cache
from pathlib import Path

from hermes.boundary.execution.process import ProcessGroup, end_group, end_marked

CALL_MARK = "HERMES_CALL"
"""The environment variable by which the processes of a command are found."""
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@cache
def boot_id() -> str:
    """Changes with every boot of the machine; empty where the system has none."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""


def handle_of(group: ProcessGroup, mark: str) -> str:
    return f"local:{boot_id()}:{group.group}:{group.started}:{mark}"


def end_handle(handle: str) -> bool:
    """Kills the group and every process with the mark; False if none ran or it is not ours."""
    kind, *fields = handle.split(":")
    if kind != "local" or len(fields) != 4:
        return False
    boot, number, started, mark = fields
    if boot not in ("", boot_id()) or not (number.isdecimal() and started.isdecimal() and mark):
        return False
    # Group 0 would be our own, and 1 belongs to the system.
    if int(number) < 2:
        return False
    group = end_group(ProcessGroup(group=int(number), started=int(started)))
    return end_marked(f"{CALL_MARK}={mark}") > 0 or group
