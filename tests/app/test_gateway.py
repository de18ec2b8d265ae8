"""A gateway can be opened with plugins and several agents. Invalid settings are refused."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from hermes.app.builtins import all_plugins
from hermes.app.gateway import (
    GatewayOverrides,
    agent_settings,
    all_commands,
    delete_session_files,
    open_gateway,
)
from hermes.boundary.execution.local import LocalBackend
from hermes.boundary.execution.sandbox import SandboxBackend
from hermes.hookspecs import hookimpl
from hermes.settings import load
from hermes.state.paths import STORE_NAME, Home, file_name
from hermes.testing.platforms import ChatServer, PlainAdapter
from hermes.testing.running import QUIET, running, until
from hermes.testing.scripted import ScriptedModel, says
from hermes.testing.tools import TEST_TOOLS
from hermes.types.agents import AgentHome
from hermes.types.errors import ConfigError
from hermes.types.execution import BackendOptions
from hermes.types.identity import AgentId
from hermes.types.tools import AnyTool


class Clashing:
    @hookimpl
    def register_agents(self, home: Path) -> list[AgentHome]:
        return [AgentHome(id=AgentId("main"), home=home / "elsewhere")]


class Toolmaker:
    @hookimpl
    def register_tools(self) -> list[AnyTool]:
        return [TEST_TOOLS[0]]


async def test_two_agents_with_the_same_name_are_refused_before_the_store_is_opened(
    tmp_path: Path,
) -> None:
    with pytest.raises(ConfigError, match="two plugins register the agent 'main'"):
        async with open_gateway(load(tmp_path, {}), GatewayOverrides(plugins=[Clashing()])):
            pass
    assert not (tmp_path / STORE_NAME).exists()


async def test_the_tools_of_a_plugin_are_offered_together_with_the_built_in_tools(
    tmp_path: Path,
) -> None:
    server, model = ChatServer(), ScriptedModel([says("hello")])
    conditions = replace(QUIET, tools=None, plugins=(Toolmaker(),))
    async with running(tmp_path, [PlainAdapter(server)], model, conditions):
        server.says("hi")
        await until(server.texts)
    offered = [tool.name for tool in model.requests[0].tools]
    assert {TEST_TOOLS[0].name, "read_file", "todo"} <= set(offered)


class SecondAgent:
    @hookimpl
    def register_agents(self, home: Path) -> list[AgentHome]:
        return [AgentHome(id=AgentId("second"), home=home / "second")]


def test_an_agent_does_not_see_the_secrets_of_another_agent(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("OPENAI_API_KEY=sk-of-the-gateway\n")
    (tmp_path / "second").mkdir()
    (tmp_path / "second" / ".env").write_text("GROQ_API_KEY=gsk-of-the-second\n")
    plugins = all_plugins(added=[SecondAgent()])
    found = agent_settings(load(tmp_path, {"LANG": "C"}), plugins)
    first, second = found[AgentId("main")], found[AgentId("second")]
    assert "sk-of-the-gateway" in first.secrets()
    assert "gsk-of-the-second" not in first.secrets()
    assert "sk-of-the-gateway" not in second.sources.environ.values()
    assert second.sources.environ["LANG"] == "C"


@pytest.mark.parametrize(("agent", "folder"), [("main", "."), ("second", "second")])
def test_the_files_of_a_deleted_session_are_deleted_in_the_home_of_its_agent(
    tmp_path: Path, agent: str, folder: str
) -> None:
    session = f"agent:{agent}:cli:private:1"
    homes = [Home(root=tmp_path), Home(root=tmp_path / "second")]
    kept = [home.spill / file_name(session) / "t_0_0" for home in homes]
    sandboxes = [home.sandboxes / "sandbox" / file_name(session) for home in homes]
    for path in sandboxes:
        path.mkdir(parents=True)
    for path in kept:
        path.parent.mkdir(parents=True)
        path.write_text("a long result")
    delete_session_files(load(tmp_path, {}), all_plugins(added=[SecondAgent()]), session)
    own = Home(root=tmp_path / folder).spill / file_name(session)
    assert [path.exists() for path in kept] == [path.parent != own for path in kept]
    assert [path.exists() for path in sandboxes] == [path.exists() for path in kept]


def test_every_agent_has_its_own_part_of_the_shared_folder(tmp_path: Path) -> None:
    home, shared = tmp_path / "home", tmp_path / "shared"
    (home / "second").mkdir(parents=True, mode=0o700)
    environ = {"HERMES_STORE_SHARED_FOLDER": str(shared)}
    found = agent_settings(load(home, environ), all_plugins(added=[SecondAgent()]))
    first, second = found[AgentId("main")], found[AgentId("second")]
    assert (first.files.root, first.workspace) == (shared, shared / "workspace")
    own = shared / "profiles" / "second"
    assert (second.files.root, second.workspace) == (own, own / "workspace")


async def test_a_shared_folder_holds_all_files_of_the_agent(tmp_path: Path) -> None:
    home, shared = tmp_path / "home", tmp_path / "shared"
    home.mkdir(mode=0o700)
    shared.mkdir(mode=0o700)
    settings = load(home, {"HERMES_STORE_SHARED_FOLDER": str(shared), "HERMES_MODEL": "m"})
    async with open_gateway(settings, GatewayOverrides(model=ScriptedModel([]))) as gateway:
        await gateway.media.keep(b"picture", stateless=False)
        (agent,) = gateway._agents.values()
        profile = agent.profile
        assert (profile.home, profile.workspace) == (str(shared), str(shared / "workspace"))
    assert {"folder.id", "media", "workspace"} <= {path.name for path in shared.iterdir()}
    assert not (home / "media").exists()


async def test_a_workspace_outside_of_the_shared_folder_is_refused(tmp_path: Path) -> None:
    home, shared = tmp_path / "home", tmp_path / "shared"
    home.mkdir(mode=0o700)
    shared.mkdir(mode=0o700)
    environ = {"HERMES_STORE_SHARED_FOLDER": str(shared), "HERMES_WORKSPACE": str(tmp_path)}
    with pytest.raises(ConfigError, match=r"workspace .* is outside of store\.shared_folder"):
        async with open_gateway(load(home, environ), GatewayOverrides(model=ScriptedModel([]))):
            pass


def test_files_of_an_agent_that_is_not_hosted_are_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    delete_session_files(load(tmp_path, {}), all_plugins(), "agent:gone:cli:private:1")
    assert "the agent gone is not hosted here" in caplog.text


def test_every_command_is_listed_with_its_help() -> None:
    names = [command.name for command in all_commands()]
    assert {"stop", "new", "status", "model", "context", "sethome", "exit", "help"} <= {*names}


async def test_a_sandbox_that_does_not_work_is_reported_at_the_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    backend = SandboxBackend(BackendOptions(processes=tmp_path, environment={}), None)
    overrides = GatewayOverrides(model=ScriptedModel([]), backend=backend)
    async with open_gateway(load(tmp_path, {"HERMES_MODEL": "m"}), overrides):
        pass
    assert "agent main: Commands are refused, because no sandbox works" in caplog.text
    caplog.clear()
    overrides = GatewayOverrides(model=ScriptedModel([]), backend=LocalBackend(tmp_path, {}))
    async with open_gateway(load(tmp_path, {"HERMES_MODEL": "m"}), overrides):
        pass
    assert "agent main runs commands on this machine with the rights of the gateway" in caplog.text
