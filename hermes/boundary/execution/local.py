"""The `local` backend: runs commands and file operations on this machine, with the rights of
this process."""

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import anyio.to_thread
from msgspec.structs import replace

from hermes.boundary.execution.background import Background
from hermes.boundary.execution.foreground import Foreground
from hermes.boundary.execution.handles import end_handle
from hermes.boundary.execution.launch import CommandLaunch, Launcher, ShellLauncher
from hermes.boundary.execution.sudo import SudoAccess, sudo_access
from hermes.boundary.search import search
from hermes.boundary.workspace import Workspace
from hermes.types.errors import ToolFailed
from hermes.types.execution import (
    BackendFinding,
    BackendManifest,
    BackendOptions,
    CommandObserver,
    CommandOutcome,
    CommandPlace,
    FileInfo,
    ProcessOutput,
    ProcessStatus,
    SandboxInfo,
    SandboxScope,
    SearchQuery,
    SearchResult,
)


class LocalBackend:
    """The local backend. Its commands are not isolated from this machine; file operations stay
    in the workspace."""

    isolation = "none"

    def __init__(
        self,
        processes: Path,
        environment: Mapping[str, str] | None,
        secrets: Mapping[str, str] | None = None,
        sudo: SudoAccess | None = None,
    ) -> None:
        """`processes` is the folder for the records of background processes. `environment` holds
        the environment variables of commands. If it is None, commands are refused and only files
        can be used. `secrets` holds more variables, whose values are redacted in output."""
        self.commands: LocalCommands | None = None
        self._sudo = sudo
        if environment is not None:
            self.commands = LocalCommands(processes, environment, secrets, sudo)

    async def check(self) -> Sequence[BackendFinding]:
        text = "Commands run on this machine with the rights of the gateway, without a sandbox."
        hint = "Set terminal.backend to sandbox, unless the machine itself limits the damage."
        return (BackendFinding(level="warning", text=text, hint=hint),)

    async def open(self, scope: SandboxScope) -> "LocalSandbox":
        return LocalSandbox(scope, self.commands)

    async def end(self, handle: str) -> bool:
        return await anyio.to_thread.run_sync(end_handle, handle)

    async def sandboxes(self) -> Sequence[SandboxInfo]:
        return ()

    async def reset(self, id: str) -> bool:
        return False

    async def discard(self, scope: SandboxScope) -> None:
        """Does nothing, because sessions share the workspace."""

    async def close_idle(self, seconds: float) -> int:
        return 0

    async def aclose(self) -> None:
        self.close()

    def close(self) -> None:
        """Ends the fork server, which otherwise ends when this object is garbage-collected."""
        if self.commands is not None:
            self.commands.foreground.close()
        if self._sudo is not None:
            self._sudo.close()


class LocalCommands:
    """Runs commands in the foreground and in the background."""

    def __init__(
        self,
        processes: Path,
        environment: Mapping[str, str],
        secrets: Mapping[str, str] | None = None,
        sudo: SudoAccess | None = None,
    ) -> None:
        shell = shutil.which("bash", path=environment.get("PATH")) or "/bin/sh"
        self.launcher: Launcher = ShellLauncher(shell, environment, secrets, sudo)
        self.foreground = Foreground()
        self.background = Background(processes)


