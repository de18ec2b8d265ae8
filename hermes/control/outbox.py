"""Sends what we owe. At least once; exactly once where the platform can edit.

A message is first *placed* with a text that is never the whole answer, its reference is committed,
and only then it is edited into the answer: a crash can leave a stub behind, never a second answer.
Where nothing can be edited, a send that may be a repeat says so.
"""

import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import anyio.abc

from hermes.control.claims import Claim
from hermes.control.hub import Log
from hermes.control.preview import Preview
from hermes.control.rate_gate import RateGate
from hermes.state import deliveries
from hermes.streaming.edits import partial
from hermes.streaming.policy import StreamingPolicy
from hermes.text.split import split
from hermes.types.delivery import Delivery, Placed
from hermes.types.errors import AuthFailed, Disconnected, RateLimited, Rejected, StoreUnavailable
from hermes.types.identity import OwnerId, Target
from hermes.types.messages import Content, MessageRef
from hermes.types.protocols import CanEdit, PlatformAdapter
from hermes.types.store import Store

log = logging.getLogger(__name__)

REPEAT = "(This may be a repeat: the connection was cut while I sent it.)\n\n"
SEND_SECONDS = 60.0
BACKOFF = (1.0, 2.0, 5.0, 15.0, 60.0)
"""Seconds before the next try, by how often it failed."""


class Outbox:
    """Delivers for the accounts that this process holds: one chat, one delivery at a time."""

    def __init__(
        self,
        store: Store,
        group: anyio.abc.TaskGroup,
        owner: OwnerId,
        policy: StreamingPolicy,
        gate: RateGate,
    ) -> None:
        self._store = store
        self._group = group
        self._owner = owner
        self._policy = policy
        self._gate = gate
        self._accounts: dict[str, tuple[PlatformAdapter, int]] = {}
        self._busy: dict[tuple[str, str], bool] = {}
        """Chats with a worker; true when more has come since it looked."""
        self._idle = anyio.Event()
        self._attached = anyio.Event()

    async def attach(self, adapter: PlatformAdapter, epoch: int) -> None:
        """Takes up an account's deliveries, where the process before us left them."""
        account = adapter.account
        await self._store.run(deliveries.doubt_sending, account)
        frozen = await self._store.run(deliveries.freezes, account, time.time())
        for chat_id, until in frozen.items():
            self._gate.freeze(account, chat_id, until)
        self._accounts[account] = (adapter, epoch)
        self._attached.set()
        self._attached = anyio.Event()
        await self.look(account)

    async def look(self, account: str | None = None) -> None:
        """Wakes every chat that is owed something."""
        for name in [account] if account else list(self._accounts):
            for chat_id in await self._store.run(deliveries.owed_chats, name):
                self.wake(Target(account=name, chat_id=chat_id))

    def wake(self, target: Target) -> None:
        """There may be something to send to this chat."""
        if target.account not in self._accounts:
            return
        key = (target.account, target.chat_id)
        if key in self._busy:
            self._busy[key] = True
            return
        self._busy[key] = False
        self._group.start_soon(self._work, key)

    async def idle(self) -> None:
        """Returns when nothing is being sent."""
        while self._busy:
            self._idle = anyio.Event()
            await self._idle.wait()

    @asynccontextmanager
    async def preview(self, claim: Claim, live: Log) -> AsyncIterator[None]:
        """Shows the turn's answer while it grows, where the chat's platform can edit."""
        target = claim.turn.reply_to
        adapter, _ = self._accounts.get(target.account, (None, 0)) if target else (None, 0)
        if target is None or not (adapter is None or isinstance(adapter, CanEdit)):
            yield
            return
        preview = Preview(self._store, self._gate, self._policy, self._adapter)
        async with preview.shown(claim, live):
            yield

    async def _adapter(self, account: str) -> PlatformAdapter:
        """The account's adapter, once this process holds it: a turn may be resumed before."""
        while account not in self._accounts:
            await self._attached.wait()
        return self._accounts[account][0]

    async def _work(self, key: tuple[str, str]) -> None:
        try:
            while await self._deliver_next(*key) or self._busy[key]:
                self._busy[key] = False
        finally:
            del self._busy[key]
            if not self._busy:
                self._idle.set()

    async def _deliver_next(self, account: str, chat_id: str) -> bool:
        """Sends one delivery; False when nothing is owed."""
        if account not in self._accounts:
            return False
        adapter, epoch = self._accounts[account]
        try:
            target = Target(account=account, chat_id=chat_id)
            await self._gate.enter(target, 0)
            delivery = await self._store.run(
                deliveries.take_next, account, chat_id, (self._owner, epoch), time.time()
            )
            if delivery is None:
                return False
            if delivery.state == "ready":
                await anyio.sleep(delivery.not_before - time.time())
                return True
            await self._attempt(adapter, delivery)
        except StoreUnavailable as error:
            log.error("can't store what was delivered, trying again: %s", error)
            await anyio.sleep(BACKOFF[0])
        return True

    async def _attempt(self, adapter: PlatformAdapter, delivery: Delivery) -> None:
        target = delivery.target
        try:
            with anyio.fail_after(SEND_SECONDS):
                await Sending(self._store, self._gate, adapter, delivery).run()
        except RateLimited as limit:
            until = time.time() + (limit.retry_after or BACKOFF[min(delivery.attempts, 5) - 1])
            self._gate.freeze(target.account, target.chat_id, until)
            await self._store.run(deliveries.freeze, target.account, target.chat_id, until)
            await self._store.run(deliveries.put_back, delivery.id, until, doubtful=False)
        except (Disconnected, TimeoutError) as error:
            pause = BACKOFF[min(delivery.attempts, len(BACKOFF)) - 1]
            log.warning("delivery to %s failed, again in %s s: %s", target.account, pause, error)
            again = time.time() + pause
            await self._store.run(deliveries.put_back, delivery.id, again, doubtful=True)
        except AuthFailed as error:
            log.error("account %s can't send: %s", target.account, error)
            again = time.time() + BACKOFF[-1]
            await self._store.run(deliveries.put_back, delivery.id, again, doubtful=False)
        except Rejected as error:
            log.error("a message to %s was refused for good: %s", target.account, error)
            await self._store.run(deliveries.mark_dead, delivery.id, str(error), time.time())
        except StoreUnavailable:
            raise
        except Exception as error:
            log.exception("the adapter of %s failed", target.account)
            # A fault of ours repeats itself: what is owed after it must not wait for ever.
            if delivery.attempts >= len(BACKOFF):
                await self._store.run(deliveries.mark_dead, delivery.id, repr(error), time.time())
            else:
                again = time.time() + BACKOFF[delivery.attempts - 1]
                await self._store.run(deliveries.put_back, delivery.id, again, doubtful=True)


