"""The composition root: the one module that knows every concrete class."""

import logging
import math
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial

import aiohttp
import anyio
import anyio.to_thread
import msgspec
from msgspec.structs import replace

from hermes.control.access import AccessPolicy, Allowed
from hermes.control.gateway import Gateway, GatewayOptions, Process, running_gateway
from hermes.control.keys import session_key
from hermes.control.upkeep import DAY, HOUR, Retention
from hermes.core.models.listing import refresh_lists
from hermes.core.models.wires import Wires
from hermes.core.tools.registry import Registry
from hermes.core.tools.todo import forget_todos
from hermes.equipment import Equipment, choose_model, opened_model, profile_of
from hermes.settings import Settings
from hermes.settings.facts import lists
from hermes.settings.offers import places
from hermes.state import owners
from hermes.state.guard import guarded, snapshot_due, take_snapshot
from hermes.state.owners import OwnerLock, is_alive
from hermes.state.paths import Home
from hermes.state.spill import Spill
from hermes.state.sqlite import SQLiteStore, open_store
from hermes.streaming.policy import StreamingPolicy
from hermes.types.errors import HermesError, StoreUnavailable
from hermes.types.identity import DEFAULT_AGENT, OWNER, OwnerId, Source, TurnId, new_id
from hermes.types.platforms import PlatformAdapter
from hermes.types.protocols import ModelProvider, Store
from hermes.types.tools import Tool
from hermes.types.turns import Prompt, Turn

log = logging.getLogger(__name__)

SNAPSHOT_SECONDS = 300.0
"""The age at which a snapshot is replaced, if anything has changed since."""
LOOK_SECONDS = 30.0
RESULT_DAYS = 7
THREADS = 4
"""For blocking work, beside the loop's thread, the store's, and its readers'."""


def limit_threads() -> None:
    """For a process that is all ours; an embedder's threads are its own."""
    anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """What an embedder or a test puts in place of the usual."""

    adapters: Sequence[PlatformAdapter] = ()
    tools: Sequence[Tool] | None = None
    """In place of all that the settings allow."""
    own_tools: Sequence[Tool] = ()
    """An embedder's, beside the others."""
    model: ModelProvider | None = None
    wrap_store: Callable[[Store], Store] = lambda store: store
    unread_seconds: float = 10.0
    """How long a stateless request goes on after its last reader has gone."""


@asynccontextmanager
async def open_gateway(
    settings: Settings, parts: Parts | None = None, *, terminal: bool = False
) -> AsyncIterator[Gateway]:
    """A gateway at work on the home's store, until the block ends."""
    parts = parts or Parts()
    settings.home.ensure()
    settings.workspace.mkdir(parents=True, exist_ok=True)
    profiles = {DEFAULT_AGENT: profile_of(settings, DEFAULT_AGENT)}
    async with (
        _process(settings.home, terminal=terminal) as (store, owner),
        _http() as session,
        opened_model(settings, session) as model,
    ):
        watched = parts.wrap_store(store)
        equipment = Equipment(settings, watched, session, parts.model or model)
        tools = equipment.tools() if parts.tools is None else parts.tools
        process = Process(
            store=watched,
            owner=owner,
            is_alive=partial(is_alive, settings.home.run),
            end_session=equipment.end_session,
            write_title=equipment.write_title,
        )
        async with running_gateway(
            process,
            equipment.agent((*tools, *parts.own_tools)),
            profiles.__getitem__,
            [adapter.account for adapter in parts.adapters],
            replace(options_of(settings, terminal=terminal), unread_seconds=parts.unread_seconds),
            settings.agent.drain_seconds,
        ) as gateway:
            store.on_foreign_change = gateway.notice_change
            gateway.notice_change()  # of what came while we started
            yield gateway


@asynccontextmanager
async def home_store(home: Home) -> AsyncIterator[Store]:
    """The home's store, beside whoever else works on it."""
    home.ensure()
    with guarded(home):
        async with open_store(home.store) as store:
            yield store


def forget_session(home: Home, session: str) -> None:
    """Deletes the files of a session that was deleted."""
    forget_todos(home.todos, session, before=math.inf)
    Spill(home.spill).forget_session(session)


