"""The execution backend that isolates commands, at each level that this machine offers."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from hermes.boundary.execution.levels import Level
from hermes.boundary.execution.sandbox import SandboxBackend
from hermes.testing.commands import EMPTY_ENVIRONMENT, sandbox_backend
from hermes.testing.tool_contract import SandboxToolsContract
from hermes.types.execution import BackendOptions, ExecutionBackend


class LevelContract(SandboxToolsContract):
    level: Level

    @asynccontextmanager
    async def machine(self, folder: Path) -> AsyncIterator[Callable[[], ExecutionBackend]]:
        (folder / "work").mkdir()
        made: list[SandboxBackend] = []
        options = BackendOptions(
            processes=folder / "processes",
            environment=EMPTY_ENVIRONMENT,
            sandboxes=folder / "sandboxes",
        )

        def make() -> SandboxBackend:
            made.append(SandboxBackend(options, self.level))
            return made[-1]

        with sandbox_backend(folder, self.level):
            yield make
            for backend in made:
                backend.close()

    def workspace(self, folder: Path) -> str:
        return str(folder / "work")


class TestBubblewrap(LevelContract):
    level = "bubblewrap"


class TestLandlock(LevelContract):
    level = "landlock"
