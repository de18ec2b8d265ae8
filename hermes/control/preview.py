"""Shows a running turn: one message that grows by edits, the typing indicator, and a reaction to
the message that is answered."""

import logging
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import TypeVar

import anyio
from msgspec.structs import replace

from hermes.control.event_hub import EventLog
from hermes.control.event_pages import EventPages
from hermes.control.following import Following
from hermes.control.rate_gate import Priority, RateGate
from hermes.control.turn_transactions import Claim
from hermes.state import deliveries, inbox
from hermes.state.turns import EVENTS_PER_CLAIM
from hermes.streaming.edits import EditPlan, EditPreview, Nothing, PlacePreview, Wait
from hermes.streaming.fold import EventFold, View, answer
from hermes.streaming.policy import StreamingPolicy
from hermes.types.delivery import Delivery, Placed
from hermes.types.errors import HermesError, RateLimited
from hermes.types.identity import Target
from hermes.types.messages import Content, Said
from hermes.types.platforms import CanDraft, CanEdit, CanReact, CanType, PlatformAdapter
from hermes.types.store import Store

log = logging.getLogger(__name__)

S = TypeVar("S")
AdapterOf = Callable[[str], Awaitable[PlatformAdapter]]
"""Returns the adapter of an account, as soon as this process serves the account."""

FINISH_SECONDS = 5.0
"""Longest time in seconds for which the end of a turn waits for an unfinished call that sends or
edits the preview."""
ORDER_SECONDS = 0.1
"""Seconds between two checks whether the older deliveries of the chat have been sent."""


