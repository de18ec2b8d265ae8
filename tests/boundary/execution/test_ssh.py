"""Tests the execution backend that runs commands on another machine. An SSH server on this machine
stands in for the other machine."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from hermes.boundary.execution.sandbox_folders import sandbox_id
from hermes.boundary.execution.ssh import SshBackend
from hermes.control.routing import DEFAULT_AGENT
from hermes.testing.commands import lives
from hermes.testing.machine_contract import (
    appears,
    check_killed_gateway,
    check_race,
    marked_processes,
    output_of,
    private_scope,
)
from hermes.testing.running import until
from hermes.testing.sandbox_contract import RecordedCommand
from hermes.testing.ssh_server import SshServer, ssh_server
from hermes.testing.tool_contract import SandboxToolsContract
from hermes.testing.turns import PRIVATE, a_turn
from hermes.types.errors import ToolFailed
from hermes.types.execution import BackendOptions, ExecutionBackend, SandboxScope
from hermes.types.execution_clients import ClientOptions, SshOptions


class TestSsh(SandboxToolsContract):
    @pytest.fixture(autouse=True)
    def stage(self, server: SshServer) -> None:
        self.server = server

    @asynccontextmanager
    async def machine(self, folder: Path) -> AsyncIterator[Callable[[], ExecutionBackend]]:
        made: list[SshBackend] = []

        def make() -> SshBackend:
            made.append(self.server.backend(folder))
            return made[-1]

        with self.server.empty(folder):
            yield make
            for backend in made:
                await backend.aclose()

    def workspace(self, folder: Path) -> str:
        session = a_turn(source=PRIVATE).session
        scope = SandboxScope(agent=DEFAULT_AGENT, session=session, workspace="")
        return str(self.server.workspaces / sandbox_id(scope, "session"))


@pytest.fixture
async def backend(server: SshServer, tmp_path: Path) -> AsyncIterator[SshBackend]:
    backend = server.backend(tmp_path)
    with server.empty(tmp_path):
        yield backend
        await backend.aclose()


async def test_a_killed_gateway_leaves_no_command_running(
    server: SshServer, backend: SshBackend, tmp_path: Path
) -> None:
    await check_killed_gateway(server.options(tmp_path), backend, "/srv/project")


async def test_file_tools_win_the_race_against_links(backend: SshBackend, tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    sandbox = await backend.open(private_scope("/srv/project"))
    await check_race(sandbox, anyio.Path(tmp_path / "secret"), 20)


async def test_a_process_that_leaves_its_session_and_clears_its_environment_is_ended(
    backend: SshBackend,
) -> None:
    sandbox = await backend.open(private_scope("/srv/project"))
    hiding = "(env -i setsid sh -c 'echo $$ > pid; exec sleep 600' >/dev/null 2>&1 &) ; sleep 0.5"
    outcome = await sandbox.run(hiding, RecordedCommand(), seconds=30.0)
    assert (outcome.code, outcome.left) == (0, 1)
    assert not lives(int(await sandbox.read("pid")))


async def test_secrets_are_in_no_command_line_and_in_no_log(
    server: SshServer, backend: SshBackend
) -> None:
    sandbox = await backend.open(private_scope("/srv/project"))
    process = await sandbox.start("echo token $GITHUB_TOKEN; echo > begun; read word; exit 5")
    await appears(sandbox, "begun")
    lines = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert not any(server.secret.encode() in line for line in lines)
    await process.write(b"on\n")
    assert (await process.wait(20.0)).code == 5
    assert (await process.output()).data == b"token [redacted]\n"


async def test_a_lost_connection_fails_the_command_and_ends_it(tmp_path: Path) -> None:
    (tmp_path / "server").mkdir()
    server = ssh_server(tmp_path / "server")
    server.start()
    backend = server.backend(tmp_path)
    try:
        sandbox = await backend.open(private_scope("/srv/project"))
        async with anyio.create_task_group() as group:

            async def run() -> None:
                with pytest.raises(ToolFailed, match=r"127\.0\.0\.1.* does not work"):
                    await sandbox.run("echo > begun; sleep 600", observer, seconds=600.0)

            observer = RecordedCommand()
            group.start_soon(run)
            await appears(sandbox, "begun")
            server.drop()
        mark = observer.handles[0].rpartition(":")[2]
        await until(lambda: not marked_processes(mark), within=60.0)
        server.stop()
        for call in (sandbox.read("begun"), output_of(sandbox, "echo > ran")):
            with pytest.raises(ToolFailed, match="Commands never run on this machine"):
                await call
        assert not await backend.end(observer.handles[0])
        (found,) = await backend.check()
        assert found.level == "error"
    finally:
        server.stop()
        await backend.aclose()


async def test_sandboxes_are_listed_and_reset(
    server: SshServer, backend: SshBackend, tmp_path: Path
) -> None:
    scope = private_scope("/srv/project")
    sandbox = await backend.open(scope)
    await sandbox.write("f", b"x")
    process = await sandbox.start("sleep 600")
    (known,) = await backend.sandboxes()
    assert known.session == str(scope.session)
    assert str(server.workspaces / known.id) in (await sandbox.shell())[-1]
    assert not await backend.reset("../x")
    assert not await backend.reset("unknown")
    assert await backend.reset(known.id)
    assert not (await process.status()).running
    assert await backend.sandboxes() == []
    assert not (server.workspaces / known.id).exists()
    await sandbox.write("f", b"x")
    await backend.discard(scope)
    assert not (server.workspaces / known.id).exists()


async def test_the_backend_says_where_commands_run(backend: SshBackend) -> None:
    (works,) = await backend.check()
    assert works.level == "ok"
    assert "127.0.0.1" in works.text
    assert "not isolated" in backend.isolation
    assert await backend.close_idle(3600.0) == 0
    assert await backend.close_idle(0.0) == 1
    assert await backend.close_idle(0.0) == 0


async def test_without_a_host_commands_are_refused(tmp_path: Path) -> None:
    options = BackendOptions(processes=tmp_path / "processes", environment={})
    for host in ("", "-oProxyCommand=x"):
        ssh = SshOptions(host=host)
        backend = SshBackend(replace(options, clients=ClientOptions(ssh=ssh)))
        (found,) = await backend.check()
        assert (found.level, "ssh_host" in found.text) == ("error", True)
