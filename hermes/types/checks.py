"""The findings of `hermes doctor`."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal

from hermes.types.value import Value

CheckLevel = Literal["ok", "warning", "error"]
"""error: a part of Hermes can't work. warning: the part works, but the operator should do
something."""


class Check(Value):
    """The result of a check, which is one line in the output of `hermes doctor`."""

    name: str
    """The part of Hermes that was checked, such as `store`. Several checks may have the same
    name."""
    level: CheckLevel
    text: str
    """The finding, without secrets."""
    hint: str = ""
    """Advice on what to do; empty if nothing needs to be done."""


class CheckJob(Value):
    """A check that has not run yet. Running the check changes nothing."""

    name: str
    """The subject of the job, such as `disk`. The checks that the job returns have this name."""
    run: Callable[[], Awaitable[Sequence[Check]]]
    seconds: float = 3.0
    """Longest time for the job, in seconds."""
    late: str = "the check took too long"
    """The finding if the job takes longer than `seconds`."""
    hint: str = "run `hermes doctor` again"
    """The advice if the job takes longer than `seconds`."""


def known_checks(*checks: Check) -> CheckJob:
    """Returns a job for checks whose results are known already."""

    async def run() -> Sequence[Check]:
        return checks

    return CheckJob(name=checks[0].name, run=run)
