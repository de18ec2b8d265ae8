"""The execution backend that runs commands on another machine, with a server on this machine."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hermes.boundary.execution.sandbox_folders import sandbox_id
from hermes.boundary.execution.ssh import SshBackend
from hermes.control.routing import DEFAULT_AGENT
from hermes.testing.ssh_server import SshServer
from hermes.testing.tool_contract import SandboxToolsContract
from hermes.testing.turns import PRIVATE, a_turn
from hermes.types.execution import ExecutionBackend, SandboxScope


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
