"""Sends pending deliveries: at least once, and exactly once where the platform can edit."""

import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import ParamSpec

import anyio
import anyio.abc
from msgspec.structs import replace

from hermes.control.cursors import AccountCursor
from hermes.control.event_hub import EventLog
from hermes.control.human_pace import HumanPace
from hermes.control.media import MediaIntake
from hermes.control.preview import Preview
from hermes.control.rate_gate import Priority, RateGate
from hermes.control.sending import SEND_SECONDS, Sending
from hermes.control.turn_transactions import Claim
from hermes.state import cursors, deliveries, owners
from hermes.streaming.parts import tree_of
from hermes.streaming.policy import StreamingPolicy
from hermes.types.delivery import Delivery
from hermes.types.errors import (
    AuthFailed,
    Disconnected,
    HermesError,
    RateLimited,
    Rejected,
    StoreUnavailable,
    TargetGone,
)
from hermes.types.identity import OwnerId, Target, new_id
from hermes.types.messages import Content
from hermes.types.platforms import CanEdit, CanReact, CanType, PlatformAdapter
from hermes.types.store import Store, Work

P = ParamSpec("P")

log = logging.getLogger(__name__)

SEND_BACKOFF = (1.0, 2.0, 5.0, 10.0, 20.0)
"""Seconds before the next attempt, by the number of failed attempts."""
REVOKED_SECONDS = 60.0
"""Seconds before the next attempt, if the platform does not let the account send."""


