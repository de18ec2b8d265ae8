"""The built-in features are registered through the same hooks as plugins."""

from pathlib import Path

from hermes.app.builtins import Builtins
from hermes.control.routing import DEFAULT_AGENT
from hermes.plugins import Plugins
from hermes.types.agents import AgentHome
from hermes.types.identity import AgentId
from hermes.types.profile import AgentProfile


def test_the_default_agent_lives_in_the_home_itself(tmp_path: Path) -> None:
    agents = Plugins([Builtins()]).agents(tmp_path)
    assert agents == [AgentHome(id=DEFAULT_AGENT, home=tmp_path)]


def test_the_commands_are_registered_by_a_hook() -> None:
    names = [command.name for command in Plugins([Builtins()]).commands()]
    assert {"stop", "new", "status", "model", "context", "sethome", "exit"} <= set(names)
    assert Plugins([]).commands() == []


def test_an_unknown_agent_gets_no_built_in_tools() -> None:
    assert Plugins([Builtins()]).tools(AgentProfile(id=AgentId("unknown"))) == []
