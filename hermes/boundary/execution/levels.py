"""The levels of the sandbox: the ways to isolate commands on a machine, the best first."""

import os
import platform
import sys
from functools import cache
from pathlib import Path
from typing import Literal, get_args

from hermes.boundary.execution.bubblewrap import bubblewrap_problem
from hermes.boundary.execution.landlock import LOWEST_VERSION, landlock_version
from hermes.boundary.execution.seatbelt import SEATBELT
from hermes.boundary.execution.seccomp import MACHINES

Level = Literal["bubblewrap", "landlock", "seatbelt"]
SANDBOX_LEVELS: tuple[Level, ...] = get_args(Level)
DESCRIPTIONS: dict[Level, str] = {
    "bubblewrap": "bubblewrap: own namespaces, read-only system",
    "landlock": "Landlock and seccomp: restricted files and system calls",
    "seatbelt": "Seatbelt: restricted files",
}
SANDBOX_ADVICE = (
    "Install bubblewrap (`apt install bubblewrap`, or `pip install 'hermes-gateway[sandbox]'`) and"
    " allow user namespaces, or set terminal.backend to another backend."
)


@cache
def level_problem(level: Level) -> str:
    """Returns why this machine can't isolate commands at this level; empty if it can."""
    if (level == "seatbelt") != (sys.platform == "darwin"):
        return "it needs macOS" if level == "seatbelt" else "it needs Linux"
    match level:
        case "bubblewrap":
            return bubblewrap_problem()
        case "landlock":
            return _landlock_problem()
        case "seatbelt":
            return "" if os.access(SEATBELT, os.X_OK) else f"{SEATBELT} does not exist"


def _landlock_problem() -> str:
    version = landlock_version()
    if version < LOWEST_VERSION:
        return f"the kernel has Landlock {version}, and {LOWEST_VERSION} (Linux 6.12) is needed"
    if platform.machine() not in MACHINES:
        return f"the machine {platform.machine()} is not supported"
    return "" if Path("/proc/self/task").is_dir() else "/proc is not mounted"


def best_level() -> Level | None:
    """Returns the best level that works on this machine; None if no level works."""
    return next((level for level in SANDBOX_LEVELS if not level_problem(level)), None)
