"""Loads plugins and collects the objects that they register."""

from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TypeVar

import pluggy

from hermes import hookspecs
from hermes.hookspecs import ENTRY_POINT_GROUP, PROJECT
from hermes.types.agents import AgentHome
from hermes.types.checks import Check
from hermes.types.commands import SlashCommand
from hermes.types.errors import ConfigError
from hermes.types.execution import BackendManifest
from hermes.types.identity import AgentId
from hermes.types.messages import MessageEvent
from hermes.types.models import WireFormat
from hermes.types.platforms import AnyPlatform
from hermes.types.profile import AgentProfile
from hermes.types.providers import Provider
from hermes.types.tools import AnyTool

T = TypeVar("T")


class Plugins:
    """The plugins of one process. The registered objects are in the order in which the plugins were
    passed in."""

    def __init__(self, plugins: Iterable[object]) -> None:
        self._manager = pluggy.PluginManager(PROJECT)
        self._manager.add_hookspecs(hookspecs)
        for plugin in plugins:
            self._manager.register(plugin)
        try:
            self._manager.check_pending()
        except pluggy.PluginValidationError as error:
            raise ConfigError(
                f"a plugin uses an unknown hook ({error}): update or uninstall it"
            ) from error
        self._hook = self._manager.hook

    def agents(self, home: Path) -> list[AgentHome]:
        found: list[AgentHome] = _joined(self._hook.register_agents(home=home))
        owners: dict[Path, AgentId] = {}
        for agent in _unique("agent", found, lambda agent: agent.id):
            owner = owners.setdefault(agent.home.resolve(), agent.id)
            if owner != agent.id:
                raise ConfigError(
                    f"the agents {owner!r} and {agent.id!r} have the same home, {agent.home}:"
                    " give each agent its own home, because its memory and files are stored there"
                )
        return found

    def platforms(self) -> list[AnyPlatform]:
        found: list[AnyPlatform] = _joined(self._hook.register_platforms())
        return _unique("platform", found, lambda platform: platform.name)

    def tools(self, profile: AgentProfile) -> list[AnyTool]:
        found = _joined(self._hook.register_tools(profile=profile))
        return _unique("tool", found, lambda tool: tool.name)

    def backends(self) -> list[BackendManifest]:
        found = _joined(self._hook.register_backends())
        return _unique("execution backend", found, lambda manifest: manifest.name)

    def models(self) -> list[WireFormat | Provider]:
        return _joined(self._hook.register_models())

    def commands(self) -> list[SlashCommand]:
        found = _joined(self._hook.register_commands())
        return _unique("slash command", found, lambda command: command.name)

    def select_agent(self, event: MessageEvent) -> AgentId | None:
        hook = self._hook.select_agent
        # If no plugin selects agents, the call through pluggy is skipped, which saves time.
        selected: AgentId | None = hook(event=event) if hook.get_hookimpls() else None
        return selected


def installed_plugins() -> list[object]:
    """Loads the plugins of installed packages. Raises ConfigError if a plugin can't be loaded."""
    return [_loaded(point) for point in entry_points(group=ENTRY_POINT_GROUP)]


def check_plugins() -> list[Check]:
    """Loads the plugins of installed packages. Returns one line for each plugin that can't be
    loaded, and one line with the names of the loaded plugins."""
    names, failed = [], []
    for point in entry_points(group=ENTRY_POINT_GROUP):
        try:
            Plugins([_loaded(point)])
        except ConfigError as error:
            failed.append(Check(name="plugins", level="error", text=str(error)))
        else:
            names.append(point.name)
    if failed and not names:
        return failed
    text = ", ".join(names) or "no plugins are installed"
    return [Check(name="plugins", level="ok", text=text), *failed]


def _loaded(point: EntryPoint) -> object:
    try:
        plugin: object = point.load()
    except Exception as error:
        package = point.dist.name if point.dist else point.value
        raise ConfigError(
            f"the plugin {point.name!r} of {package} can't be loaded ({error!r}): repair or"
            " uninstall that package"
        ) from error
    return plugin


def _joined(results: list[Sequence[T]]) -> list[T]:
    # pluggy returns the results of the last registered plugin first, so the list is reversed.
    return [item for result in reversed(results) for item in result]


def _unique(what: str, items: list[T], name_of: Callable[[T], str]) -> list[T]:
    """Returns the items. Raises ConfigError if two of them have the same name."""
    names = [name_of(item) for item in items]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"two plugins register the {what} {name!r}: uninstall one of them")
    return items
