"""The `singularity` backend: runs each command in a container of Apptainer or Singularity."""

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread

from hermes.boundary.execution.bubblewrap import HOME_INSIDE
from hermes.boundary.execution.client_sandbox import variables_elsewhere
from hermes.boundary.execution.command_place import PlaceCheck, ScriptFiles, VisibleFolder
from hermes.boundary.execution.container import ContainerFolders
from hermes.boundary.execution.handles import end_handle
from hermes.boundary.execution.launch import CommandLaunch, Restrictions
from hermes.boundary.execution.local import LocalCommands, LocalSandbox
from hermes.boundary.execution.sandbox_folders import (
    SandboxFolder,
    delete_sandbox,
    known_sandboxes,
    sandbox_id,
)
from hermes.types.errors import ToolFailed
from hermes.types.execution import (
    BackendFinding,
    BackendManifest,
    BackendOptions,
    CommandPlace,
    SandboxInfo,
    SandboxScope,
)

SINGULARITY_NAME = "singularity"
SINGULARITY_PROGRAMS = ("apptainer", "singularity")
SINGULARITY_ADVICE = (
    "Install Apptainer (`apt install apptainer`), or set terminal.backend to another backend."
)
NO_NETWORK_ADVICE = "Set terminal.network to none, or terminal.backend to sandbox or docker."
_SHELL = 'command -v bash >/dev/null && exec bash "$@"; exec sh "$@"'


class SingularityBackend:
    """Runs each command in a container of its own, which ends with the command."""

    def __init__(self, options: BackendOptions) -> None:
        sandboxes = options.sandboxes or options.processes.parent / "sandboxes"
        path = options.clients.environment.get("PATH")
        found = (shutil.which(name, path=path) for name in SINGULARITY_PROGRAMS)
        self._options = options
        self._folders = sandboxes / SINGULARITY_NAME
        self._program = next(filter(None, found), None)
        self._commands = LocalCommands(options.processes, options.environment)

    @property
    def isolation(self) -> str:
        return "a container with a read-only system, without privileges; no network"

    async def check(self) -> Sequence[BackendFinding]:
        if self._program is None:
            text = f"Commands are refused: {' and '.join(SINGULARITY_PROGRAMS)} are not installed."
            return (BackendFinding(level="error", text=text, hint=SINGULARITY_ADVICE),)
        if self._options.network.mode != "none":
            text = "Commands are refused: containers of Apptainer have no network."
            return (BackendFinding(level="error", text=text, hint=NO_NETWORK_ADVICE),)
        image = self._options.clients.containers.singularity_image
        if "://" not in image and not await anyio.Path(image).exists():
            text = f"Commands are refused: the image {image!r} does not exist."
            hint = "Set terminal.singularity_image to a file or an address."
            return (BackendFinding(level="error", text=text, hint=hint),)
        text = f"Commands run in containers of {image} ({self._program})."
        return (BackendFinding(level="ok", text=text),)

    async def open(self, scope: SandboxScope) -> LocalSandbox:
        owned = self._options.own_workspaces and self._options.sharing != "agent"
        chosen = "" if owned else scope.workspace
        own = SandboxFolder(self._folders, scope, self._options.sharing, chosen)
        workspace = own.workspace if owned else Path(scope.workspace)
        folders = ContainerFolders(own, workspace)
        launcher = ContainerLauncher(self._options, self._program, scope, own, workspace)
        return LocalSandbox(
            scope,
            self._commands,
            launcher,
            workspace,
            prepare=folders.ensure,
            owner=folders.new_files_owner,
        )

    async def end(self, handle: str) -> bool:
        return await anyio.to_thread.run_sync(end_handle, handle)

    async def sandboxes(self) -> Sequence[SandboxInfo]:
        found = await anyio.to_thread.run_sync(lambda: list(known_sandboxes(self._folders)))
        return sorted(found, key=lambda one: one.used_at, reverse=True)

    async def reset(self, id: str) -> bool:
        await self._commands.background.kill_in(id)
        return await anyio.to_thread.run_sync(delete_sandbox, self._folders, id)

    async def discard(self, scope: SandboxScope) -> None:
        if self._options.sharing == "session":
            id = sandbox_id(scope, "session")
            await anyio.to_thread.run_sync(delete_sandbox, self._folders, id)

    async def close_idle(self, seconds: float) -> int:
        """Does nothing, because nothing runs in a sandbox between two commands."""
        return 0

    async def aclose(self) -> None:
        """Ends the fork server."""
        self._commands.foreground.close()


