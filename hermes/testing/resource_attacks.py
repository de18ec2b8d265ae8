"""Commands that exceed the limits of a sandbox, and record when they do so.

Each attack takes steps, such as starting a process, and writes a line with the time to the file
`steps` at each step. An attack stops growing at several times its limit, so that it stays harmless
if nobody ends it.
"""

from collections.abc import Callable
from pathlib import Path

from hermes.types.execution import CommandLimits
from hermes.types.value import Value

STEPS_FILE = "steps"
EXCESS = 5
"""An attack stops growing when it uses this many times its limit."""
_MEGABYTE = 1_000_000
_STEP = f"step() {{ echo $EPOCHREALTIME >> {STEPS_FILE}; }}"


class ResourceAttack(Value):
    limit: str
    """The name of the limit that the attack exceeds."""
    command: str
    """A command for bash."""
    allowed: int
    """Number of steps that the limit allows, if nothing else uses a part of the limit."""

    def exceeded_at(self, workspace: Path) -> float:
        """Returns the time at which the attack exceeded the limit, in seconds since 1970. The shell
        of the attack also uses a part of the limit, so the attack can be ended a little earlier. In
        this case, returns the time of the last step."""
        times = sorted(map(float, (workspace / STEPS_FILE).read_text().split()))
        return times[min(self.allowed, len(times) - 1)]


def fork_bomb(limits: CommandLimits, pause: float = 0.0) -> ResourceAttack:
    """Returns an attack in which every process starts two more. Each process first waits for
    `pause` seconds."""
    generations = (EXCESS * limits.processes).bit_length()
    wait = f"read -t {pause} -u 9" if pause else ":"
    # Hermes refuses a command that looks like a fork bomb. So the command computes the name of the
    # function `bomb` when it runs, and contains no function that calls itself by its name.
    start = "$again $(($1-1)) | $again $(($1-1)) & wait"
    bomb = f"bomb() {{ step; {wait}; if (($1)); then {start}; fi; read -u 9; }}"
    name = "again=$(date +bomb)"
    command = f"exec 9< <(sleep 600); {_STEP}; {name}; {bomb}; $again {generations}"
    return ResourceAttack(limit="processes", command=command, allowed=limits.processes)


def memory_hog(limits: CommandLimits) -> ResourceAttack:
    """Returns an attack that fills an array with strings of a megabyte."""
    allowed = limits.memory // _MEGABYTE
    filling = "text=$(head -c 1000000 /dev/zero | tr '\\0' x)"
    loop = f"for ((n=0; n<{EXCESS * allowed}; n++)); do kept[n]=$text; step; done"
    command = f"{_STEP}; {filling}; {loop}; sleep 600"
    return ResourceAttack(limit="memory", command=command, allowed=allowed)


def disk_filler(limits: CommandLimits) -> ResourceAttack:
    """Returns an attack that writes files of ten megabytes."""
    allowed = limits.workspace_bytes // (10 * _MEGABYTE)
    write = f"head -c {10 * _MEGABYTE} /dev/zero > filled.$n"
    loop = f"for ((n=0; n<{EXCESS * allowed}; n++)); do {write}; step; done"
    return ResourceAttack(limit="workspace", command=f"{_STEP}; {loop}; sleep 600", allowed=allowed)


RESOURCE_ATTACKS: tuple[Callable[[CommandLimits], ResourceAttack], ...] = (
    fork_bomb,
    memory_hog,
    disk_filler,
)
