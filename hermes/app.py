"""The composition root: the one module that knows every concrete class."""

import logging
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
from hermes.control.upkeep import DAY, HOUR, Retention
from hermes.core.agent import Agent
from hermes.core.models.openai_chat import OpenAIChat
from hermes.core.models.retry import Retrying
from hermes.core.tools.files import read_file
from hermes.core.tools.registry import Registry
from hermes.settings import Settings
from hermes.settings.models import resolve_model
from hermes.state import owners
from hermes.state.guard import guarded, snapshot_due, take_snapshot
from hermes.state.owners import OwnerLock, is_alive
from hermes.state.paths import Home
from hermes.state.sqlite import SQLiteStore, open_store
from hermes.streaming.policy import StreamingPolicy
from hermes.types.errors import ConfigError, HermesError, StoreUnavailable
from hermes.types.identity import DEFAULT_AGENT, AgentId, OwnerId
from hermes.types.profile import AgentProfile, ModelChoice
from hermes.types.protocols import ModelProvider, PlatformAdapter, Store
from hermes.types.tools import Tool

log = logging.getLogger(__name__)

SNAPSHOT_SECONDS = 300.0
"""The age at which a snapshot is replaced, if anything has changed since."""
LOOK_SECONDS = 30.0
THREADS = 4
"""For blocking work, beside the loop's thread, the store's, and its readers'."""
TOOLS: tuple[Tool, ...] = (read_file,)


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """What an embedder or a test puts in place of the usual."""

    adapters: Sequence[PlatformAdapter] = ()
    tools: Sequence[Tool] = TOOLS
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
    anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS
    settings.home.ensure()
    settings.workspace.mkdir(parents=True, exist_ok=True)
    profiles = {DEFAULT_AGENT: profile_of(settings, DEFAULT_AGENT)}
    async with _process(settings.home, terminal=terminal) as (store, owner), _http() as session:
        model = parts.model or Retrying(
            OpenAIChat(session), attempts=settings.agent.api_max_retries + 1
        )
        process = Process(
            store=parts.wrap_store(store),
            owner=owner,
            is_alive=partial(is_alive, settings.home.run),
        )
        async with running_gateway(
            process,
            Agent(model, Registry(parts.tools), partial(choose_model, settings)),
            profiles.__getitem__,
            [adapter.account for adapter in parts.adapters],
            replace(options_of(settings, terminal=terminal), unread_seconds=parts.unread_seconds),
            settings.agent.drain_seconds,
        ) as gateway:
            store.on_foreign_change = gateway.notice_change
            gateway.notice_change()  # of what came while we started
            yield gateway


@asynccontextmanager
async def _process(home: Home, *, terminal: bool) -> AsyncIterator[tuple[SQLiteStore, OwnerId]]:
    """The home's store, with this process known to all others that work on it."""
    kind = "terminal" if terminal else "gateway"
    with guarded(home):
        # The lock comes after the store: whoever is killed with a lock has left a log.
        async with open_store(home.store) as store:
            with OwnerLock(home.run) as lock:
                await store.run(owners.register(lock.id, kind, time.time()))
                try:
                    yield store, lock.id
                finally:
                    await _leave(store, lock.id)


async def _leave(store: SQLiteStore, owner: OwnerId) -> None:
    try:
        with anyio.CancelScope(shield=True):
            await store.run(owners.leave(owner))
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


def profile_of(settings: Settings, agent: AgentId) -> AgentProfile:
    home = settings.home
    soul = home.soul.read_text("utf-8") if home.soul.exists() else ""
    parts = [soul.strip(), settings.agent.system_prompt.strip()]
    return AgentProfile(
        id=agent,
        home=str(home.root),
        workspace=str(settings.workspace),
        model=resolve_model(settings),
        budget=settings.agent.budget,
        soul="\n\n".join(part for part in parts if part),
    )


def choose_model(settings: Settings, profile: AgentProfile, named: str | None) -> ModelChoice:
    """The profile's model, or the `provider/model` that a request names."""
    if named is not None:
        provider, _, model = named.partition("/")
        other = replace(settings.model, provider=provider, default=model, base_url="", api_key="")
        choice = resolve_model(replace(settings, model=other))
    else:
        choice = profile.model
    if choice is None:
        raise ConfigError(
            "No model is configured. Run `hermes config set model.base_url URL` and"
            " `hermes config set model.default NAME` for any OpenAI-compatible endpoint,"
            " or set a provider's key such as OPENROUTER_API_KEY or OPENAI_API_KEY."
        )
    return choice


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
