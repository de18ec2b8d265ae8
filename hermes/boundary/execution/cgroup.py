"""Limits the memory and the processes of a command with a control group of the kernel (cgroup v2),
if systemd has delegated a group to the gateway.

The supervisors of commands use this module, so it imports only the standard library. systemd
delegates a group to a service with the settings `Delegate=` and `DelegateSubgroup=`. The process of
the gateway is then in a subgroup, and the delegated group itself contains no process.
"""

import contextlib
import os
from collections.abc import Callable, Mapping

NEEDED = {"memory", "pids"}
"""The cgroup controllers with which Hermes limits a command."""
_MOUNT = "/sys/fs/cgroup"
_OWN = "/proc/self/cgroup"
_PREFIX = "command-"


def delegation_mark(folder: str) -> bytes:
    """Returns the value of the attribute that systemd sets on a delegated group; empty if the group
    has no such attribute."""
    try:
        return os.getxattr(folder, "user.delegate")
    except (OSError, AttributeError):
        return b""


def delegated_group(
    own: str = _OWN, mount: str = _MOUNT, mark: Callable[[str], bytes] = delegation_mark
) -> str:
    """Returns the folder of the group that is delegated to this process; empty if there is none."""
    for line in _content(own).splitlines():
        # The line of cgroup v2 is `0::` with the path of the group.
        if line.startswith("0::"):
            folder = os.path.dirname(mount + line.removeprefix("0::"))  # noqa: PTH120
            return folder if len(folder) > len(mount) and _is_usable(folder, mark) else ""
    return ""


def _is_usable(folder: str, mark: Callable[[str], bytes]) -> bool:
    found = set(_content(f"{folder}/cgroup.controllers").split())
    return found >= NEEDED and not _content(f"{folder}/cgroup.procs") and mark(folder) == b"1"


class ControlGroup:
    """The control group of one command. The kernel kills the command if it exceeds its memory
    limit. If the command has reached its limit for processes, it can't start another process."""

    def __init__(self, parent: str, limits: Mapping[str, int]) -> None:
        """`parent` is the delegated group. Raises OSError if the kernel refuses the group."""
        self.folder = f"{parent}/{_PREFIX}{os.getpid()}"
        _write(f"{parent}/cgroup.subtree_control", "+memory +pids")
        _remove_left(parent)
        os.mkdir(self.folder)  # noqa: PTH102
        try:
            if limits["memory"]:
                _write(f"{self.folder}/memory.max", str(limits["memory"]))
                _write(f"{self.folder}/memory.oom.group", "1")
                with contextlib.suppress(OSError):
                    # The file does not exist on a kernel without swap.
                    _write(f"{self.folder}/memory.swap.max", "0")
            if limits["processes"]:
                _write(f"{self.folder}/pids.max", str(limits["processes"]))
        except OSError:
            self.end()
            raise

    def join(self) -> None:
        """Moves this process into the group, together with everything that it starts later."""
        _write(f"{self.folder}/cgroup.procs", "0")

    def exceeded(self) -> str:
        """Returns the name of the limit that the command has reached; empty if it has reached
        none."""
        if event_count(f"{self.folder}/memory.events", "oom_kill"):
            return "memory"
        return "processes" if event_count(f"{self.folder}/pids.events", "max") else ""

    def end(self) -> None:
        """Kills all processes of the group, and deletes the group as soon as they have ended."""
        with contextlib.suppress(OSError):
            _write(f"{self.folder}/cgroup.kill", "1")
        with contextlib.suppress(OSError):
            os.rmdir(self.folder)  # noqa: PTH106


def control_group(parent: str, limits: Mapping[str, int] | None) -> ControlGroup | None:
    """Returns a new group for a command; None if there is no delegated group. A command without a
    group is still limited, because `Watchdog` checks the limits too."""
    if not parent or limits is None:
        return None
    try:
        return ControlGroup(parent, limits)
    except OSError:
        return None


def _remove_left(parent: str) -> None:
    """Deletes the control groups that are left because a supervisor was killed. The kernel refuses
    to delete a group that has processes."""
    for name in os.listdir(parent):  # noqa: PTH208
        supervisor = name.removeprefix(_PREFIX)
        if supervisor != name and not os.path.exists(f"/proc/{supervisor}"):  # noqa: PTH110
            with contextlib.suppress(OSError):
                os.rmdir(f"{parent}/{name}")  # noqa: PTH106


def event_count(path: str, name: str) -> int:
    """Returns how often the event `name` has happened, from a file in which the kernel counts the
    events of a group; 0 if there is no such file."""
    for line in _content(path).splitlines():
        key, _, number = line.partition(" ")
        if key == name:
            return int(number)
    return 0


def _content(path: str) -> str:
    try:
        with open(path) as file:  # noqa: PTH123
            return file.read()
    except OSError:
        return ""


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:  # noqa: PTH123
        file.write(text)
