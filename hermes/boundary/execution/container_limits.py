"""Notices that the processes of a container have reached a limit of the kernel."""

from pathlib import Path

from hermes.boundary.execution.cgroup import event_count

CONTROL_GROUPS = Path("/sys/fs/cgroup")
_PROCESSES = Path("/proc")
# The files in which the kernel counts how often a limit was reached. Each entry contains four
# names: the controller of cgroup v1, the file of this controller, the file of cgroup v2, and the
# name of the count in both files.
_EVENTS = {
    "memory": ("memory", "memory.oom_control", "memory.events", "oom_kill"),
    "processes": ("pids", "pids.events", "pids.events", "max"),
}


class ContainerLimits:
    """Notices that a command reaches a limit of its container. The kernel counts how often a limit
    is reached. This object compares these counts with the counts at the time when the object was
    made. If this process can't read the control groups, no limit is noticed."""

    def __init__(
        self, process: int, mount: Path = CONTROL_GROUPS, processes: Path = _PROCESSES
    ) -> None:
        """`process` is the id that the container's first process has on this machine. This method
        reads files."""
        self._groups = _groups(processes / str(process) / "cgroup")
        self._mount = mount
        self._before = self._counts()

    def reached(self) -> str:
        """Returns the limit that was reached since this object was made; empty if no limit was
        reached. Reads files."""
        now = self._counts()
        return next((name for name in now if now[name] > self._before[name]), "")

    def _counts(self) -> dict[str, int]:
        found = {}
        for name, (controller, old, new, key) in _EVENTS.items():
            path = ""
            if controller in self._groups:
                path = f"{self._mount}/{controller}{self._groups[controller]}/{old}"
            elif "" in self._groups:
                path = f"{self._mount}{self._groups['']}/{new}"
            found[name] = event_count(path, key)
        return found


def _groups(file: Path) -> dict[str, str]:
    """Returns the control group of a process for each controller of cgroup v1. The entry for cgroup
    v2 has an empty key."""
    try:
        lines = [line.split(":", 2) for line in file.read_text().splitlines()]
    except OSError:
        return {}
    return {controller: group for _, names, group in lines for controller in names.split(",")}
