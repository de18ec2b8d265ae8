"""The gateway: accepts messages, runs the turns that answer them, and continues unfinished work
after a restart."""

import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Mapping
from contextlib import AbstractContextManager, asynccontextmanager
from typing import ParamSpec, TypeVar

import anyio
import anyio.abc

from hermes.control import sessions
from hermes.control.access import Access
from hermes.control.account_table import AccountTable
from hermes.control.admission import Admission
from hermes.control.commands import CommandTable
from hermes.control.context_use import ContextUse, context_use
from hermes.control.credentials import Credentials
from hermes.control.event_content import new_messages
from hermes.control.event_hub import EventHub
from hermes.control.event_pages import EventPages
from hermes.control.following import Following, following
from hermes.control.gateway_options import GatewayOptions
from hermes.control.idle_sandboxes import IdleSandboxes
from hermes.control.incoming import IntakeResult
from hermes.control.intake import Intake, store_message
from hermes.control.keys import session_key
from hermes.control.lanes import Lanes
from hermes.control.live_relay import LiveRelay
from hermes.control.maintenance import Maintenance
from hermes.control.media import MediaIntake
from hermes.control.outbox import Outbox
from hermes.control.pairing import Pairing
from hermes.control.part_timer import PartTimer
from hermes.control.recovery import Recovery
from hermes.control.routing import Route, RoutingFailed
from hermes.control.session_end import SessionEndWorker
from hermes.control.sessions import Summary
from hermes.control.sightings import ChatSightings
from hermes.control.stranded_work import StrandedWork
from hermes.control.titles import TitleWriter
from hermes.control.turn_log import log_receipt
from hermes.control.turn_transactions import Claim, TurnTransactions
from hermes.control.turns import TurnRunner
from hermes.state import turns
from hermes.state.access import load_people
from hermes.state.sessions import model_of
from hermes.state.steering import steered_turns
from hermes.types.agents import HostedAgent
from hermes.types.errors import HermesError, IntakeClosed, StoreUnavailable, TooBusy
from hermes.types.events import Envelope
from hermes.types.identity import AgentId, SessionKey, Source, TurnId
from hermes.types.messages import Accepted, Asked, Invited, MessageEvent, Receipt, Refused
from hermes.types.people import Role
from hermes.types.platforms import Cursor, PlatformAdapter
from hermes.types.store import OwnerKind, Store, Work

log = logging.getLogger(__name__)

T = TypeVar("T")
P = ParamSpec("P")

STOP_TURNS_SECONDS = 5.0
TAKE_BACK_SECONDS = 0.1
"""Seconds between two attempts to resume stopped turns. These turns were stopped because this
process had lost its lock. The lock proves to other processes that this process is alive."""


