"""Judges programs that end processes."""

import re

from hermes.core.danger.holes import is_open
from hermes.core.danger.invocation import Invocation
from hermes.core.danger.options import names

_LISTS_SIGNALS = ("-l", "-L", "--list", "--help", "--table")
_SIGNAL = re.compile(r"-(\d+|[A-Za-z]+\d*)")


def judge_kill(call: Invocation) -> None:
    """Judges `kill`."""
    targets = list(call.arguments)
    if not targets or targets[0] in _LISTS_SIGNALS:
        return
    signal = ""
    if len(targets) > 1 and _SIGNAL.fullmatch(targets[0]):
        signal = targets.pop(0)
        if signal in ("-s", "-n"):
            signal = targets.pop(0)
    strong = signal.lstrip("-").upper().removeprefix("SIG") in ("9", "KILL")
    for target in targets:
        if target == "-1":
            call.danger("ends every process", "never")
        elif target == "1":
            call.danger("ends the first process of the system", effect="machine")
        elif strong and is_open(target):
            call.danger(
                "kills processes that are known only when the command runs", effect="unclear"
            )


def judge_kill_by_name(call: Invocation) -> None:
    """Judges `killall` and `pkill`."""
    if call.program == "killall5":
        call.danger("ends every process", "never")
    parsed = call.options(names("s u U g G P t F signal user uid older younger o y n"))
    if parsed.has("help", "version", "l", "list", "0") or "0" in parsed.values("s", "signal"):
        return
    if parsed.operands or parsed.has("u", "U", "user", "g", "G", "t", "F"):
        call.danger("ends processes by their name", effect="machine")
