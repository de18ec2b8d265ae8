"""Judges programs that end processes."""

import re

from hermes.core.danger.holes import is_open
from hermes.core.danger.invocation import Invocation
from hermes.core.danger.options import names

_KILL = re.compile(r"-(?:9|KILL|SIGKILL|s\s*(?:9|KILL|SIGKILL))", re.IGNORECASE)


def judge_kill(call: Invocation) -> None:
    """Judges `kill`."""
    arguments = call.arguments
    if any(one in ("-l", "-L", "--list", "--help", "--table") for one in arguments[:1]):
        return
    strong = any(_KILL.fullmatch(one) for one in arguments) or "KILL" in " ".join(arguments[:2])
    signals = 0
    for position, argument in enumerate(arguments):
        if position == 0 and re.fullmatch(r"-(\d+|[A-Z]+\d*)", argument):
            signals = 1
            if argument == "-1" and len(arguments) > 1:
                continue
            if argument == "-1":
                call.danger("ends every process", "never")
            continue
        if argument == "-1" and (signals or position > 0):
            call.danger("ends every process", "never")
        elif argument in ("1", "-0") and argument == "1":
            call.danger("ends the first process of the system")
        elif is_open(argument) and strong:
            call.danger("kills processes that are known only when the command runs")


def judge_kill_by_name(call: Invocation) -> None:
    """Judges `killall` and `pkill`."""
    parsed = call.options(names("s u U g G P t F signal user uid older younger o y n"))
    if (
        parsed.has("help", "version", "l", "list")
        or parsed.has("0")
        or "0" in parsed.values("s", "signal")
    ):
        return
    if parsed.operands or parsed.has("u", "U", "user", "g", "G", "t", "F"):
        call.danger("ends processes by their name")
