"""The backend `local` runs commands on this machine, in the workspace."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hermes.boundary.execution.local import LOCAL_BACKEND, LocalBackend, folder_in
from hermes.core.tools.call import scope_of
from hermes.testing.commands import EMPTY_ENVIRONMENT, FILES_ONLY, local_backend
from hermes.testing.tool_contract import SandboxToolsContract
from hermes.testing.turns import a_turn
from hermes.types.errors import ToolFailed
from hermes.types.execution import BackendOptions, ExecutionBackend


class TestLocal(SandboxToolsContract):
    @asynccontextmanager
    async def machine(self, folder: Path) -> AsyncIterator[Callable[[], ExecutionBackend]]:
        (folder / "work").mkdir()
        made: list[LocalBackend] = []

        def make() -> LocalBackend:
            made.append(LocalBackend(folder / "processes", EMPTY_ENVIRONMENT))
            return made[-1]

        with local_backend(folder):
            yield make
            for backend in made:
                backend.close()

    def workspace(self, folder: Path) -> str:
        return str(folder / "work")


def test_a_command_begins_inside_the_workspace(tmp_path: Path) -> None:
    workspace = tmp_path / "work"
    (workspace / "inner").mkdir(parents=True)
    (workspace / "out").symlink_to(tmp_path)
    (workspace / "file").touch()
    assert folder_in(workspace, ".") == workspace
    assert folder_in(workspace, "inner") == workspace / "inner"
    assert folder_in(workspace, "inner/..") == workspace
    assert folder_in(workspace, str(workspace / "inner")) == workspace / "inner"
    for outside in ("..", "inner/../..", "/", str(tmp_path), "out", "../work2"):
        with pytest.raises(ToolFailed, match="is outside the workspace"):
            folder_in(workspace, outside)
    for missing in ("file", "missing"):
        with pytest.raises(ToolFailed, match="is not a folder"):
            folder_in(workspace, missing)


async def test_without_an_environment_only_commands_are_refused(
    tmp_path: Path,
) -> None:
    sandbox = await FILES_ONLY.open(scope_of(a_turn(workspace=tmp_path)))
    assert await sandbox.write("f", b"x")
    with pytest.raises(ToolFailed, match=r"the operator can set terminal\.backend"):
        await sandbox.start("touch ran")
    assert await sandbox.processes() == ()
    with pytest.raises(ToolFailed, match="not allowed"):
        await sandbox.process("x")
    assert [path.name for path in tmp_path.iterdir()] == ["f"]


def test_the_backend_is_created_from_its_manifest(tmp_path: Path) -> None:
    options = BackendOptions(processes=tmp_path, environment=EMPTY_ENVIRONMENT)
    made = LOCAL_BACKEND.make(options)
    assert isinstance(made, LocalBackend)
    assert (LOCAL_BACKEND.name, made.isolation) == ("local", "none")
    assert made.commands is not None
