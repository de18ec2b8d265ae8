"""The features that ship with Hermes, registered through the same hooks as a plugin's."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from hermes.app.agent import AgentBuilder
from hermes.control.commands import builtin_commands
from hermes.control.routing import DEFAULT_AGENT
from hermes.hookspecs import hookimpl
from hermes.types.agents import AgentHome
from hermes.types.commands import SlashCommand
from hermes.types.identity import AgentId
from hermes.types.profile import AgentProfile
from hermes.types.tools import Tool


class Builtins:
    """The first plugin of every process."""

    def __init__(self) -> None:
        self.builders: Mapping[AgentId, AgentBuilder] = {}
        """The agents whose tools can be asked for."""

    @hookimpl
    def register_agents(self, home: Path) -> Sequence[AgentHome]:
        return (AgentHome(id=DEFAULT_AGENT, home=home),)

    @hookimpl
    def register_tools(self, profile: AgentProfile) -> Sequence[Tool]:
        builder = self.builders.get(profile.id)
        return builder.tools() if builder else ()

    @hookimpl
    def register_commands(self) -> Sequence[SlashCommand]:
        return builtin_commands()
