"""Looks at an agent without running it: checks its settings, writes the prompt it would get."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from hermes.app.agent import AgentBuilder, choose_model
from hermes.app.builtins import Builtins
from hermes.app.gateway import agent_settings, home_store, hosted_agents, http_session
from hermes.control.keys import session_key
from hermes.control.routing import DEFAULT_AGENT
from hermes.core.models.wires import Wires
from hermes.core.tools.registry import Registry
from hermes.plugins import Plugins, installed_plugins
from hermes.settings import Settings
from hermes.settings.models import resolve_auxiliary, resolve_fallbacks
from hermes.state.paths import Home
from hermes.types.identity import OWNER, AgentId, Source, TurnId, new_id
from hermes.types.turns import Prompt, Turn


@asynccontextmanager
async def agent_builders(
    settings: Settings, store_home: Home
) -> AsyncIterator[tuple[dict[AgentId, AgentBuilder], Plugins]]:
    """A builder for every agent of the settings, on the store of `store_home`."""
    builtins = Builtins()
    plugins = Plugins([builtins, *installed_plugins()])
    async with home_store(store_home) as store, http_session() as session:
        builders = {
            id: AgentBuilder(id, own, store, session, Wires(session))
            for id, own in agent_settings(settings, plugins).items()
        }
        builtins.builders = builders
        yield builders, plugins


async def check(settings: Settings) -> None:
    """ConfigError for settings that would keep an agent from working. Leaves the home as it is."""
    with TemporaryDirectory() as folder:
        async with agent_builders(settings, Home(root=Path(folder))) as (builders, plugins):
            hosted_agents(builders, plugins, None)
            for own in agent_settings(settings, plugins).values():
                resolve_auxiliary(own)
                resolve_fallbacks(own)
    plugins.commands()


async def new_prompt(settings: Settings, platform: str) -> Prompt:
    """The prompt with which the owner's next conversation on the platform would begin."""
    source = Source(
        platform=platform, account=platform, chat_kind="private", chat_id="new", user_id=OWNER
    )
    async with agent_builders(settings, settings.home) as (builders, plugins):
        builder = builders[DEFAULT_AGENT]
        choice = choose_model(settings, builder.profile, None)
        turn = Turn(
            id=TurnId(new_id()),
            session=session_key(DEFAULT_AGENT, source),
            agent=DEFAULT_AGENT,
            source=source,
            profile=builder.profile,
            history=(),
            person=OWNER,
        )
        offered = Registry(plugins.tools(builder.profile)).for_turn(turn)
        return await builder.prompter().prompt(turn, choice, offered if choice.tools else {})
