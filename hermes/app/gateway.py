"""Opens a gateway: the store, the hosted agents and the plugins of a home."""

import logging
import math
import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import aiohttp
import anyio
import anyio.to_thread
import msgspec
from msgspec.structs import replace

from hermes import settings as configuration
from hermes.app.agent import AgentBuilder, GatewayParts, open_model
from hermes.app.backends import open_backend
from hermes.app.builtins import Builtins, all_plugins, configured_models
from hermes.app.messenger import target_platforms
from hermes.app.stores import home_store, node_folder
from hermes.boundary.egress import Egress
from hermes.boundary.execution.sandbox_folders import delete_session_sandbox
from hermes.control.commands import CommandTable
from hermes.control.directory import Directory
from hermes.control.gateway import Gateway, running_gateway
from hermes.control.gateway_options import GatewayOptions
from hermes.control.human_pace import HumanPace
from hermes.control.maintenance import DAY, HOUR, Retention
from hermes.control.media import Download, MediaIntake
from hermes.control.messenger import ChatMessenger
from hermes.control.routing import Router
from hermes.control.targets import TargetPlatform
from hermes.core.models.connector import ModelConnector
from hermes.core.tools.todo import delete_todos
from hermes.plugins import Plugins
from hermes.settings import Settings
from hermes.settings.access import access_policy
from hermes.state.credential_locks import CredentialLocks
from hermes.state.media import MediaCache
from hermes.state.spill import Spill
from hermes.streaming.policy import StreamingPolicy
from hermes.text.redact import redact_tokens
from hermes.types.agents import AgentHome, HostedAgent
from hermes.types.commands import SlashCommand
from hermes.types.errors import ConfigError
from hermes.types.execution import ExecutionBackend
from hermes.types.identity import AgentId, SessionKey
from hermes.types.models import ModelProvider
from hermes.types.store import Store
from hermes.types.tools import AnyTool

log = logging.getLogger(__name__)

THREADS = 3
"""Threads for blocking work. The process has at most 8 threads: these, the event loop, three
threads of the store (one writer and two readers), and one thread of libuv."""

MEDIA_SECONDS = 20.0
"""Longest time in seconds for the download of a file whose URL is in a message."""


def limit_threads() -> None:
    """Limits the threads of a process that runs only Hermes. A program that embeds Hermes must not
    call this function."""
    # libuv resolves addresses in this number of threads; the default is 4. libuv reads the variable
    # at the first lookup.
    os.putenv("UV_THREADPOOL_SIZE", "1")
    anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS


class GatewayOverrides(msgspec.Struct, frozen=True, kw_only=True):
    """Objects with which a test, or a program that embeds Hermes, extends or changes a gateway."""

    plugins: Sequence[object] = ()
    """Plugins that are used in addition to the built-in plugins and those of installed packages."""
    tools: Sequence[AnyTool] | None = None
    """Tools that are used instead of all tools from settings and plugins."""
    model: ModelProvider | None = None
    backend: ExecutionBackend | None = None
    """An execution backend that is used instead of the backend in the settings."""
    targets: Sequence[TargetPlatform] | None = None
    """The platforms that messages can be sent to. They replace the platforms in the settings."""
    download: Download | None = None
    """A function that replaces the download of files whose URLs are in messages."""
    wrap_store: Callable[[Store], Store] = lambda store: store
    unread_seconds: float = 10.0
    """Seconds for which a request without a session continues after the last client that reads its
    events has disconnected."""
    credential_folder: Path | None = None
    """The folder with the lock files of credentials. None selects the folder that all homes of the
    user share."""


@asynccontextmanager
async def open_gateway(
    settings: Settings, overrides: GatewayOverrides | None = None, *, terminal: bool = False
) -> AsyncIterator[Gateway]:
    """Runs a gateway on the home's store until the block ends."""
    overrides = overrides or GatewayOverrides()
    builtins = Builtins()
    plugins = all_plugins(builtins, overrides.plugins)
    profiles = agent_settings(settings, plugins)
    folder = node_folder(settings)
    locks = CredentialLocks(home=settings.home.root, folder=overrides.credential_folder)
    if not terminal:
        check_workspaces(profiles.values())
    # All agents share this folder, because entry points store files before an agent is chosen.
    media = MediaCache(settings.files.media)
    async with (
        home_store(settings, "terminal" if terminal else "gateway", folder.id) as store,
        http_session() as session,
        AsyncExitStack() as opened,
    ):
        watched = overrides.wrap_store(store)
        intake = MediaIntake(media, overrides.download or Egress(seconds=MEDIA_SECONDS).download)
        # A terminal serves no platform, so wrong settings of a platform must not stop the terminal.
        targets = target_platforms(settings, plugins.platforms(), strict=not terminal)
        directory = Directory(watched, targets if overrides.targets is None else overrides.targets)
        messenger = ChatMessenger(watched, directory, intake)
        parts = GatewayParts(read_media=media.read, messenger=messenger)
        builders: dict[AgentId, AgentBuilder] = {}
        for id, own in profiles.items():
            own.workspace.mkdir(parents=True, exist_ok=True)
            models = configured_models(own, plugins)
            model = overrides.model
            if model is None:
                model = await opened.enter_async_context(
                    open_model(own, models, session, media.read)
                )
            backend = overrides.backend or await opened.enter_async_context(
                open_backend(own, plugins.backends())
            )
            builders[id] = AgentBuilder(id, own, models, watched, session, model, backend, parts)
        builtins.builders = builders
        agents = hosted_agents(builders, plugins, overrides.tools)
        if not terminal:
            await log_commands(builders, plugins, overrides.tools)
        async with running_gateway(
            watched,
            agents,
            Router(agents, plugins.select_agent),
            CommandTable(plugins.commands(), settings.is_on),
            replace(
                options_of(settings, terminal=terminal),
                unread_seconds=overrides.unread_seconds,
                folder=folder,
                redact=partial(redact_tokens, secrets=all_secrets(profiles.values())),
                credential_locks=locks,
            ),
            intake,
            settings.agent.drain_seconds,
        ) as gateway:
            messenger.on_stored = gateway.wake_delivery
            yield gateway