class ContainerLauncher:
    """Starts the commands of one session, each in a container of its own."""

    def __init__(
        self,
        options: BackendOptions,
        program: str | None,
        scope: SandboxScope,
        own: SandboxFolder,
        workspace: Path,
    ) -> None:
        self._options = options
        self._program = program
        self._shown = Path(scope.workspace)
        self._own = own
        self._workspace = workspace
        self._folders = ContainerFolders(own, workspace)

    def locate(self, folder: Path, scripts: Sequence[str]) -> CommandPlace:
        return self._place_check().locate(str(self._inside(folder)), scripts)

    def launch(
        self, command: str, folder: Path, *, background: bool, place: CommandPlace | None = None
    ) -> CommandLaunch:
        inside = self._inside(folder)
        check: Callable[[], None] = lambda: None  # noqa: E731
        if place is not None:
            check = partial(self._place_check().check, place, str(inside))
        private = (self._workspace, self._own.temporary, self._own.home)
        return CommandLaunch(
            arguments=self._arguments(inside, "sh", "-c", _SHELL, "sh", "-c", command),
            environment=self._environment(self._variables()),
            folder=folder,
            restrictions=Restrictions(
                limits=self._options.limits, folders=tuple(str(one) for one in private)
            ),
            sandbox=self._own.id,
            secrets=tuple(self._options.secrets.values()),
            check=check,
        )

    def shell(self) -> tuple[str, ...]:
        # Everybody on the machine can read the arguments of a process, so secrets are left out.
        visible = variables_elsewhere(self._options.environment)
        given = [f"{name}={value}" for name, value in self._environment(visible).items()]
        inner = self._arguments(self._shown, "sh", "-c", _SHELL, "sh", "-i")
        return ("/usr/bin/env", "-i", *given, *inner)

    def _arguments(self, inside: Path, *command: str) -> tuple[str, ...]:
        if self._program is None:
            raise ToolFailed(f"Commands can't run here. {SINGULARITY_ADVICE}")
        if self._options.network.mode != "none":
            raise ToolFailed(f"Commands can't have a network here. {NO_NETWORK_ADVICE}")
        self._folders.ensure()
        user, own = self._folders.user(), self._own
        shown = (
            (self._workspace.resolve(), str(self._shown), True),
            (own.temporary.resolve(), "/tmp", True),  # noqa: S108  # inside the container
            *((one.path, one.path, one.writable) for one in self._options.mounts),
        )
        bound = (
            argument
            for path, place, writable in shown
            for argument in ("--bind", f"{path}:{place}:{'rw' if writable else 'ro'}")
        )
        # Only root can choose the user. Otherwise the command runs as the user of the gateway.
        chosen = ("--security", f"uid:{user}", "--security", f"gid:{user}")
        return (
            *(self._program, "--silent", "exec", "--containall", "--cleanenv", "--no-privs"),
            *("--net", "--network", "none", "--hostname", "sandbox"),
            *(chosen if os.geteuid() == 0 else ()),
            *("--home", f"{own.home.resolve()}:{HOME_INSIDE}", *bound, "--pwd", str(inside)),
            self._options.clients.containers.singularity_image,
            *command,
        )

    def _variables(self) -> dict[str, str]:
        return {**variables_elsewhere(self._options.environment), **self._options.secrets}

    def _environment(self, inside: Mapping[str, str]) -> dict[str, str]:
        """Returns the environment of the program that starts the container. This program passes the
        variables in `inside` on to the command."""
        prefix = "SINGULARITYENV_"
        if self._program and Path(self._program).name == "apptainer":
            prefix = "APPTAINERENV_"
        passed = {f"{prefix}{name}": value for name, value in inside.items()}
        return {**self._options.clients.environment, **passed}

    def _inside(self, folder: Path) -> Path:
        return self._shown / folder.relative_to(self._workspace.resolve())

    def _place_check(self) -> PlaceCheck:
        own = self._own
        places = [
            (self._shown, self._workspace.resolve()),
            (Path("/tmp"), own.temporary),  # noqa: S108  # inside the container
            (HOME_INSIDE, own.home),
            *((Path(one.path), Path(one.path)) for one in self._options.mounts if one.writable),
        ]
        visible = [VisibleFolder(shown=shown, real=real) for shown, real in places]
        fixed = [one.path for one in self._options.mounts if not one.writable]
        files = ScriptFiles(str(HOME_INSIDE), visible, fixed)
        return PlaceCheck(SINGULARITY_NAME, self._variables(), files)


SINGULARITY_BACKEND = BackendManifest(name=SINGULARITY_NAME, make=SingularityBackend)
