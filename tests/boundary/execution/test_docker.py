"""The execution backend that runs commands in containers, with podman."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hermes.testing.containers import WORKSPACE_INSIDE, ContainerStage
from hermes.testing.tool_contract import SandboxToolsContract
from hermes.types.execution import ExecutionBackend


class TestPodman(SandboxToolsContract):
    @pytest.fixture(autouse=True)
    def stage(self, containers: ContainerStage) -> None:
        self.containers = containers

    @asynccontextmanager
    async def machine(self, folder: Path) -> AsyncIterator[Callable[[], ExecutionBackend]]:
        with self.containers.empty(folder):
            yield lambda: self.containers.backend(folder)

    def workspace(self, folder: Path) -> str:
        return WORKSPACE_INSIDE
