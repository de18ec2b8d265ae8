"""Inspects agents without running them: checks their settings, and renders a new prompt."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from hermes.app.agent import AgentBuilder, GatewayParts, choose_model
from hermes.app.backends import configured_backend
from hermes.app.builtins import Builtins, all_plugins, configured_models
from hermes.app.gateway import agent_settings, check_workspaces, hosted_agents, http_session
from hermes.app.messenger import messenger_of, target_platforms
from hermes.app.stores import home_store
from hermes.control.commands import CommandTable
from hermes.control.keys import session_key
from hermes.control.routing import DEFAULT_AGENT
from hermes.core.models.client import ModelClient
from hermes.core.tools.registry import UNSUPPORTED_SETS, Registry
from hermes.entry.messaging import make_adapters
from hermes.plugins import Plugins
from hermes.settings import Settings
from hermes.settings.keys import read_key
from hermes.settings.platforms import check_platforms
from hermes.state.folder_ids import check_shared_folder
from hermes.state.paths import Home
from hermes.types.identity import OWNER, AgentId, Source, TurnId, new_id
from hermes.types.messages import Origin
from hermes.types.people import Role
from hermes.types.turns import Prompt, Turn


@asynccontextmanager
async def agent_builders(
    settings: Settings, stored: Settings
) -> AsyncIterator[tuple[dict[AgentId, AgentBuilder], Plugins]]:
    """Yields a builder for every agent of `settings`, and the plugins. The builders use the store
    of the settings in `stored`, which can differ from the store of `settings`."""
    builtins = Builtins()
    plugins = all_plugins(builtins)
    # Wrong settings of a platform raise no error here, because `check` reports them separately.
    targets = target_platforms(settings, plugins.platforms(), strict=False)
    async with home_store(stored) as store, http_session() as session:
        parts = GatewayParts(messenger=messenger_of(stored, store, targets))
        builders: dict[AgentId, AgentBuilder] = {}
        for id, own in agent_settings(settings, plugins).items():
            models = configured_models(own, plugins)
            client = ModelClient(session, models.wires)
            backend = configured_backend(own, plugins.backends())
            builders[id] = AgentBuilder(id, own, models, store, session, client, backend, parts)
        builtins.builders = builders
        yield builders, plugins


async def check(settings: Settings) -> Sequence[str]:
    """Returns warnings about the settings. Raises ConfigError if an agent could not work with these
    settings.

    The check does not change the home.
    """
    warnings: list[str] = []
    with TemporaryDirectory() as folder:
        empty = Settings(home=Home(root=Path(folder)))
        async with agent_builders(settings, empty) as (builders, plugins):
            hosted_agents(builders, plugins, None)
            for own in agent_settings(settings, plugins).values():
                models = configured_models(own, plugins)
                models.auxiliary()
                models.fallbacks()
                warnings += [
                    f"agent.toolsets: {name!r} has no tools yet"
                    for name in own.agent.toolsets
                    if name in UNSUPPORTED_SETS
                ]
    if settings.store.shared_folder:
        check_shared_folder(settings.files.root)
        check_workspaces([settings])
    if settings.api_server.enabled and not settings.api_server.key:
        read_key(settings.home)
    CommandTable(plugins.commands(), settings.is_on)
    platforms = plugins.platforms()
    warnings += check_platforms(settings, platforms)
    make_adapters(settings, platforms)
    return warnings


async def new_prompt(settings: Settings, platform: str, origin: Origin) -> Prompt:
    """Returns the prompt with which the owner's next conversation from this origin would begin."""
    source = Source(
        platform=platform, account=platform, chat_kind="private", chat_id="new", user_id=OWNER
    )
    async with agent_builders(settings, settings) as (builders, plugins):
        builder = builders[DEFAULT_AGENT]
        choice = choose_model(configured_models(settings, plugins), builder.profile, None)
        turn = Turn(
            id=TurnId(new_id()),
            session=session_key(DEFAULT_AGENT, source),
            agent=DEFAULT_AGENT,
            source=source,
            profile=builder.profile,
            history=(),
            person=OWNER,
            role=Role.OWNER,
            principal=origin.principal,
            place=origin.place,
        )
        offered = Registry(plugins.tools(builder.profile)).for_turn(turn)
        return await builder.prompt_writer().prompt(turn, choice, offered if choice.tools else {})
