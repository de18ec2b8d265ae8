"""All extension points (hooks) of Hermes.

A plugin is a module or an object whose functions have the names of hooks and are marked with
`hermes.hookimpl`. An installed package declares its plugin in the entry point group
`hermes.plugins`. The built-in features use the same hooks. A function can leave out parameters of
the hook that it does not need.
"""

from collections.abc import Sequence
from pathlib import Path

import pluggy

from hermes.types.agents import AgentHome
from hermes.types.commands import SlashCommand
from hermes.types.execution import BackendManifest
from hermes.types.identity import AgentId
from hermes.types.messages import MessageEvent
from hermes.types.models import WireFormat
from hermes.types.platforms import AnyPlatform
from hermes.types.profile import AgentProfile
from hermes.types.providers import Provider
from hermes.types.tools import AnyTool

PROJECT = "hermes"
ENTRY_POINT_GROUP = "hermes.plugins"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def register_agents(home: Path) -> Sequence[AgentHome]:  # type: ignore[empty-body]
    """Returns the agents that the plugin adds to the gateway that serves `home`. The agent `main`
    is built in, and its folder is `home` itself."""


@hookspec
def register_platforms() -> Sequence[AnyPlatform]:  # type: ignore[empty-body]
    """Returns the manifests of the chat platforms that the plugin adds."""


@hookspec
def register_tools(profile: AgentProfile) -> Sequence[AnyTool]:  # type: ignore[empty-body]
    """Returns tools that the agent may use if its toolsets include them."""


@hookspec
def register_backends() -> Sequence[BackendManifest]:  # type: ignore[empty-body]
    """Returns execution backends. The setting `terminal.backend` selects a backend by its name."""


@hookspec
def register_models() -> Sequence[WireFormat | Provider]:  # type: ignore[empty-body]
    """Returns the wire formats and the providers of models that the plugin adds."""


@hookspec
def register_commands() -> Sequence[SlashCommand]:  # type: ignore[empty-body]
    """Returns slash commands. The fields of a command say who may use it, where and when."""


@hookspec(firstresult=True)
def select_agent(event: MessageEvent) -> AgentId | None:
    """Returns the agent that answers a message, or None to leave the choice to the next plugin.

    If the function raises an error or names an agent that the gateway does not run, the message is
    refused and the error is logged. No other agent answers instead, and the message is not
    delivered again.
    """
