"""The gateway: accepts messages, runs their turns, answers for both after a restart."""

import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Mapping
from contextlib import AbstractContextManager, asynccontextmanager
from typing import ParamSpec, TypeVar

import anyio
import anyio.abc

from hermes.control.access import Access, AccessPolicy
from hermes.control.commands import CommandTable
from hermes.control.event_hub import EventHub
from hermes.control.event_pages import EventPages
from hermes.control.following import Following, following
from hermes.control.intake import Intake
from hermes.control.keys import session_key
from hermes.control.lanes import Lanes
from hermes.control.long_events import store_long_bodies
from hermes.control.maintenance import Maintenance, Retention
from hermes.control.media import MediaIntake
from hermes.control.outbox import Outbox
from hermes.control.rate_gate import RateGate
from hermes.control.recovery import Recovery
from hermes.control.routing import Route, RoutingFailed
from hermes.control.session_end import SessionEndWorker
from hermes.control.titles import TitleWriter
from hermes.control.turn_log import log_receipt
from hermes.control.turn_transactions import Claim, TurnTransactions
from hermes.control.turns import TurnRunner
from hermes.state import turns
from hermes.state.access import load_paired
from hermes.streaming.policy import StreamingPolicy
from hermes.types.agents import HostedAgent
from hermes.types.errors import HermesError, IntakeClosed, TooBusy
from hermes.types.events import Envelope
from hermes.types.identity import AgentId, SessionKey, TurnId
from hermes.types.messages import Asked, MessageEvent, Receipt, Refused
from hermes.types.platforms import Cursor, PlatformAdapter
from hermes.types.store import OwnerKind, Store, Work
from hermes.types.value import Value

log = logging.getLogger(__name__)

T = TypeVar("T")
P = ParamSpec("P")

STOP_TURNS_SECONDS = 5.0


class GatewayOptions(Value):
    """What a gateway is told once, at its start."""

    access: AccessPolicy = AccessPolicy()
    streaming: StreamingPolicy = StreamingPolicy()
    retention: Retention = Retention()
    most_runs: int = 4096
    """API turns at once; 0 for no bound."""
    unread_seconds: float = 10.0
    """How long a stateless request goes on after its last reader has gone."""
    terminal: bool = False
    """Works its own sessions only, and takes over those of terminals that died."""


