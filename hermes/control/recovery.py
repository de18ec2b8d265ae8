"""Finding work that nobody does: what dead processes left, what was decided elsewhere."""

import logging
import time
from collections.abc import Awaitable, Callable

import anyio.to_thread
import msgspec

from hermes.control.claims import Claim, Desk
from hermes.state import inbox, owners, turns
from hermes.state.turns import TurnRow
from hermes.types.errors import ClaimLost, HermesError
from hermes.types.identity import CallId, OwnerId, TurnId
from hermes.types.protocols import Store, Work

log = logging.getLogger(__name__)

IsAlive = Callable[[OwnerId], bool]
EndCommand = Callable[[str], Awaitable[bool]]
"""Ends the command with this handle, as an execution backend does; False if there is none."""


class Recovery:
    """Touches only what this process may own: its own, and what the dead have left."""

    def __init__(
        self, store: Store, desk: Desk, is_alive: IsAlive, end_command: EndCommand
    ) -> None:
        self._store = store
        self._desk = desk
        self._is_alive = is_alive
        self._end_command = end_command

    async def lease(self, name: str) -> int | None:
        """The epoch of a lease that this process holds from now on; None if another lives."""
        dead = await self.dead()
        return await self._store.run(
            owners.claim_lease, name, self._desk.owner, set(dead), time.time()
        )

    async def dead(self, kind: str | None = None) -> list[OwnerId]:
        """Processes, of a kind if one is named, that died with their name in the store."""
        known = await self._store.run(owners.others, self._desk.owner)
        named = [owner for owner, what in known.items() if kind in (None, what)]
        if not named:
            return []

        def without_lock() -> list[OwnerId]:
            return [owner for owner in named if not self._is_alive(owner)]

        return await anyio.to_thread.run_sync(without_lock)

    async def take_over(self, kind: str | None = None) -> list[Claim]:
        """Goes on with what the dead were doing, once what they left running is ended."""
        dead = await self.dead(kind)
        if not dead:
            return []
        left: list[TurnRow] = []
        for owner in dead:
            left += await self._store.run(turns.running_of, owner)
        found = [await self._take_turn(row) for row in left]
        claims = [claim for claim in found if claim is not None]
        await self._store.run(self._adopt_the_rest, dead)
        if claims:
            log.info("going on with %s turns of processes that died", len(claims))
        return claims

    async def _take_turn(self, row: TurnRow) -> Claim | None:
        for call, handle in (await self._store.run(turns.started_calls, row.id)).items():
            if handle is not None:
                await self._end(call, handle)
        try:
            return await self._store.run(self._desk.resume, row, time.time())
        except ClaimLost:
            return None
        except (msgspec.DecodeError, IndexError, KeyError):
            # One row that can't be read must not keep all others from being answered.
            log.exception("turn %s can't be resumed", row.id)
            await self._store.run(turns.give_up, row.id, row.epoch, time.time())
            return None

    async def _end(self, call: CallId, handle: str) -> None:
        try:
            if await self._end_command(handle):
                log.warning("ended the command that call %s of a dead process left running", call)
        except HermesError as error:
            log.error("the command of call %s may still be running: %s", call, error)

    async def resume(self, runs: Callable[[TurnId], bool]) -> list[Claim]:
        """Turns to run now: decided or stopped while suspended, or waiting in an idle session;
        and those to be stopped whose lane broke."""
        return await self._store.run(self._resume, runs)

    async def stops(self) -> list[TurnId]:
        """Turns of ours for which a stop was asked, by whatever process."""
        rows = await self._store.run(turns.running_of, self._desk.owner)
        return [row.id for row in rows if row.stop_requested]

    def _adopt_the_rest(self, dead: list[OwnerId]) -> Work[None]:
        yield from inbox.adopt(dead, self._desk.owner)
        yield from turns.adopt_suspended(dead, self._desk.owner)
        for owner in dead:
            yield from owners.forget(owner)

    def _resume(self, runs: Callable[[TurnId], bool]) -> Work[list[Claim]]:
        now = time.time()
        claims = []
        rows: list[TurnRow] = yield from turns.suspended_to_resume(self._desk.owner)
        open_ones = yield from turns.running_of(self._desk.owner)
        rows += [row for row in open_ones if row.stop_requested and not runs(row.id)]
        for row in rows:
            claims.append((yield from self._desk.resume(row, now)))
        for session in (yield from inbox.idle_sessions(self._desk.owner)):
            claim = yield from self._desk.open_next(session, now)
            if claim is not None:
                claims.append(claim)
        return claims
