"""Reads a run from any point: what the store has kept, then what happens live."""

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from hermes.control.gateway import Gateway
from hermes.control.hub import Log, finished
from hermes.types.events import AgentEvent
from hermes.types.identity import TurnId

Events = Sequence[tuple[int, AgentEvent]]

LOOK_SECONDS = 1.0
"""How often a run that another process works on is looked up."""


class RunReader:
    """A cursor in the events of one turn."""

    def __init__(self, gateway: Gateway, log: Log, after: int, *, fresh: bool) -> None:
        self._gateway = gateway
        self._log = log
        self._after = after
        self._replayed = fresh
        self._over = False
        self._epoch = log.epoch
        self.ended = False
        """Nothing more will come."""

    async def next(self, within: float = math.inf) -> Events:
        """What is new; waits for it, for so many seconds at the most.

        Empty after such a silence, and at the end, also of a run that was left unfinished.
        """
        give_up = time.monotonic() + within
        while not self.ended:
            if events := await self._new():
                self._after = events[-1][0]
                self.ended = finished(events) is not None and not self._log.running
                return events
            if self._over or self._log.finished:
                self.ended = True
            elif time.monotonic() < give_up:
                await self._wait(within)
            else:
                break
        return ()

    async def gather(self, seconds: float) -> None:
        """Lets more come, for so long; not longer than the run goes on."""
        if self._log.running:
            await self._log.ended(seconds)

    async def rest(self) -> Events:
        """Everything up to the end, once it is there."""
        found: list[tuple[int, AgentEvent]] = []
        while not self.ended:
            while self._log.running:
                await self._log.ended()
            found += await self.next()
        return found

    async def _wait(self, within: float) -> None:
        if self._log.running:
            await self._log.changed(within)
            return
        # Not begun, or in another process: what that one keeps is in the store.
        before = time.monotonic()
        await self._log.changed(min(within, LOOK_SECONDS))
        self._replayed = time.monotonic() - before < LOOK_SECONDS

    async def _new(self) -> Events:
        if self._epoch != self._log.epoch:
            # A turn that was suspended goes on: the log begins anew, the rest is in the store.
            self._replayed = self._replayed and self._epoch == 0
            self._epoch = self._log.epoch
        if not self._replayed:
            kept = await self._gateway.replay(self._log.turn, self._after)
            self._replayed = True
            self._over = kept.over and not self._log.running
            if kept.events:
                return kept.events
        return self._log.read(self._after)


@contextmanager
def reading(gateway: Gateway, turn: TurnId, after: int = 0, *, fresh: bool) -> Iterator[RunReader]:
    """A reader of the turn; `fresh` when it was accepted just now and nothing is kept yet."""
    with gateway.hub.following(turn) as log:
        yield RunReader(gateway, log, after, fresh=fresh)
