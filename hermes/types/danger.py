"""The verdict on a shell command."""

from typing import Literal

from hermes.types.value import Value

VerdictOutcome = Literal["run", "ask", "never"]
"""`run` needs no approval, `ask` needs one, and `never` is refused even if all approvals are
switched off."""


class Verdict(Value):
    """The decision about one command."""

    outcome: VerdictOutcome
    reason: str
    """A sentence without a final period that explains the outcome."""
    resolved: str
    """The programs that the command would start, one per line, with all quoting and all constant
    expansions resolved. An ellipsis replaces text that is known only when the command runs."""
