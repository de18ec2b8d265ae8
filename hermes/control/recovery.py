"""Finding work that nobody does: what dead processes left, what was decided elsewhere."""

import logging
import time
from collections.abc import Callable

import anyio.to_thread

from hermes.boundary.execution.process import end_group
from hermes.control.claims import Claim, Desk
from hermes.state import inbox, owners, turns
from hermes.state.turns import TurnRow
from hermes.types.identity import OwnerId, TurnId
from hermes.types.protocols import Store, Work
from hermes.types.tools import Process

log = logging.getLogger(__name__)

IsAlive = Callable[[OwnerId], bool]


class Recovery:
    """Touches only what this process may own: its own, and what the dead have left."""

    def __init__(self, store: Store, desk: Desk, is_alive: IsAlive) -> None:
        self._store = store
        self._desk = desk
        self._is_alive = is_alive

    async def lease(self, name: str) -> int | None:
        """The epoch of a lease that this process holds from now on; None if another lives."""
        dead = await self.dead()
        claim = owners.claim_lease(name, self._desk.owner, set(dead), time.time())
        return await self._store.run(claim)

    async def dead(self) -> list[OwnerId]:
        """Processes that died with their name in the store."""
        known = await self._store.run(owners.others(self._desk.owner))
        if not known:
            return []

        def without_lock() -> list[OwnerId]:
            return [owner for owner in known if not self._is_alive(owner)]

        return await anyio.to_thread.run_sync(without_lock)

    async def take_over(self) -> list[Claim]:
        """Goes on with what the dead were doing, once what they left running is ended."""
        dead = await self.dead()
        if not dead:
            return []
        for process in await self._store.run(_left_running(dead)):
            if end_group(process):
                log.warning("ended process group %s of a turn that was cut", process.group)
        claims = await self._store.run(self._take_over(dead))
        log.info("took over %s turns of %s dead processes", len(claims), len(dead))
        return claims

    async def resume(self) -> list[Claim]:
        """Turns to run now: decided or stopped while suspended, or waiting in an idle session."""
        return await self._store.run(self._resume())

    async def stops(self) -> list[TurnId]:
        """Turns of ours for which a stop was asked, by whatever process."""
        rows = await self._store.run(turns.running_of(self._desk.owner))
        return [row.id for row in rows if row.stop_requested]

    def _take_over(self, dead: list[OwnerId]) -> Work[list[Claim]]:
        claims = []
        for owner in dead:
            for row in (yield from turns.running_of(owner)):
                claims.append((yield from self._desk.resume(row, time.time())))
        yield from inbox.adopt(dead, self._desk.owner)
        yield from turns.adopt_suspended(dead, self._desk.owner)
        for owner in dead:
            yield from owners.forget(owner)
        return claims

    def _resume(self) -> Work[list[Claim]]:
        now = time.time()
        claims = []
        rows: list[TurnRow] = yield from turns.suspended_to_resume(self._desk.owner)
        for row in rows:
            claims.append((yield from self._desk.resume(row, now)))
        for session in (yield from inbox.idle_sessions(self._desk.owner)):
            claim = yield from self._desk.open_next(session, now)
            if claim is not None:
                claims.append(claim)
        return claims


def _left_running(dead: list[OwnerId]) -> Work[list[Process]]:
    found: list[Process] = []
    for owner in dead:
        for row in (yield from turns.running_of(owner)):
            started = yield from turns.started_calls(row.id)
            found += [process for process in started.values() if process]
    return found