@asynccontextmanager
async def _process(home: Home, *, terminal: bool) -> AsyncIterator[tuple[SQLiteStore, OwnerId]]:
    """The home's store, with this process known to all others that work on it."""
    kind = "terminal" if terminal else "gateway"
    with guarded(home):
        # The lock comes after the store: whoever is killed with a lock has left a log.
        async with open_store(home.store) as store:
            with OwnerLock(home.run) as lock:
                await store.run(owners.register, lock.id, kind, time.time())
                try:
                    yield store, lock.id
                finally:
                    await _leave(store, lock.id)


async def _leave(store: SQLiteStore, owner: OwnerId) -> None:
    try:
        with anyio.CancelScope(shield=True):
            await store.run(owners.leave, owner)
    except StoreUnavailable as error:
        # Without its lock the next process takes us for dead: nothing is lost.
        log.error("can't sign off: %s", error)


@asynccontextmanager
async def _http() -> AsyncIterator[aiohttp.ClientSession]:
    connector = aiohttp.TCPConnector(limit=0, ttl_dns_cache=300)
    # No cookies: a model's answer to one person must not carry over to another's request.
    jar = aiohttp.DummyCookieJar()
    async with aiohttp.ClientSession(connector=connector, cookie_jar=jar) as session:
        yield session


async def new_prompt(settings: Settings, platform: str) -> Prompt:
    """What the model is told when the owner begins a conversation on the platform."""
    profile = profile_of(settings, DEFAULT_AGENT)
    choice = choose_model(settings, profile, None)
    place = Source(
        platform=platform, account=platform, chat_kind="private", chat_id="new", user_id=OWNER
    )
    turn = Turn(
        id=TurnId(new_id()),
        session=session_key(DEFAULT_AGENT, place, sole_account=True),
        agent=DEFAULT_AGENT,
        source=place,
        profile=profile,
        history=(),
        person=OWNER,
    )
    async with home_store(settings.home) as store, _http() as session:
        equipment = Equipment(settings, store, session, Wires(session))
        tools = Registry(equipment.tools()).for_turn(turn) if choice.tools else {}
        return await equipment.prompter().prompt(turn, choice, tools)


async def keep_house(settings: Settings) -> None:
    """Snapshots of the store and current lists of models, until cancelled."""
    async with anyio.create_task_group() as group, _http() as session:
        group.start_soon(keep_snapshots, settings.home)
        group.start_soon(forget_results, settings.home)
        group.start_soon(refresh_lists, session, lists(settings), places(settings))
        await anyio.sleep_forever()


async def forget_results(home: Home) -> None:
    """Deletes long results of tools that are so old that nobody reads on in them."""
    while True:
        forget = partial(Spill(home.spill).forget, time.time() - RESULT_DAYS * DAY)
        try:
            await anyio.to_thread.run_sync(forget, abandon_on_cancel=True)
        except OSError as error:
            log.error("old results of tools can't be deleted: %s", error)
        await anyio.sleep(HOUR)


async def keep_snapshots(home: Home) -> None:
    """Copies the store every few minutes, for the day when its file is damaged."""

    def snapshot() -> None:
        if snapshot_due(home, SNAPSHOT_SECONDS):
            take_snapshot(home)

    while True:
        try:
            await anyio.to_thread.run_sync(snapshot, abandon_on_cancel=True)
        except (HermesError, OSError) as error:
            log.error("no snapshot could be taken: %s", error)
        await anyio.sleep(LOOK_SECONDS)


def options_of(settings: Settings, *, terminal: bool) -> GatewayOptions:
    streaming = settings.streaming
    access = AccessPolicy(
        platforms={
            name: Allowed(everyone=one.allow_all, users=frozenset(one.allowed_users))
            for name, one in settings.platforms.items()
        },
        anywhere=Allowed(
            everyone=settings.access.allow_all, users=frozenset(settings.access.allowed_users)
        ),
    )
    return GatewayOptions(
        access=access,
        streaming=StreamingPolicy(
            edit_interval=streaming.edit_interval,
            buffer_threshold=streaming.buffer_threshold,
            cursor=streaming.cursor,
            first=streaming.first,
        ),
        retention=Retention(
            requests=settings.retention.stateless_hours * HOUR,
            messages=settings.retention.inbox_days * DAY,
        ),
        most_runs=settings.api_server.max_concurrent_runs,
        terminal=terminal,
    )
