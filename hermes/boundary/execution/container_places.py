"""Finds the folders and scripts that commands in a container use. They are in folders of this
machine that are mounted in the container."""

import hashlib
import os
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path

import anyio.to_thread
from msgspec.structs import replace

from hermes.boundary.execution.bubblewrap import HOME_INSIDE
from hermes.boundary.execution.command_place import PlaceCheck, ScriptFiles, VisibleFolder
from hermes.boundary.execution.local import folder_in
from hermes.boundary.execution.overlay import work_folders
from hermes.types.errors import ToolFailed
from hermes.types.execution import CommandPlace, SandboxScope, Script

UNKNOWN_FOLDERS = ("/dev", "/proc", "/run", "/sys", "/tmp", "/var/tmp")  # noqa: S108
"""Folders of a container that commands can change. Their content exists only in the container, so
Hermes can't read it on this machine."""


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
        hidden: Sequence[Path] = (),
    ) -> None:
        """`visible` lists the folders of this machine that are mounted in the container. `hidden`
        lists folders that commands can't see there. `prepare` creates the workspace."""
        self._image = image
        self._shown = Path(scope.workspace)
        self._workspace = workspace
        self._prepare = prepare
        self._visible = visible
        self._hidden = hidden

    @cached_property
    def _files(self) -> ScriptFiles:
        visible = [replace(one, real=one.real.resolve()) for one in self._visible]
        hidden = [one.resolve() for one in self._hidden]
        return ScriptFiles(str(HOME_INSIDE), visible, (), hidden)

    async def folder(self, workdir: str) -> str:
        return await anyio.to_thread.run_sync(self._folder, workdir)

    async def scripts(self, folder: str, names: Sequence[str]) -> tuple[Script, ...]:
        def read() -> tuple[Script, ...]:
            return tuple(self._script(folder, name) for name in names)

        return await anyio.to_thread.run_sync(read)

    async def copies(self, place: CommandPlace, folder: Path) -> tuple[tuple[Path, str], ...]:
        """Copies the approved scripts that are not part of the image into a folder of this machine.
        Returns each copy with the path of its script. Raises ToolFailed if a script is not the
        approved one."""

        def copied() -> tuple[tuple[Path, str], ...]:
            own = tuple(one for one in place.scripts if self._files.folder_of(one.path))
            check = PlaceCheck(place.backend, {}, self._files)
            return tuple(check.copies(replace(place, scripts=own), folder))

        return await anyio.to_thread.run_sync(copied)

    async def overlays(self, paths: Sequence[str], root: Path) -> dict[str, Path]:
        """Prepares an overlay for each folder that contains one of the paths: creates the work
        folder of the overlay in `root`. Maps each of these folders, as its path in the container,
        to the work folder."""

        def created() -> dict[str, Path]:
            found = work_folders(self._files.folders_of(paths), root)
            return {str(folder.shown): work for folder, work in found.items()}

        return await anyio.to_thread.run_sync(created)

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
