"""Plugins are found, their results are in order, and conflicts between plugins are errors."""

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from hermes.hookspecs import hookimpl
from hermes.plugins import Plugins, check_plugins, installed_plugins
from hermes.testing.platforms import Update, to_event
from hermes.types.agents import AgentHome
from hermes.types.commands import CommandContext, CommandReply, SlashCommand
from hermes.types.errors import ConfigError
from hermes.types.identity import AgentId
from hermes.types.messages import MessageEvent
from hermes.types.store import Work

EVENT = to_event(Update(id=1, chat="1", user="7", text="hi"), "plain")


def command(name: str) -> SlashCommand:
    def action(command: CommandContext) -> Work[CommandReply]:
        yield from ()
        return CommandReply(reply=name)

    return SlashCommand(name=name, help="a test", action=action)


class Named:
    """A plugin that registers slash commands with these names, and selects `agent` for every
    message."""

    def __init__(self, *names: str, agent: str | None = None) -> None:
        self._names = names
        self._agent = AgentId(agent) if agent else None

    @hookimpl
    def register_commands(self) -> Sequence[SlashCommand]:
        return [command(name) for name in self._names]

    @hookimpl
    def select_agent(self, event: MessageEvent) -> AgentId | None:
        return self._agent


def test_registered_objects_have_the_order_of_the_plugins() -> None:
    plugins = Plugins([Named("a", "b"), Named("c")])
    assert [one.name for one in plugins.commands()] == ["a", "b", "c"]


def test_two_plugins_can_not_register_the_same_name() -> None:
    with pytest.raises(ConfigError, match="two plugins register the slash command 'a'"):
        Plugins([Named("a"), Named("b", "a")]).commands()


class Hosting:
    """A plugin that registers agents. `homes` maps the id of each agent to its home."""

    def __init__(self, **homes: Path) -> None:
        self._homes = homes

    @hookimpl
    def register_agents(self) -> Sequence[AgentHome]:
        return [AgentHome(id=AgentId(id), home=home) for id, home in self._homes.items()]


def test_two_agents_can_not_have_the_same_home(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "one")
    plugins = Plugins([Hosting(a=tmp_path / "one"), Hosting(b=tmp_path / "two" / ".." / "one")])
    with pytest.raises(ConfigError, match="'a' and 'b' have the same home"):
        plugins.agents(tmp_path)
    with pytest.raises(ConfigError, match="'a' and 'b' have the same home"):
        Plugins([Hosting(a=tmp_path / "one", b=tmp_path / "link")]).agents(tmp_path)
    apart = Plugins([Hosting(a=tmp_path / "one", b=tmp_path / "two")])
    assert [agent.id for agent in apart.agents(tmp_path)] == ["a", "b"]


def test_the_first_plugin_that_returns_an_agent_selects_it() -> None:
    assert Plugins([Named(), Named(agent="x")]).select_agent(EVENT) == "x"
    assert Plugins([Named()]).select_agent(EVENT) is None


def test_a_hook_that_does_not_exist_is_refused() -> None:
    class Misspelt:
        @hookimpl
        def register_tool(self) -> Sequence[object]:
            return ()

    with pytest.raises(ConfigError, match="'register_tool'"):
        Plugins([Misspelt()])


def installed(folder: Path, name: str, body: str) -> None:
    """Creates an installed package with a plugin."""
    (folder / f"{name}.py").write_text(body)
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[hermes.plugins]\n{name} = {name}\n")


def test_the_plugin_of_an_installed_package_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tmp_path, "found_plugin", "ANSWER = 42\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = installed_plugins()
    assert sys.modules["found_plugin"] in found


def test_the_error_names_a_plugin_that_can_not_be_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tmp_path, "broken_plugin", "raise ImportError('no such thing')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ConfigError, match=r"'broken_plugin' of broken_plugin .*no such thing"):
        installed_plugins()


def test_the_check_lists_the_plugins_and_those_that_can_not_be_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    installed(tmp_path, "torn_plugin", "raise ImportError('no such thing')\n")
    installed(tmp_path, "sound_plugin", "ANSWER = 42\n")
    unknown = "from hermes import hookimpl\n@hookimpl\ndef register_tool(): ...\n"
    installed(tmp_path, "unknown_plugin", unknown)
    first, *failed = check_plugins()
    assert (first.level, "sound_plugin" in first.text) == ("ok", True)
    assert [one.level for one in failed] == ["error", "error"]
    texts = " ".join(one.text for one in failed)
    assert "torn_plugin" in texts
    assert "register_tool" in texts


def test_the_check_without_plugins_is_ok(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    (found,) = check_plugins()
    assert (found.level, found.text) == ("ok", "no plugins are installed")