def all_commands() -> Sequence[SlashCommand]:
    """Returns the slash commands of a gateway, including those of plugins."""
    return tuple(CommandTable(all_plugins().commands()).commands.values())


def agent_settings(settings: Settings, plugins: Plugins) -> dict[AgentId, Settings]:
    """Returns the settings of every agent.

    The agent in the gateway's home uses the gateway's settings. An agent with another home reads
    its own config.yaml and .env instead. If the gateway has a shared folder, each agent with
    another home gets a subfolder of the shared folder.
    """
    home, process = settings.home.root, settings.sources.process
    shared = settings.files.profiles if settings.store.shared_folder else None

    def own(agent: AgentHome) -> Settings:
        if agent.home == home:
            return settings
        folder = str(shared / agent.id) if shared else ""
        return configuration.load(agent.home, process).with_shared_folder(folder)

    return {agent.id: own(agent) for agent in plugins.agents(home)}


def all_secrets(profiles: Iterable[Settings]) -> frozenset[str]:
    """Returns the secrets of these agents, which must not be shown or logged."""
    return frozenset().union(*(own.secrets() for own in profiles))


def check_workspaces(profiles: Iterable[Settings]) -> None:
    """Raises ConfigError if an agent has a shared folder and its workspace is outside of that
    folder."""
    for own in profiles:
        if own.store.shared_folder and not own.workspace.is_relative_to(own.files.root):
            raise ConfigError(
                f"workspace {str(own.workspace)!r} is outside of store.shared_folder"
                f" {str(own.files.root)!r}: set workspace to a path inside this folder, or remove"
                " the setting workspace"
            )


def hosted_agents(
    builders: Mapping[AgentId, AgentBuilder], plugins: Plugins, tools: Sequence[AnyTool] | None
) -> dict[AgentId, HostedAgent]:
    return {
        id: builder.build(plugins.tools(builder.profile) if tools is None else tools)
        for id, builder in builders.items()
    }


async def log_commands(
    builders: Mapping[AgentId, AgentBuilder], plugins: Plugins, tools: Sequence[AnyTool] | None
) -> None:
    """Logs which agents run commands on this machine without a sandbox. For every other agent, logs
    what is wrong with its sandbox."""
    for id, builder in builders.items():
        offered = plugins.tools(builder.profile) if tools is None else tools
        if builder.runs_commands_here(offered):
            log.warning(
                "agent %s runs commands on this machine with the rights of the gateway;"
                " `terminal.backend: sandbox` isolates them",
                id,
            )
        elif builder.offers_commands(offered):
            for finding in await builder.backend.check():
                if finding.level != "ok":
                    log.warning("agent %s: %s %s", id, finding.text, finding.hint)


def delete_session_files(settings: Settings, plugins: Plugins, session: str) -> None:
    """Deletes the files that a deleted session has left in the home of its agent."""
    agent = SessionKey.parse(session).agent
    own = agent_settings(settings, plugins).get(agent)
    if own is None:
        log.warning("files of %s may remain: the agent %s is not hosted here", session, agent)
        return
    delete_todos(own.files.todos, session, before=math.inf)
    Spill(own.files.spill).forget_session(session)
    delete_session_sandbox(own.files.sandboxes, SessionKey.parse(session))


@asynccontextmanager
async def http_session() -> AsyncIterator[aiohttp.ClientSession]:
    # Cookies are disabled, because one person's requests must not affect another person's.
    jar = aiohttp.DummyCookieJar()
    async with aiohttp.ClientSession(connector=ModelConnector(), cookie_jar=jar) as session:
        yield session


def options_of(settings: Settings, *, terminal: bool) -> GatewayOptions:
    streaming = settings.streaming
    shortest, longest = settings.human_delay.seconds
    return GatewayOptions(
        access=access_policy(settings),
        streaming=StreamingPolicy(
            enabled=streaming.enabled,
            edit_interval=streaming.edit_interval,
            buffer_threshold=streaming.buffer_threshold,
            cursor=streaming.cursor,
            first=streaming.first,
        ),
        pace=HumanPace(shortest=shortest, longest=longest),
        retention=Retention(
            requests=settings.retention.stateless_hours * HOUR,
            messages=settings.retention.inbox_days * DAY,
            media=settings.retention.media_days * DAY,
        ),
        most_runs=settings.api_server.max_concurrent_runs,
        several_folders=bool(settings.store.url),
        terminal=terminal,
    )