CHANGES_POLL_SECONDS = 1.0
"""Seconds after which the gateway looks for changes of other processes if nothing wakes it."""
ACCOUNT_SECONDS = 1.0
"""Seconds between two checks whether this process still serves an account."""
CHANGES_PAUSE_SECONDS = 0.1
"""Minimum time in seconds between two reads of the changes of other processes."""


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
        self.accounts = AccountTable(options.redact)
        """The states of the chat accounts."""
        self.commands = commands.usable(Role.USER, "chat")
        """The slash commands that every person can use in a chat, for the menus of platforms."""
        self._store = store
        self._hub = EventHub()
        self._pages = EventPages(store)
        self._relay = LiveRelay(store.bus, store.owner, self._hub) if store.bus else None
        self._sightings = ChatSightings()
        self._outbox = Outbox(store, group, store.owner, options.streaming, media, options.pace)
        self._outbox.on_gone = self._sightings.forget
        self.wake_delivery = self._outbox.wake
        """Must be called with a chat after this process has stored a message for that chat."""
        self._group = group
        self._options = options
        self._route = route
        self._agents = agents
        self._access = Access(options.access)
        self._admission = Admission(self._access, Pairing(store, self._access, self._outbox))
        placement = options.placement
        transactions = TurnTransactions(store.owner, agents, placement)
        self._intake = Intake(transactions, commands)
        self._runner = TurnRunner(store, transactions, self._hub, self._outbox, agents)
        self._runner.role_of = self._access.role
        self._lanes = Lanes(group, self._runner)
        self._recovery = Recovery(store, transactions, agents)
        self._credentials = Credentials(store, self._recovery.lease, options.credential_locks)
        self._session_end_worker = SessionEndWorker(
            store, agents, placement.limit, gateway=not options.terminal
        )
        stranded = StrandedWork(store, transactions, self._lanes.start)
        self._maintenance = Maintenance(
            store,
            self._recovery,
            options.retention,
            self._sweep,
            media,
            stranded if placement.checked else None,
        )
        self._changed = anyio.Event()
        self._closed = False
        self._drained = False
        self._permitted = True
        self._part_timer = PartTimer(store, group, self.notice_change)
        self._left: set[TurnId] = set()
        """Turns that were stopped because this process had lost its permission to run them."""
        self._hub.on_unread = self._mind_unread
        self._runner.on_closed = TitleWriter(store, group, agents).consider

    @property
    def busy(self) -> int:
        """Number of sessions with a running turn."""
        return len(self._lanes)

    @property
    def agents(self) -> Collection[AgentId]:
        """The ids of the agents that are hosted here."""
        return self._agents.keys()

    @property
    def trouble(self) -> str | None:
        """The reason why messages can't be accepted now; None if they can be accepted."""
        return "the gateway is shutting down" if self._closed else self._store.trouble

    async def accept(self, event: MessageEvent) -> Receipt:
        """Accepts a message. Returns when it is stored durably."""
        event = self.accounts.marked(event)
        source, principal = event.source, event.origin.principal
        self._need_open(source)
        if not self._admission.admits(event):
            return await self._admission.refuse(event)
        if isinstance(event.body, Invited):
            return Accepted(id=event.dedupe_key)
        self._access.hops.note(source)
        try:
            key = self.session_of(event)
        except RoutingFailed as error:
            # The error is only logged. Otherwise, the platform would deliver the event again and
            # again and block other chats.
            log.error("a message is refused: %s", error, exc_info=error.__cause__)
            return Refused(reason="no agent could be chosen")
        if isinstance(event.body, Asked):
            self._check(event.body, key.agent)
        person = self._access.person(source, principal)
        role = self._access.role(source, principal)
        try:
            taken = await store_message(
                self._store, self._intake, self._sightings, event, key, person, role
            )
        except UnicodeEncodeError as error:
            # The text of the message can't be stored. If this raised an error, the platform would
            # deliver the message for ever.
            log.warning("a message of %s is not valid text: %s", source.account, error)
            return Refused(reason="not valid text")
        log_receipt(event, key, taken.receipt)
        await self._follow_up(taken, key)
        return taken.receipt

    async def _follow_up(self, taken: IntakeResult, key: SessionKey) -> None:
        """Starts the work that a stored message has caused, for example a turn."""
        decided = None
        if taken.claim:
            self._lanes.start(taken.claim)
            # If the message has resumed the turn, the outbox edits the message with the question.
            decided = taken.claim.turn.reply_to if taken.claim.row.epoch > 1 else None
        for chat in (taken.owed, taken.notified, decided):
            if chat:
                self._outbox.wake(chat)
        if taken.secret:
            self._outbox.send_secret(taken.secret.target, taken.secret.text)
        if taken.ended:
            self._session_end_worker.notice(key)
        if taken.steer:
            self._runner.steer(taken.steer)
        if taken.due:
            self._part_timer.set(taken.due)
        if taken.stop and not self._runner.stop(taken.stop, "stop"):
            await self._resume()

    def admits(self, event: MessageEvent) -> bool:
        """Returns whether the message is addressed to us and its sender may talk to us."""
        return self._admission.admits(event)

    def _need_open(self, source: Source) -> None:
        """Raises an error if no message can be accepted now."""
        if self._closed:
            log.warning("a message of %s is refused: the gateway stops", source.account)
            raise IntakeClosed("The gateway is shutting down; try again after the restart.")
        if not self._permitted:
            log.warning("a message of %s is refused: the lock is lost", source.account)
            raise StoreUnavailable(self._store.trouble or "this process can't run turns now")

    def _check(self, asked: Asked, agent: AgentId) -> None:
        """Raises an error if the request can't be accepted now, or if this agent can never
        accept it."""
        if 0 < self._options.most_runs <= self.busy:
            log.warning("a request is refused: too many requests run")
            raise TooBusy(f"{self.busy} requests are under way; try again shortly.")
        self._agents[agent].check_request(asked)

    def session_of(self, event: MessageEvent) -> SessionKey:
        """Returns the key of the session that a message belongs to."""
        return session_key(self._route(event), event.source)

    async def check_attachments(self, event: MessageEvent) -> None:
        """Raises a HermesError if the session's model does not accept the message's files."""
        session = self.session_of(event)
        model = await self._store.read(model_of, str(session))
        request = Asked(messages=new_messages(event), model=model)
        self._agents[session.agent].check_request(request)

    async def context_use(self, session: SessionKey) -> ContextUse:
        """Returns how much of the model's context window the session fills."""
        find_model = self._agents[session.agent].find_model
        return await self._store.read(context_use, str(session), find_model)

    async def follow(self, turn: TurnId, after: int = 0) -> AsyncGenerator[Envelope]:
        """Yields the events of the turn with numbers above `after`, up to the end of the turn. Past
        events are replayed, and then live events follow."""
        with self.following(turn, after) as reader:
            while not reader.ended:
                for envelope in await reader.next():
                    yield envelope

    def following(self, turn: TurnId, after: int = 0) -> AbstractContextManager[Following]:
        """Yields a cursor in the events of the turn, for a reader that decides itself how long to
        wait."""
        expected = self._runner.runs(turn)
        if self._relay is not None and not expected:
            self._relay.notice_reader()
        return following(self._hub, self._pages, turn, after, expected=expected)

    async def request_stop(self, turn: TurnId, by: str) -> None:
        """Requests that the turn stop, whichever process runs it. `by` names the requester."""
        await self._store.run(turns.request_stop, turn, by)
        self.notice_change()

    async def read(self, transaction: Callable[P, Work[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Runs a transaction that changes nothing, such as `control.sessions.listed`."""
        return await self._store.read(transaction, *args, **kwargs)

    async def reopen(self, name: str) -> Summary:
        """Makes a conversation the current conversation of its session. `name` is a number, an id
        or a title, as in `control.sessions.find`."""
        return await self._store.run(sessions.reopen, name)

    async def knows(self, turn: TurnId, account: str) -> bool:
        """Returns whether the turn was started over the API with the key of this account."""
        row = await self._store.run(turns.get, turn)
        # The trigger is compared too, because a chat account may have the same name.
        return row is not None and row.trigger == "api" and row.account == account

    async def hold_account(self, adapter: PlatformAdapter, credential: str = "") -> Cursor | None:
        """Makes this process serve the account, and returns the account's cursor. Returns None if
        another process that uses the store serves the account.

        `credential` is a hash that identifies the account's credential. Raises CredentialInUse if
        another account or another gateway uses the same credential.
        """
        epoch = await self._recovery.lease(f"account:{adapter.account}")
        if epoch is None:
            return None
        if credential:
            await self._credentials.claim(adapter.account, credential)
        return await self._outbox.attach(adapter, epoch)

    async def account_lost(self, adapter: PlatformAdapter) -> None:
        """Returns when another process serves the account or uses the account's credential. This
        happens if the other process assumed that this process was dead."""
        account = adapter.account
        held = True
        while held:
            await anyio.sleep(ACCOUNT_SECONDS)
            held = await self._outbox.holds(account) and await self._credentials.holds(account)

    async def leave_account(self, adapter: PlatformAdapter) -> None:
        """Stops sending the account's deliveries, and lets other gateways use its credential."""
        self._outbox.detach(adapter.account)
        await self._credentials.release(adapter.account)

    def notice_change(self) -> None:
        """Wakes the task that looks for changes in the store. Code that commits to the store
        without a method of this gateway must then call `notice_change`."""
        self._changed.set()

    async def start(self) -> None:
        """Takes over the work of dead processes, and starts the background tasks."""
        if self._options.folder is not None and not self._options.terminal:
            await self._recovery.use_folder(self._options.folder)
        self._outbox.on_question_lost = self.notice_change
        await self._sweep()
        self._group.start_soon(self._watch)
        self._group.start_soon(self._follow_changes)
        self._group.start_soon(self._follow_permission)
        self._group.start_soon(self._session_end_worker.run)
        if self._relay is not None:
            self._group.start_soon(self._relay.run)
        if not self._options.terminal:
            self._group.start_soon(self._maintenance.run)
            self._group.start_soon(IdleSandboxes(self._agents.values()).run)

    async def drain(self, seconds: float) -> None:
        """Accepts no more messages and lets running turns finish. All other work waits for the next
        start. A second call does not wait again for a turn that could not be stopped."""
        if self._drained:
            return
        self._closed = True
        with anyio.move_on_after(seconds):
            await self._lanes.idle()
            await self._outbox.idle()
        self._runner.stop_all("shutdown")
        with anyio.move_on_after(STOP_TURNS_SECONDS):
            await self._lanes.idle()
        self._drained = True

    async def _watch(self) -> None:
        while True:
            # With a bus, the wait has a time limit, because a message on the bus may be lost.
            with anyio.move_on_after(CHANGES_POLL_SECONDS if self._relay else None):
                await self._changed.wait()
            self._changed = anyio.Event()
            try:
                await self._sweep()
            except HermesError as error:
                log.error("can't read the changes of other processes: %s", error)
            except Exception:
                log.exception("can't read the changes of other processes")
            # Under load, other processes commit all the time, so this loop must pause.
            await anyio.sleep(CHANGES_PAUSE_SECONDS)

    async def _follow_changes(self) -> None:
        async for _ in self._store.changes():
            self.notice_change()

    async def _follow_permission(self) -> None:
        """Stops all turns when this process loses its permission to run them, because other
        processes may then take them over. When the permission is back, resumes the turns that no
        other process has taken over."""
        async for permitted in self._store.permission():
            self._permitted = permitted
            if permitted:
                self._group.start_soon(self._take_back)
            else:
                self._left |= self._runner.stop_all("lost")

    async def _take_back(self) -> None:
        """Resumes the stopped turns. Each turn is resumed as soon as its earlier run in this
        process has ended."""
        while self._left and self._permitted:
            self.notice_change()
            await anyio.sleep(TAKE_BACK_SECONDS)

    async def _sweep(self) -> None:
        if not self._permitted:
            return
        self._access.learn(await self._store.read(load_people))
        # A terminal takes over the work of dead terminals without waiting for a gateway.
        # It leaves the work of dead gateways to other gateways.
        kind: OwnerKind | None = "terminal" if self._options.terminal else None

        def start(claim: Claim) -> None:
            self._lanes.start(claim)
            self._mind_unread(claim.turn.id)

        await self._recovery.take_over(start, kind)
        if ended := {turn for turn in self._left if not self._runner.runs(turn)}:
            await self._recovery.take_back(ended, start)
            self._left -= ended
        await self._resume()
        for turn in await self._recovery.stops():
            self._runner.stop(turn, "stop")
        for turn in await self._store.read(steered_turns, self._store.owner):
            self._runner.steer(turn)

    async def _resume(self) -> None:
        began = time.time()
        await self._recovery.resume(self._lanes.start, self._runner.runs)
        # The timer looks for messages that the call above missed: they were not ready at `began`.
        await self._part_timer.look(began)
        # If a message was given up, a notice for its chat is pending.
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
    """Runs a gateway until the block ends. Then running turns get `drain_seconds` to finish."""
    async with anyio.create_task_group() as group:
        gateway = Gateway(store, group, agents, route, commands, options, media)
        await gateway.start()
        try:
            yield gateway
        finally:
            with anyio.CancelScope(shield=True):
                await gateway.drain(drain_seconds)
            group.cancel_scope.cancel()
