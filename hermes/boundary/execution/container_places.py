"""Finds the folders and scripts of commands in a container, in the folders of this machine that are
mounted in the container."""

import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import anyio.to_thread

from hermes.boundary.execution.bubblewrap import HOME_INSIDE
from hermes.boundary.execution.command_place import ScriptFiles, VisibleFolder
from hermes.boundary.execution.local import folder_in
from hermes.types.errors import ToolFailed
from hermes.types.execution import SandboxScope, Script

UNKNOWN_FOLDERS = ("/dev", "/proc", "/run", "/sys", "/tmp", "/var/tmp")  # noqa: S108
"""Folders of a container that commands can change and that this machine does not see."""


class ContainerPlaces:
    """Implements `SandboxPlaces`. The files of the image can't change, because a container can't
    write them. So an approval covers the name of the image instead of their content."""

    def __init__(
        self,
        image: str,
        scope: SandboxScope,
        workspace: Path,
        visible: Sequence[VisibleFolder],
        prepare: Callable[[], None],
    ) -> None:
        """`visible` lists the folders of this machine that are mounted in the container. `prepare`
        creates the workspace."""
        self._image = image
        self._shown = Path(scope.workspace)
        self._workspace = workspace
        self._prepare = prepare
        self._files = ScriptFiles(str(HOME_INSIDE), visible, ())

    async def folder(self, workdir: str) -> str:
        return await anyio.to_thread.run_sync(self._folder, workdir)

    async def scripts(self, folder: str, names: Sequence[str]) -> tuple[Script, ...]:
        def read() -> tuple[Script, ...]:
            return tuple(self._script(folder, name) for name in names)

        return await anyio.to_thread.run_sync(read)

    def _folder(self, workdir: str) -> str:
        self._prepare()
        if Path(workdir).is_relative_to(self._shown):
            workdir = str(Path(workdir).relative_to(self._shown))
        found = folder_in(self._workspace, workdir)
        return str(self._shown / found.relative_to(self._workspace.resolve()))

    def _script(self, folder: str, name: str) -> Script:
        path = os.path.normpath(Path(folder, name))
        if self._files.folder_of(path) or name.startswith("~"):
            return self._files.find(folder, name)[0]
        if any(Path(path).is_relative_to(one) for one in UNKNOWN_FOLDERS):
            raise ToolFailed(
                f"The script {name!r} can't be approved in this folder: write it to the workspace."
            )
        return Script(path=path, digest=hashlib.sha256(self._image.encode()).hexdigest())
