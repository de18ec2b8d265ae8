"""Reads a run from any point: what the store has kept, then what happens live."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import anyio

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
        self.ended = False
        """Nothing more will come."""

    async def next(self) -> Events:
        """What is new; waits for it. Empty at the end, also of a run that was left unfinished."""
        while not self.ended:
            if events := await self._new():
                self._after = events[-1][0]
                self.ended = finished(events) is not None and not self._log.running
                return events
            if self._log.finished:
                self.ended = True
            elif self._log.running:
                await self._log.changed()
            else:
                with anyio.move_on_after(LOOK_SECONDS):
                    await self._log.changed()
                self._replayed = False
        return ()

    async def _new(self) -> Events:
        if not self._replayed:
            kept = await self._gateway.kept_events(self._log.turn, self._after)
            self._replayed = True
            if kept:
                return kept
        return self._log.read(self._after)


@asynccontextmanager
async def reading(
    gateway: Gateway, turn: TurnId, after: int = 0, *, fresh: bool
) -> AsyncIterator[RunReader]:
    """A reader of the turn; `fresh` when it was accepted just now and nothing is kept yet."""
    async with gateway.hub.following(turn) as log:
        yield RunReader(gateway, log, after, fresh=fresh)