class Sending:
    """One attempt at one delivery."""

    def __init__(
        self, store: Store, gate: RateGate, adapter: PlatformAdapter, delivery: Delivery
    ) -> None:
        self._store = store
        self._gate = gate
        self._adapter = adapter
        self._delivery = delivery
        self._placed = list(delivery.placed)

    async def run(self) -> None:
        parts = split(self._delivery.content.text, self._adapter.limits.text)
        for index, part in enumerate(parts):
            if isinstance(self._adapter, CanEdit):
                await self._place_and_edit(self._adapter, index, part)
            elif index >= len(self._placed):
                await self._send_plain(index, part, last=index + 1 == len(parts))
        placed, now = tuple(self._placed), time.time()
        await self._store.run(deliveries.mark_delivered, self._delivery.id, placed, now)

    async def _place_and_edit(self, adapter: CanEdit, index: int, part: str) -> None:
        if index == len(self._placed):
            await self._place(partial(part), index)
        if self._placed[index].text == part:
            return
        try:
            await self._edit(adapter, index, part)
        except Rejected:
            # In doubt it says so already, and the answer to the edit was lost on its way.
            if not self._delivery.doubtful:
                await self._place(partial(part), index)
                await self._edit(adapter, index, part)

    async def _edit(self, adapter: CanEdit, index: int, part: str) -> None:
        ref = self._placed[index].ref
        await self._enter()
        await adapter.edit(self._delivery.target, ref, Content(text=part))
        self._placed[index] = Placed(ref=ref, text=part)

    async def _send_plain(self, index: int, part: str, *, last: bool) -> None:
        repeated = self._delivery.doubtful and index == len(self._delivery.placed)
        text = REPEAT + part if repeated else part
        if len(text) > self._adapter.limits.text:
            await self._send(REPEAT.strip())
            text = part
        if last:
            self._placed.append(Placed(ref=await self._send(text), text=part))
        else:
            await self._place(text, index)

    async def _place(self, text: str, index: int) -> None:
        """Sends a new message for the part, also where the one that stood is gone."""
        self._placed[index : index + 1] = [Placed(ref=await self._send(text), text=text)]
        await self._store.run(deliveries.mark_placed, self._delivery.id, tuple(self._placed))

    async def _send(self, text: str) -> MessageRef:
        await self._enter()
        return await self._adapter.send(self._delivery.target, Content(text=text))

    async def _enter(self) -> None:
        await self._gate.enter(self._delivery.target, self._adapter.limits.chat_interval)
