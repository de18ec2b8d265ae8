"""The built-in features of Hermes, registered through the same hooks as the features of plugins."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from hermes.boundary.execution.daytona_cloud import DAYTONA_BACKEND
from hermes.boundary.execution.docker import DOCKER_BACKEND
from hermes.boundary.execution.local import LOCAL_BACKEND
from hermes.boundary.execution.modal_cloud import MODAL_BACKEND
from hermes.boundary.execution.sandbox import SANDBOX_BACKEND
from hermes.boundary.execution.singularity import SINGULARITY_BACKEND
from hermes.boundary.execution.ssh import SSH_BACKEND
from hermes.control.builtin_commands import builtin_commands
from hermes.control.routing import DEFAULT_AGENT
from hermes.core.models.registry import ModelRegistry
from hermes.core.models.resolver import ConfiguredModels
from hermes.core.models.wires import builtin_wire_formats
from hermes.entry.cli.local_commands import terminal_commands
from hermes.entry.platforms.matrix.manifest import MATRIX
from hermes.entry.platforms.telegram.manifest import TELEGRAM
from hermes.hookspecs import hookimpl
from hermes.plugins import Plugins, installed_plugins
from hermes.settings.models import model_config
from hermes.types.agents import AgentHome
from hermes.types.commands import SlashCommand
from hermes.types.execution import BackendManifest
from hermes.types.identity import AgentId
from hermes.types.models import WireFormat
from hermes.types.platforms import AnyPlatform
from hermes.types.profile import AgentProfile
from hermes.types.tools import AnyTool

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    # `hermes.app.agent` is slow to import, and commands such as `hermes model` do not need it.
    from hermes.app.agent import AgentBuilder
    from hermes.settings import Settings


class Builtins:
    """The plugin that registers the built-in features. It is the first plugin of every process."""

    def __init__(self) -> None:
        self.builders: Mapping[AgentId, AgentBuilder] = {}
        """The builder of each agent. `register_tools` gets the agent's tools from it."""

    @hookimpl
    def register_agents(self, home: Path) -> Sequence[AgentHome]:
        return (AgentHome(id=DEFAULT_AGENT, home=home),)

    @hookimpl
    def register_platforms(self) -> Sequence[AnyPlatform]:
        return (MATRIX, TELEGRAM)

    @hookimpl
    def register_tools(self, profile: AgentProfile) -> Sequence[AnyTool]:
        builder = self.builders.get(profile.id)
        return builder.tools() if builder else ()

    @hookimpl
    def register_backends(self) -> Sequence[BackendManifest]:
        return (
            *(SANDBOX_BACKEND, DOCKER_BACKEND, SINGULARITY_BACKEND, SSH_BACKEND, LOCAL_BACKEND),
            *(MODAL_BACKEND, DAYTONA_BACKEND),
        )

    @hookimpl
    def register_models(self) -> Sequence[WireFormat]:
        return builtin_wire_formats()

    @hookimpl
    def register_commands(self) -> Sequence[SlashCommand]:
        return (*builtin_commands(), *terminal_commands())


def all_plugins(builtins: Builtins | None = None, added: Sequence[object] = ()) -> Plugins:
    """Returns the built-in features, the plugins of installed packages and the added plugins."""
    return Plugins([builtins or Builtins(), *_installed(), *added])


@cache
def _installed() -> tuple[object, ...]:
    """Returns the plugins of installed packages. Each process searches for them only once, because
    the search reads a file of every installed package."""
    return tuple(installed_plugins())


def configured_models(settings: Settings, plugins: Plugins) -> ConfiguredModels:
    """Returns the models that the settings name, with the wire formats and providers of plugins."""
    return ConfiguredModels(model_config(settings), ModelRegistry.of(plugins.models()))