class Preview:
    """Shows a turn while it runs. If the preview can't be shown, the person still gets the whole
    answer at the end."""

    def __init__(
        self, store: Store, gate: RateGate, policy: StreamingPolicy, adapter_of: AdapterOf
    ) -> None:
        self._store = store
        self._gate = gate
        self._policy = policy
        self._adapter_of = adapter_of
        self._calling = anyio.Lock()

    @asynccontextmanager
    async def shown(self, claim: Claim, live: EventLog, target: Target) -> AsyncIterator[None]:
        """Shows the turn in the chat until the block ends. If a call to the platform is in progress
        at that time, waits up to FINISH_SECONDS for its end."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._guarded, self._follow, claim, live)
            group.start_soon(self._guarded, self._react, claim, target)
            group.start_soon(self._guarded, self._type, claim, target)
            try:
                yield
            finally:
                # If the first message of the preview is being sent, its id must not be lost. So the
                # call that sends it is allowed to finish.
                with anyio.move_on_after(FINISH_SECONDS, shield=True):
                    async with self._calling:
                        group.cancel_scope.cancel()
                group.cancel_scope.cancel()

    async def _guarded(
        self, show: Callable[[Claim, S], Awaitable[None]], claim: Claim, what: S
    ) -> None:
        try:
            await show(claim, what)
        except Exception:
            log.exception("turn %s goes on without a preview", claim.turn.id)

    async def _follow(self, claim: Claim, live: EventLog) -> None:
        delivery = await self._store.run(deliveries.open_of, claim.turn.id)
        if delivery is None:
            return
        adapter = await self._adapter_of(delivery.target.account)
        if self._policy.enabled and isinstance(adapter, CanEdit):
            await self._grow(claim, live, delivery, adapter)

    async def _react(self, claim: Claim, target: Target) -> None:
        """Adds a reaction to the person's message. The reaction shows that the agent works on the
        message."""
        adapter = await self._adapter_of(target.account)
        if isinstance(adapter, CanReact):
            event = await self._store.read(inbox.event_of, claim.turn.id)
            if isinstance(event.body, Said) and (message := event.body.message_id):
                await self._sign(claim, target, partial(adapter.react, target, message))

    async def _type(self, claim: Claim, target: Target) -> None:
        """Shows the typing indicator for as long as the turn runs."""
        adapter = await self._adapter_of(target.account)
        while isinstance(adapter, CanType):
            await self._sign(claim, target, partial(adapter.typing, target))
            await anyio.sleep(adapter.limits.typing_interval)

    async def _sign(
        self, claim: Claim, target: Target, show: Callable[[], Awaitable[None]]
    ) -> None:
        """Calls `show`, which shows in the chat that the agent is working. If `show` fails, the
        turn still continues."""
        adapter = await self._adapter_of(target.account)
        try:
            interval = adapter.limits.chat_interval
            await self._gate.enter(target, interval, Priority.PROGRESS)
            await show()
        except RateLimited as limit:
            await self._freeze(target, limit)
        except HermesError as error:
            log.info("a sign of work was not shown for turn %s: %s", claim.turn.id, error)

    async def _grow(
        self, claim: Claim, live: EventLog, delivery: Delivery, adapter: PlatformAdapter
    ) -> None:
        plan = EditPlan(self._policy, adapter.limits.text, adapter.render, adapter.measure)
        if delivery.placed:
            plan.restore(anyio.current_time(), [one.text for one in delivery.placed])
        fold = EventFold(View(segments=tuple(text for text in claim.said if text.strip())))
        # The text of earlier claims on the turn is in `claim.said`, so only the events of this
        # claim are read.
        following = Following(
            EventPages(self._store), live, live.epoch * EVENTS_PER_CLAIM, expected=True
        )
        within = 0.0
        while not following.ended:
            for envelope in await following.next(within):
                fold.feed(envelope.seq, envelope.event)
            within = 0.0
            match plan.wants(anyio.current_time(), answer(fold.view())):
                case Nothing():
                    within = math.inf
                case Wait(until=until):
                    await anyio.sleep_until(until)
                case PlacePreview() | EditPreview() as step:
                    delivery = await self._show(adapter, plan, delivery, live.epoch, step)

    async def _show(
        self,
        adapter: PlatformAdapter,
        plan: EditPlan,
        delivery: Delivery,
        epoch: int,
        step: PlacePreview | EditPreview,
    ) -> Delivery:
        target, edit = delivery.target, isinstance(step, EditPreview)
        if wait := self._gate.wait_for(target, edit=edit):
            plan.frozen(anyio.current_time() + wait)
            return delivery
        async with self._calling:
            try:
                if not edit and await self._comes_later(delivery):
                    plan.frozen(anyio.current_time() + ORDER_SECONDS)
                    return delivery
                interval = adapter.limits.chat_interval
                if not delivery.placed and await self._drafted(adapter, delivery, step):
                    plan.shown(anyio.current_time(), step.text)
                    return delivery
                await self._gate.enter(target, interval, Priority.PREVIEW, edit=edit)
                placed = await self._call(adapter, delivery, step)
                await self._store.run(deliveries.mark_previewed, delivery.id, epoch, placed)
            except RateLimited as limit:
                plan.frozen(anyio.current_time() + await self._freeze(target, limit))
                return delivery
            except HermesError as error:
                log.info("a preview of turn %s was not shown: %s", delivery.turn, error)
                plan.frozen(anyio.current_time() + FINISH_SECONDS)
                return delivery
        plan.shown(anyio.current_time(), step.text)
        return replace(delivery, placed=placed)

    async def _drafted(
        self, adapter: PlatformAdapter, delivery: Delivery, step: PlacePreview | EditPreview
    ) -> bool:
        """Shows the text as a draft. Returns False if the chat has no drafts. A draft is not a
        message, so the delivery still sends the whole answer."""
        if not isinstance(adapter, CanDraft):
            return False
        if step.part:
            # A draft shows only the first part of a long answer. Nothing is sent for later parts.
            return True
        target, content = delivery.target, Content(text=step.text)
        await self._gate.enter(target, adapter.limits.chat_interval, Priority.PREVIEW, edit=True)
        return await adapter.draft(target, content, delivery.key(0, "place"))

    async def _call(
        self, adapter: PlatformAdapter, delivery: Delivery, step: PlacePreview | EditPreview
    ) -> tuple[Placed, ...]:
        """Carries out a step: sends or edits a message. Returns all messages that the preview has
        after the step."""
        content = Content(text=step.text)
        placed = list(delivery.placed)
        # If the earlier text was shown as a draft, the step is an edit, but there is no message to
        # edit yet. So the number of sent messages decides whether to edit or to send.
        if step.part < len(placed):
            assert isinstance(adapter, CanEdit)
            ref = placed[step.part].ref
            await adapter.edit(delivery.target, ref, content)
        else:
            ref = await adapter.send(delivery.target, content, delivery.key(step.part, "place"))
        placed[step.part : step.part + 1] = [Placed(ref=ref, text=step.text)]
        return tuple(placed)

    async def _comes_later(self, delivery: Delivery) -> bool:
        return await self._store.run(deliveries.owed_before, delivery.id)

    async def _freeze(self, target: Target, limit: RateLimited) -> float:
        """Freezes the calls to the chat. Returns the number of seconds that the freeze lasts."""
        pause = limit.retry_after or FINISH_SECONDS
        self._gate.freeze(target.account, target.chat_id, time.time() + pause)
        until = time.time() + pause
        await self._store.run(deliveries.freeze, target.account, target.chat_id, until)
        return pause