class LocalSandbox:
    """The files and commands of one session on this machine."""

    def __init__(
        self,
        scope: SandboxScope,
        commands: LocalCommands | None,
        launcher: Launcher | None = None,
        workspace: Path | None = None,
        *,
        prepare: Callable[[], None] = lambda: None,
        remark: Callable[[], str] = lambda: "",
        owner: Callable[[], int | None] = lambda: None,
    ) -> None:
        """`launcher` replaces the launcher of the commands. `workspace` is the folder on this
        machine that contains the files of the workspace; None for the workspace folder of
        `scope`. `prepare` creates this folder. `remark` returns a text that is added to the output
        of a foreground command. `owner` returns the id of the user who owns new files; None for the
        user of this process."""
        self._owner = owner
        self._remark = remark
        self._scope = scope
        self._allowed = commands
        self._launcher = launcher or (commands.launcher if commands else None)
        self._given = workspace
        self._prepare = prepare

    @cached_property
    def _root(self) -> Path:
        """The folder with the files of the workspace."""
        return self._given or Path(self._scope.workspace)

    @property
    def private_files(self) -> bool:
        return self._root != Path(self._scope.workspace)

    @cached_property
    def _workspace(self) -> Workspace:
        # The workspace is created on first use, because most turns call no tool.
        self._prepare()
        home = self._scope.home
        shown = Path(self._scope.workspace)
        return Workspace(self._root, Path(home) if home else None, shown, self._owner())

    async def read(self, path: str) -> bytes:
        return await anyio.to_thread.run_sync(self._workspace.read, path, abandon_on_cancel=True)

    async def write(self, path: str, data: bytes, *, expected: bytes | None = None) -> bool:
        return await anyio.to_thread.run_sync(self._workspace.write, path, data, expected)

    async def list(self, path: str) -> Sequence[FileInfo]:
        return await anyio.to_thread.run_sync(self._workspace.list, path, abandon_on_cancel=True)

    async def stat(self, path: str) -> FileInfo | None:
        return await anyio.to_thread.run_sync(self._workspace.stat, path, abandon_on_cancel=True)

    async def remove(self, path: str) -> None:
        await anyio.to_thread.run_sync(self._workspace.remove, path)

    async def search(self, query: SearchQuery) -> SearchResult:
        place = await anyio.to_thread.run_sync(self._workspace.open, query.path)
        try:
            named = replace(query, path="/".join(self._workspace.parts(query.path)))
            return await search(place, named, self._workspace.home())
        finally:
            os.close(place)

    async def locate(self, workdir: str, scripts: Sequence[str]) -> CommandPlace:
        _, launcher = self._commands()

        def located() -> CommandPlace:
            return launcher.locate(self._folder(workdir), scripts)

        return await anyio.to_thread.run_sync(located)

    async def run(
        self,
        command: str,
        observer: CommandObserver,
        *,
        workdir: str = ".",
        seconds: float,
        place: CommandPlace | None = None,
    ) -> CommandOutcome:
        commands, launcher = self._commands()
        launch = await self._launch(launcher, command, workdir, place, background=False)
        outcome = await commands.foreground.run(launch, seconds, observer)
        return with_remark(outcome, self._remark())

    async def start(
        self, command: str, *, workdir: str = ".", place: CommandPlace | None = None
    ) -> "LocalProcess":
        (commands, launcher), scope = self._commands(), self._scope
        launch = await self._launch(launcher, command, workdir, place, background=True)
        record = await commands.background.start(command, launch, scope)
        return LocalProcess(record.id, scope, commands.background)

    async def processes(self) -> Sequence[ProcessStatus]:
        if self._allowed is None:
            return ()
        background = self._allowed.background
        return await anyio.to_thread.run_sync(background.of, self._scope.session)

    async def process(self, id: str) -> "LocalProcess":
        background = self._commands()[0].background
        await anyio.to_thread.run_sync(background.find, id, self._scope.session)
        return LocalProcess(id, self._scope, background)

    async def shell(self) -> Sequence[str]:
        return self._commands()[1].shell()

    def _commands(self) -> tuple[LocalCommands, Launcher]:
        if self._allowed is None or self._launcher is None:
            raise ToolFailed(
                "Commands are not allowed here. To allow them, the operator can set"
                " terminal.backend to a backend that runs commands."
            )
        return self._allowed, self._launcher

    async def _launch(
        self,
        launcher: Launcher,
        command: str,
        workdir: str,
        place: CommandPlace | None,
        *,
        background: bool,
    ) -> CommandLaunch:
        if "\0" in command + workdir:
            # Without this check, uvloop would run the part of the command before the NUL.
            raise ToolFailed("A command can't contain a NUL character.")

        def launch() -> CommandLaunch:
            folder = self._folder(workdir)
            return launcher.launch(command, folder, background=background, place=place)

        return await anyio.to_thread.run_sync(launch)

    def _folder(self, workdir: str) -> Path:
        """Returns the folder on this machine in which a command begins."""
        self._prepare()
        shown = Path(self._scope.workspace)
        if self._root != shown and Path(workdir).is_relative_to(shown):
            workdir = str(Path(workdir).relative_to(shown))
        return folder_in(self._root, workdir)


class LocalProcess:
    """A background process of a session on this machine."""

    def __init__(self, id: str, scope: SandboxScope, background: Background) -> None:
        self.id = id
        self._session = scope.session
        self._background = background

    async def status(self) -> ProcessStatus:
        return await anyio.to_thread.run_sync(self._background.find, self.id, self._session)

    async def output(self) -> ProcessOutput:
        return await anyio.to_thread.run_sync(self._background.output, self.id, self._session)

    async def write(self, data: bytes) -> None:
        await anyio.to_thread.run_sync(self._background.write, self.id, self._session, data)

    async def wait(self, seconds: float) -> ProcessStatus:
        return await self._background.wait(self.id, self._session, seconds)

    async def kill(self) -> ProcessStatus:
        return await self._background.kill(self.id, self._session)


def with_remark(outcome: CommandOutcome, remark: str) -> CommandOutcome:
    """Returns the outcome, with the remark added to its output. An empty remark changes nothing."""
    text = "\n".join(filter(None, (outcome.text.removesuffix("\n"), remark)))
    return replace(outcome, text=text) if remark else outcome


def folder_in(workspace: Path, wanted: str) -> Path:
    """Returns the folder in which a command begins. Raises ToolFailed if `wanted` is not a folder
    of the workspace. The command itself can `cd` to any folder."""
    try:
        folder = Path(workspace, wanted).resolve()
        is_folder = folder.is_dir()
    except (OSError, RuntimeError) as error:
        raise ToolFailed(
            f"workdir {wanted[:80]!r} is not a folder: it is too long, or links form a circle."
        ) from error
    if not folder.is_relative_to(workspace.resolve()):
        raise ToolFailed(f"workdir {wanted!r} is outside the workspace {workspace}.")
    if not is_folder:
        raise ToolFailed(f"workdir {wanted!r} is not a folder of the workspace {workspace}.")
    return folder


def _make(options: BackendOptions) -> LocalBackend:
    sudo = sudo_access(options.sudo_password, options.processes.with_name("programs"))
    return LocalBackend(options.processes, options.environment, options.secrets, sudo)


LOCAL_BACKEND = BackendManifest(name="local", make=_make)