class Gateway:
    def __init__(
        self,
        store: Store,
        group: anyio.abc.TaskGroup,
        agents: Mapping[AgentId, HostedAgent],
        route: Route,
        commands: CommandTable,
        options: GatewayOptions,
        media: MediaIntake,
    ) -> None:
        self.media = media
        """Stores the files that come with messages, before the messages are accepted."""
        self._store = store
        self._hub = EventHub()
        self._pages = EventPages(store)
        self._outbox = Outbox(store, group, store.owner, options.streaming, RateGate())
        self._group = group
        self._options = options
        self._route = route
        self._agents = agents
        self._access = Access(options.access)
        self._agents = agents
        transactions = TurnTransactions(store.owner, agents)
        self._intake = Intake(transactions, commands)
        self._runner = TurnRunner(store, transactions, self._hub, self._outbox, agents)
        self._lanes = Lanes(group, self._runner)
        self._recovery = Recovery(store, transactions, agents)
        self._session_end_worker = SessionEndWorker(store, agents, gateway=not options.terminal)
        self._maintenance = Maintenance(
            store, self._recovery, options.retention, self._sweep, media
        )
        self._changed = anyio.Event()
        self._closed = False
        self._hub.on_unread = self._mind_unread
        self._runner.on_closed = TitleWriter(store, group, agents).consider

    @property
    def busy(self) -> int:
        """Sessions at work."""
        return len(self._lanes)

    @property
    def agents(self) -> Collection[AgentId]:
        """The agents that are hosted here."""
        return self._agents.keys()

    @property
    def trouble(self) -> str | None:
        """Why messages can't be taken now."""
        return "the gateway is shutting down" if self._closed else self._store.trouble

    async def accept(self, event: MessageEvent) -> Receipt:
        """Takes a message in; returns once it is durable."""
        source, principal = event.source, event.origin.principal
        if self._closed:
            log.warning("a message of %s is refused: the gateway stops", source.account)
            raise IntakeClosed("The gateway is shutting down; try again after the restart.")
        if not event.addressed or not self._access.admits(source, principal):
            # A group's talk among its members is no attempt to reach us.
            level = logging.INFO if event.addressed else logging.DEBUG
            log.log(level, "not admitted: user %s of %s", source.user_id, source.account)
            return Refused(reason="not admitted")
        try:
            key = self.session_of(event)
        except RoutingFailed as error:
            # Raised, it would come again for ever, and the other chats of the account would wait.
            log.error("a message is refused: %s", error, exc_info=error.__cause__)
            return Refused(reason="no agent could be chosen")
        if isinstance(event.body, Asked):
            self._check(event.body, key.agent)
        person = self._access.person(source, principal)
        try:
            await store_long_bodies(self._store, event)
            taken = await self._store.run(self._intake.take, event, key, person, time.time())
        except UnicodeEncodeError as error:
            # Half a character can't be stored; raised, it would come again for ever.
            log.warning("a message of %s is not valid text: %s", source.account, error)
            return Refused(reason="not valid text")
        log_receipt(event, key, taken.receipt)
        if taken.claim:
            self._lanes.start(taken.claim)
        if taken.owed:
            self._outbox.wake(taken.owed)
        if taken.ended:
            self._session_end_worker.notice(key)
        if taken.stop and not self._runner.stop(taken.stop, "stop"):
            await self._resume()
        return taken.receipt

    def _check(self, asked: Asked, agent: AgentId) -> None:
        """Raises if a request can't be taken now, or never by this agent."""
        if 0 < self._options.most_runs <= self.busy:
            log.warning("a request is refused: too many requests run")
            raise TooBusy(f"{self.busy} requests are under way; try again shortly.")
        self._agents[agent].check_request(asked)

    def session_of(self, event: MessageEvent) -> SessionKey:
        """The key of the session that a message belongs to."""
        return session_key(self._route(event), event.source)

    async def follow(self, turn: TurnId, after: int = 0) -> AsyncGenerator[Envelope]:
        """The turn's events after a number, up to its end: live, replayed or both."""
        with self.following(turn, after) as reader:
            while not reader.ended:
                for envelope in await reader.next():
                    yield envelope

    def following(self, turn: TurnId, after: int = 0) -> AbstractContextManager[Following]:
        """A cursor in the turn's events, for a reader that decides itself how long to wait."""
        return following(self._hub, self._pages, turn, after, expected=self._runner.runs(turn))

    async def request_stop(self, turn: TurnId, by: str) -> None:
        """Requests that the turn stop, whichever process runs it. `by` names the requester."""
        await self._store.run(turns.request_stop, turn, by)
        self.notice_change()

    async def read(self, transaction: Callable[P, Work[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """The result of a transaction that changes nothing, such as those of `control.sessions`."""
        return await self._store.read(transaction, *args, **kwargs)

    async def knows(self, turn: TurnId, account: str) -> bool:
        """Whether this is a turn that was asked for over the API with the account's key."""
        row = await self._store.run(turns.get, turn)
        # A chat account may have the same name.
        return row is not None and row.trigger == "api" and row.account == account

    async def hold_account(self, adapter: PlatformAdapter) -> Cursor | None:
        """Makes this process serve the account; returns its cursor, or None if another does."""
        epoch = await self._recovery.lease(f"account:{adapter.account}")
        return None if epoch is None else await self._outbox.attach(adapter, epoch)

    def notice_change(self) -> None:
        """Call this after something was committed outside of this gateway."""
        self._changed.set()

    async def start(self) -> None:
        """Takes up what this process may own, and keeps looking after it."""
        await self._sweep()
        self._group.start_soon(self._watch)
        self._group.start_soon(self._follow_changes)
        self._group.start_soon(self._session_end_worker.run)
        if not self._options.terminal:
            self._group.start_soon(self._maintenance.run)

    async def drain(self, seconds: float) -> None:
        """Closes the intake and lets running turns finish; the rest waits for the next start."""
        self._closed = True
        with anyio.move_on_after(seconds):
            await self._lanes.idle()
            await self._outbox.idle()
        self._runner.stop_all("shutdown")
        with anyio.move_on_after(STOP_TURNS_SECONDS):
            await self._lanes.idle()

    async def _watch(self) -> None:
        while True:
            await self._changed.wait()
            self._changed = anyio.Event()
            try:
                await self._sweep()
            except HermesError as error:
                log.error("can't see what another process changed: %s", error)
            except Exception:
                log.exception("can't see what another process changed")

    async def _follow_changes(self) -> None:
        async for _ in self._store.changes():
            self.notice_change()

    async def _sweep(self) -> None:
        self._access.paired = await self._store.run(load_paired)
        # A terminal leaves to gateways what is theirs, but must not wait for one itself.
        kind: OwnerKind | None = "terminal" if self._options.terminal else None

        def start(claim: Claim) -> None:
            self._lanes.start(claim)
            self._mind_unread(claim.turn.id)

        await self._recovery.take_over(start, kind)
        await self._resume()
        for turn in await self._recovery.stops():
            self._runner.stop(turn, "stop")

    async def _resume(self) -> None:
        await self._recovery.resume(self._lanes.start, self._runner.runs)
        # A chat whose message was given up is owed a notice.
        await self._outbox.look()

    def _mind_unread(self, turn: TurnId) -> None:
        if self._runner.is_fleeting(turn):
            self._group.start_soon(self._stop_unread, turn)

    async def _stop_unread(self, turn: TurnId) -> None:
        seconds = self._options.unread_seconds
        await anyio.sleep(seconds)
        live = self._hub.get(turn)
        if live is not None and (live.readers or live.left_at + seconds > anyio.current_time()):
            return
        if self._runner.is_fleeting(turn):
            self._runner.stop(turn, "unread")


@asynccontextmanager
async def running_gateway(
    store: Store,
    agents: Mapping[AgentId, HostedAgent],
    route: Route,
    commands: CommandTable,
    options: GatewayOptions,
    media: MediaIntake,
    drain_seconds: float,
) -> AsyncIterator[Gateway]:
    """A gateway at work; it drains when the block ends."""
    async with anyio.create_task_group() as group:
        gateway = Gateway(store, group, agents, route, commands, options, media)
        await gateway.start()
        try:
            yield gateway
        finally:
            with anyio.CancelScope(shield=True):
                await gateway.drain(drain_seconds)
            group.cancel_scope.cancel()
