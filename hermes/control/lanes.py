"""Runs the turns of each session one after the other, in the session's lane."""

import logging

import anyio
import anyio.abc

from hermes.control.turn_transactions import Claim
from hermes.control.turns import TurnRunner

log = logging.getLogger(__name__)


class Lanes:
    """The open lanes. A lane is a task that exists while its session has work. All state of a
    session is in the store."""

    def __init__(self, group: anyio.abc.TaskGroup, runner: TurnRunner) -> None:
        self._group = group
        self._runner = runner
        self._open = 0
        self._idle = anyio.Event()

    def __len__(self) -> int:
        return self._open

    def start(self, claim: Claim) -> None:
        """Runs a turn that was just opened or resumed here, and then the waiting turns of its
        session."""
        self._open += 1
        self._runner.expect(claim)
        self._group.start_soon(self._lane, claim)

    async def idle(self) -> None:
        """Waits until no lane is open."""
        while self._open:
            self._idle = anyio.Event()
            await self._idle.wait()

    async def _lane(self, claim: Claim) -> None:
        following: Claim | None = claim
        try:
            while following is not None:
                following = await self._runner.run(following)
        except Exception:
            # The turn stays open in the store. /stop closes it, and a restart resumes it.
            log.exception("the lane of %s broke", claim.row.session)
        finally:
            self._open -= 1
            if not self._open:
                self._idle.set()
