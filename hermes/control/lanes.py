"""Runs the turns of each session one after the other, in the session's lane."""

import asyncio
import logging

import anyio
import anyio.abc

from hermes.control.turn_transactions import Claim
from hermes.control.turns import TurnRunner

log = logging.getLogger(__name__)

FREE_TASKS = 64
"""Maximum number of tasks that wait for the next lane."""


class Lanes:
    """The open lanes. A lane runs the turns of one session, one after the other, and ends when the
    session has no more work. All state of a session is in the store.

    When a lane has ended, its task can run another lane. Starting a new task for each lane would
    cost two or three percent of the CPU instructions of a turn.
    """

    def __init__(self, group: anyio.abc.TaskGroup, runner: TurnRunner) -> None:
        self._group = group
        self._runner = runner
        self._open = 0
        self._idle = anyio.Event()
        self._free: list[asyncio.Future[Claim]] = []
        """The futures of the tasks that wait for the next lane."""

    def __len__(self) -> int:
        return self._open

    def start(self, claim: Claim) -> None:
        """Runs a turn that was just opened or resumed here, and then the waiting turns of its
        session."""
        self._open += 1
        self._runner.expect(claim)
        while self._free:
            free = self._free.pop()
            # If a waiting task was cancelled, its future is already done.
            if not free.done():
                free.set_result(claim)
                return
        self._group.start_soon(self._work, claim)

    async def idle(self) -> None:
        """Waits until no lane is open."""
        while self._open:
            self._idle = anyio.Event()
            await self._idle.wait()

    async def _work(self, claim: Claim) -> None:
        """Runs lanes, one after the other."""
        while True:
            await self._lane(claim)
            del claim  # frees the history of the session while the task waits
            if len(self._free) == FREE_TASKS:
                return
            free: asyncio.Future[Claim] = asyncio.get_running_loop().create_future()
            self._free.append(free)
            claim = await free

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
