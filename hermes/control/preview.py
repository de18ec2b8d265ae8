"""The live message of a running turn: placed once, then grown by edits."""

import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from hermes.control.claims import Claim
from hermes.control.hub import Log
from hermes.control.rate_gate import RateGate
from hermes.state import deliveries
from hermes.streaming.edits import Edit, EditPlan, Nothing, Place, Wait
from hermes.streaming.fold import Folder, View, answer
from hermes.streaming.policy import StreamingPolicy
from hermes.types.delivery import Delivery, Placed
from hermes.types.errors import HermesError, RateLimited
from hermes.types.messages import Content
from hermes.types.protocols import CanEdit, PlatformAdapter, Store
from hermes.types.turns import Turn

log = logging.getLogger(__name__)

FINISH_SECONDS = 5.0
"""How long the end of a turn waits for a preview call that is under way."""


class Preview:
    """Cosmetic: whatever fails here, the delivery that follows says it all."""

    def __init__(
        self, store: Store, gate: RateGate, adapter: PlatformAdapter, policy: StreamingPolicy
    ) -> None:
        self._store = store
        self._gate = gate
        self._adapter = adapter
        self._plan = EditPlan(policy, adapter.limits.text)
        self._calling = anyio.Lock()

    @asynccontextmanager
    async def shown(self, claim: Claim, live: Log) -> AsyncIterator[None]:
        """Previews the turn until the block ends, and a call under way with it."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._follow, claim, live)
            try:
                yield
            finally:
                # The reference of a message that is being placed must not be lost.
                with anyio.move_on_after(FINISH_SECONDS, shield=True):
                    async with self._calling:
                        group.cancel_scope.cancel()
                group.cancel_scope.cancel()

    async def _follow(self, claim: Claim, live: Log) -> None:
        delivery = await self._store.run(deliveries.open_of(claim.turn.id))
        if delivery is None:
            return
        folder = Folder(View(segments=tuple(text for text in claim.said if text.strip())))
        seq = 0
        while True:
            for seq, event in live.read(seq):  # noqa: B020
                folder.feed(seq, event)
            wish = self._plan.wants(anyio.current_time(), answer(folder.view()), final=False)
            match wish:
                case Nothing():
                    await live.changed()
                case Wait(until=until):
                    await anyio.sleep_until(until)
                case Place(text=text) | Edit(text=text):
                    delivery = await self._show(claim.turn, delivery, text)

    async def _show(self, turn: Turn, delivery: Delivery, text: str) -> Delivery:
        target = delivery.target
        if wait := self._gate.wait_for(target):
            self._plan.frozen(anyio.current_time() + wait)
            return delivery
        assert isinstance(self._adapter, CanEdit)
        async with self._calling:
            try:
                await self._gate.enter(target, self._adapter.limits.chat_interval)
                if delivery.placed:
                    ref = delivery.placed[0].ref
                    await self._adapter.edit(target, ref, Content(text=text))
                else:
                    ref = await self._adapter.send(target, Content(text=text))
                placed = (Placed(ref=ref, text=text),)
                await self._store.run(deliveries.mark_placed(delivery.id, placed))
            except RateLimited as limit:
                await self._freeze(delivery, limit)
                return delivery
            except HermesError as error:
                log.info("a preview of turn %s was not shown: %s", turn.id, error)
                self._plan.frozen(anyio.current_time() + FINISH_SECONDS)
                return delivery
        self._plan.shown(anyio.current_time(), text)
        return Delivery(
            id=delivery.id, target=target, state="open", content=delivery.content, placed=placed
        )

    async def _freeze(self, delivery: Delivery, limit: RateLimited) -> None:
        target, pause = delivery.target, limit.retry_after or FINISH_SECONDS
        self._gate.freeze(target.account, target.chat_id, time.time() + pause)
        freeze = deliveries.freeze(target.account, target.chat_id, time.time() + pause)
        await self._store.run(freeze)
        self._plan.frozen(anyio.current_time() + pause)
