"""Commands that a process left running when it ended are ended and reported."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from msgspec.structs import replace

from hermes.core.tools.call import UNKNOWN_OUTCOME
from hermes.core.tools.terminal import terminal_tools
from hermes.testing.commands import FILES_ONLY, lives, no_process_left
from hermes.testing.platforms import ChatServer, PlainAdapter
from hermes.testing.running import QUIET, rows, running, until, until_rows
from hermes.testing.scripted import ScriptedModel, calls, first_results, says
from hermes.testing.stores import open_test_store
from hermes.testing.tools import Boom
from hermes.types.errors import ToolFailed
from hermes.types.execution import Sandbox, SandboxScope
from hermes.types.tools import Tool, ToolContext


class Elsewhere:
    """A backend that pretends to run commands on another machine, and records the handles that it
    must end."""

    isolation = "elsewhere"

    def __init__(self, error: Exception | None = None) -> None:
        self.ended: list[str] = []
        self._error = error

    async def open(self, scope: SandboxScope) -> Sandbox:
        return await FILES_ONLY.open(scope)

    async def end(self, handle: str) -> bool:
        self.ended.append(handle)
        if self._error:
            raise self._error
        return True


async def hang(context: ToolContext, arguments: Boom) -> str:
    await context.started("elsewhere:7")
    await anyio.sleep_forever()
    raise AssertionError


HANG = Tool(name="hang", description="Hang.", arguments=Boom, handler=hang)


@pytest.mark.parametrize(
    "error",
    [None, ToolFailed("out of reach"), OSError("out of reach"), KeyError("out of reach")],
    ids=lambda error: type(error).__name__,
)
async def test_a_command_is_ended_by_its_backend_even_if_another_backend_fails(
    tmp_path: Path, error: Exception | None, caplog: pytest.LogCaptureFixture
) -> None:
    server, backend = ChatServer(), Elsewhere(error)
    dying = ScriptedModel([calls(("hang", {}))])
    conditions = replace(QUIET, backend=backend, tools=(HANG,))
    async with running(tmp_path, [PlainAdapter(server)], dying, conditions) as gateway:
        server.says("work")
        written = [("elsewhere:7",)].__eq__
        await until_rows(gateway._store, "select handle from calls", written)
    assert backend.ended == []
    living = ScriptedModel([says("done")])
    async with running(tmp_path, [PlainAdapter(server)], living, conditions):
        await until(server.texts)
    assert backend.ended == ["elsewhere:7"]
    assert first_results(living) == [UNKNOWN_OUTCOME]
    assert ("may still be running" in caplog.text) == (error is not None)
    assert ("out of reach" in caplog.text) == (error is not None)


KILLED = """
import sys
from pathlib import Path
import anyio
from hermes.testing.platforms import ChatServer, PlainAdapter
from hermes.testing.running import running
from hermes.testing.scripted import ScriptedModel, calls

async def main():
    server = ChatServer()
    server.says("work")
    model = ScriptedModel([calls(("spawn", {}))])
    async with running(Path(sys.argv[1]), [PlainAdapter(server)], model):
        await anyio.sleep_forever()

anyio.run(main)
"""


@pytest.mark.slow
@pytest.mark.parametrize("witness", [True, False])
async def test_commands_of_a_killed_process_are_ended_and_reported(
    tmp_path: Path, witness: bool
) -> None:
    server, pid = ChatServer(), tmp_path / "workspace" / "pid"
    model = ScriptedModel([says("done")])
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)])
    try:
        await until(lambda: pid.exists() and pid.read_text(), within=20.0)
        group = int(pid.read_text())
        assert lives(group)
        if not witness:
            process.kill()
            process.wait()
        async with running(tmp_path, [PlainAdapter(server)], model) as gateway:
            if witness:
                assert not gateway.busy
                process.kill()
                process.wait()
            await until(server.texts)
            await until(lambda: not lives(group))
    finally:
        process.kill()
        process.wait()
    assert server.texts() == ["done"]
    assert first_results(model) == [UNKNOWN_OUTCOME]


HIDING = """
import sys
from pathlib import Path
import anyio
from msgspec.structs import replace
from hermes.core.tools.terminal import terminal_tools
from hermes.testing.platforms import ChatServer, PlainAdapter
from hermes.testing.running import QUIET, running
from hermes.testing.scripted import ScriptedModel, calls

HIDDEN = "env -i setsid bash -c 'echo $$ > pid; exec sleep 600' & sleep 600"

async def main():
    server = ChatServer()
    server.says("work")
    model = ScriptedModel([calls(("terminal", {"command": HIDDEN}))])
    conditions = replace(QUIET, tools=terminal_tools(600.0, "none"))
    async with running(Path(sys.argv[1]), [PlainAdapter(server)], model, conditions):
        await anyio.sleep_forever()

anyio.run(main)
"""


@pytest.mark.slow
async def test_a_restart_ends_a_process_that_left_its_session(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server, pid = ChatServer(), tmp_path / "workspace" / "pid"
    model = ScriptedModel([says("done")])
    commands = replace(QUIET, tools=terminal_tools(600.0, "none"))
    with no_process_left():
        with subprocess.Popen([sys.executable, "-c", HIDING, str(tmp_path)]) as process:
            await until(lambda: pid.exists() and pid.read_text(), within=20.0)
            async with open_test_store(tmp_path) as store:
                ((handle,),) = await rows(store, "select handle from calls")
            # The supervisor is stopped, so it does not notice that the gateway is killed.
            os.kill(int(str(handle).split(":")[5]), signal.SIGSTOP)
            process.kill()
        assert lives(int(pid.read_text()))
        async with running(tmp_path, [PlainAdapter(server)], model, commands):
            await until(server.texts)
        assert not lives(int(pid.read_text()))
    assert "had left running" in caplog.text
    assert first_results(model) == [UNKNOWN_OUTCOME]
