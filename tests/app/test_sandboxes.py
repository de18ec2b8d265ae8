"""A person can open a shell in the sandbox of any agent in a home."""

from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from hermes.app.sandboxes import AgentSandboxes, open_sandboxes
from hermes.boundary.execution.sandbox import SandboxBackend
from hermes.settings import load
from hermes.testing.commands import EMPTY_ENVIRONMENT
from hermes.testing.sandbox_contract import run
from hermes.types.errors import ConfigError
from hermes.types.execution import BackendOptions, SandboxScope
from hermes.types.identity import AgentId, SessionKey

MAIN, OTHER = AgentId("main"), AgentId("other")


def session_of(agent: AgentId, chat: str) -> SessionKey:
    return SessionKey(agent=agent, platform="cli", kind="private", chat=chat)


async def test_a_shell_has_the_files_of_the_conversation(tmp_path: Path) -> None:
    settings = load(tmp_path, {})
    options = BackendOptions(
        processes=tmp_path / "processes",
        environment=EMPTY_ENVIRONMENT,
        sandboxes=tmp_path / "sandboxes",
        own_workspaces=True,
    )
    backend = SandboxBackend(options, "bubblewrap")
    sandboxes = AgentSandboxes({MAIN: settings}, {MAIN: backend})
    key = session_of(MAIN, "trip")
    scope = SandboxScope(
        agent=MAIN, session=key, workspace=str(settings.workspace), home=str(tmp_path)
    )
    assert (await run(await backend.open(scope), "echo kept > note; echo t > /tmp/t")).code == 0
    (found,) = await sandboxes.listed()
    assert (found.session, found.agent) == (str(key), MAIN)
    command = await sandboxes.shell(key, None)
    done = await anyio.run_process(command, input=b"cat note /tmp/t; exit 5\n", check=False)
    assert (done.returncode, done.stdout) == (5, b"kept\nt\n")
    assert await sandboxes.reset(found)
    assert await sandboxes.listed() == []
    assert not await sandboxes.reset(found)
    done = await anyio.run_process(await sandboxes.shell(key, None), input=b"ls -A\n", check=False)
    assert done.stdout == b""
    await backend.aclose()


async def test_an_agent_without_commands_has_no_sandbox(tmp_path: Path) -> None:
    async with open_sandboxes(load(tmp_path, {"TERMINAL_ENV": "none"})) as sandboxes:
        assert await sandboxes.listed() == []
        with pytest.raises(ConfigError, match=r"set terminal\.backend"):
            await sandboxes.shell(session_of(MAIN, "trip"), None)
        with pytest.raises(ConfigError, match="this home has no agent 'other'"):
            await sandboxes.shell(session_of(OTHER, "trip"), None)


async def test_a_backend_without_sandboxes_can_open_a_shell(tmp_path: Path) -> None:
    async with open_sandboxes(load(tmp_path, {"TERMINAL_ENV": "local"})) as sandboxes:
        assert await sandboxes.listed() == []
        assert (await sandboxes.shell(session_of(MAIN, "trip"), None))[-1] == "-i"


async def test_a_shell_of_a_terminal_conversation_has_the_files_of_its_directory(
    tmp_path: Path,
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "note").write_text("kept")
    settings = replace(load(tmp_path / "home", {}), workspace=project)
    async with open_sandboxes(settings) as sandboxes:
        command = await sandboxes.shell(session_of(MAIN, "trip"), None)
        done = await anyio.run_process(command, input=b"cat note; pwd\n", check=False)
        assert done.stdout.decode() == f"kept{project}\n"
        (found,) = await sandboxes.listed()
    assert found.workspace == str(project)