class Outbox:
    """Sends the deliveries of the accounts that this process serves. Each chat gets its deliveries
    one after the other."""

    def __init__(
        self,
        store: Store,
        group: anyio.abc.TaskGroup,
        owner: OwnerId,
        policy: StreamingPolicy,
        media: MediaIntake,
        pace: HumanPace,
    ) -> None:
        self._store = store
        self._group = group
        self._owner = owner
        self._policy = policy
        self._media = media
        self._pace = pace
        self._gate = RateGate(policy.edit_interval)
        self._accounts: dict[str, tuple[PlatformAdapter, int]] = {}
        self._busy: dict[tuple[str, str], bool] = {}
        """The chats that have a worker, which is a task that sends their deliveries. The value
        tells whether new deliveries were added while the worker was busy."""
        self.on_gone: Callable[[str, str], None] = lambda account, chat_id: None
        """Called with the account and the id of a chat to which nothing can be sent any more."""
        self.on_question_lost: Callable[[], None] = lambda: None
        """Called when a question can't be delivered. The turn that waits for the answer must then
        be resumed."""
        self._idle = anyio.Event()
        self._attached = anyio.Event()

    async def attach(self, adapter: PlatformAdapter, epoch: int) -> AccountCursor:
        """Begins to send the deliveries of an account. Returns the cursor of the account: the
        position up to which its messages were read."""
        account = adapter.account
        await self._store.run(deliveries.doubt_sending, account)
        frozen = await self._store.run(deliveries.freezes, account, time.time())
        for chat_id, until in frozen.items():
            self._gate.freeze(account, chat_id, until)
        self._accounts[account] = (adapter, epoch)
        self._attached.set()
        self._attached = anyio.Event()
        await self.look(account)
        read = await self._store.run(cursors.load, account)
        return AccountCursor(self._store, account, (self._owner, epoch), read)

    def detach(self, account: str) -> None:
        """Stops sending the deliveries of the account. Its unsent deliveries stay pending."""
        self._accounts.pop(account, None)

    async def holds(self, account: str) -> bool:
        """Returns whether this process still has the lease of an attached account. If it has lost
        the lease, it detaches the account. If the store can't be read, the account stays
        attached."""
        _, epoch = self._accounts[account]
        try:
            held = await self._store.read(
                owners.holds_lease, f"account:{account}", self._owner, epoch
            )
        except StoreUnavailable:
            return True
        if not held:
            del self._accounts[account]
        return held

    async def look(self, account: str | None = None) -> None:
        """Wakes the worker of every chat that has a pending delivery."""
        for name in [account] if account else list(self._accounts):
            for chat_id in await self._store.run(deliveries.owed_chats, name):
                self.wake(Target(account=name, chat_id=chat_id))

    def wake(self, target: Target) -> None:
        """Wakes the worker of this chat, because there may be something to send."""
        if target.account not in self._accounts:
            return
        key = (target.account, target.chat_id)
        if key in self._busy:
            self._busy[key] = True
            return
        self._busy[key] = False
        self._group.start_soon(self._work, key)

    def send_secret(self, target: Target, text: str) -> None:
        """Begins to send a short message that is never stored. If the attempt fails, the message is
        lost."""
        self._group.start_soon(self._send_secret, target, text)

    async def _send_secret(self, target: Target, text: str) -> None:
        adapter, _ = self._accounts.get(target.account, (None, 0))
        if adapter is None:
            return
        content = Content(text=adapter.render(tree_of(text)))
        try:
            await self._gate.enter(target, adapter.limits.chat_interval, Priority.NOTICE)
            with anyio.fail_after(SEND_SECONDS):
                await adapter.send(target, content, new_id())
        except (HermesError, TimeoutError) as error:
            log.warning("a message to a chat of %s was not sent: %s", target.account, error)
        except Exception:
            log.exception("the adapter of %s failed", target.account)

    async def idle(self) -> None:
        """Waits until no worker is sending."""
        while self._busy:
            self._idle = anyio.Event()
            await self._idle.wait()

    @asynccontextmanager
    async def preview(self, claim: Claim, live: EventLog, target: Target) -> AsyncIterator[None]:
        """Until the block ends, shows in the chat that the turn is running, and shows the answer so
        far. What is shown depends on the features of the platform."""
        adapter, _ = self._accounts.get(target.account, (None, 0))
        if not (adapter is None or isinstance(adapter, CanEdit | CanType | CanReact)):
            yield
            return
        preview = Preview(self._store, self._gate, self._policy, self._adapter)
        async with preview.shown(claim, live, target):
            yield

    async def _adapter(self, account: str) -> PlatformAdapter:
        """Returns the adapter of the account. A turn may be resumed before this process serves the
        account, so this method waits until then."""
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
        """Sends one delivery. Returns False if no delivery is pending."""
        if account not in self._accounts:
            return False
        adapter, epoch = self._accounts[account]
        try:
            target = Target(account=account, chat_id=chat_id)
            while (seconds := self._gate.wait_for(target)) > 0:  # noqa: ASYNC110
                await anyio.sleep(seconds)
            delivery = await self._store.run(
                deliveries.take_next, account, chat_id, (self._owner, epoch), time.time()
            )
            if delivery is None:
                return False
            if delivery.state == "dead":
                self.on_question_lost()
                return True
            if delivery.state == "ready":
                await anyio.sleep(max(delivery.not_before - time.time(), 0.0))
                return True
            await self._attempt(adapter, delivery)
        except StoreUnavailable as error:
            log.error("can't store what was delivered, trying again: %s", error)
            await anyio.sleep(SEND_BACKOFF[0])
        return True

    async def _attempt(self, adapter: PlatformAdapter, delivery: Delivery) -> None:
        target, backoff = delivery.target, SEND_BACKOFF[min(delivery.attempts, 5) - 1]
        sending = Sending(self._store, self._gate, adapter, self._with_paths(delivery), self._pace)
        try:
            await sending.run()
        except RateLimited as limit:
            until = time.time() + (limit.retry_after or backoff)
            self._gate.freeze(target.account, target.chat_id, until)
            await self._store.run(deliveries.freeze, target.account, target.chat_id, until)
            await self._put_back(sending, delivery, until, doubtful=False)
        except (Disconnected, TimeoutError) as error:
            log.warning("delivery to %s failed, again in %s s: %s", target.account, backoff, error)
            await self._put_back(sending, delivery, time.time() + backoff, doubtful=True)
        except AuthFailed as error:
            log.error("account %s can't send: %s", target.account, error)
            again = time.time() + REVOKED_SECONDS
            await self._put_back(sending, delivery, again, doubtful=False)
        except TargetGone as error:
            log.error("nothing can be sent to a chat of %s any more: %s", target.account, error)
            where = (target.account, target.chat_id)
            self.on_gone(*where)
            await self._give_up(deliveries.give_up_chat, *where, str(error), time.time())
        except Rejected as error:
            log.error("a message to %s was refused for good: %s", target.account, error)
            await self._give_up(_refuse, delivery, str(error), time.time())
        except StoreUnavailable:
            raise
        except Exception as error:
            log.exception("the adapter of %s failed", target.account)
            # A bug of the adapter would occur again at every attempt, so the delivery is given up.
            # The later deliveries of the chat must not wait for ever.
            if delivery.attempts >= len(SEND_BACKOFF):
                await self._give_up(
                    deliveries.mark_dead, delivery.id, delivery.attempts, repr(error), time.time()
                )
            else:
                await self._put_back(sending, delivery, time.time() + backoff, doubtful=True)

    async def _give_up(
        self, transaction: Callable[P, Work[bool]], *args: P.args, **kwargs: P.kwargs
    ) -> None:
        """Runs a transaction that marks deliveries as dead. Calls `on_question_lost` if one of
        these deliveries contains a question."""
        if await self._store.run(transaction, *args, **kwargs):
            self.on_question_lost()

    def _with_paths(self, delivery: Delivery) -> Delivery:
        content = delivery.content
        files = tuple(map(self._media.located, content.attachments))
        return replace(delivery, content=replace(content, attachments=files))

    async def _put_back(
        self, sending: Sending, delivery: Delivery, not_before: float, *, doubtful: bool
    ) -> None:
        await self._store.run(
            deliveries.put_back,
            delivery.id,
            delivery.attempts,
            sending.placed,
            not_before,
            doubtful=doubtful,
        )


def _refuse(delivery: Delivery, error: str, now: float) -> Work[bool]:
    """Marks the delivery as dead (it is never sent). If the delivery is a file, stores a message
    that tells the person that the file is missing. Returns whether the delivery contains a
    question."""
    files = delivery.content.attachments
    if not files:
        return (yield from deliveries.mark_dead(delivery.id, delivery.attempts, error, now))
    names = ", ".join(file.name or file.label for file in files)
    notice = Content(text=f"({names} could not be sent: {error})")
    yield from deliveries.refuse_file(delivery, error, notice, now)
    return False
