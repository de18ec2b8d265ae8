"""The `sandbox` backend: runs commands on this machine, isolated by the best level that the machine
offers."""

import json
import platform
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import anyio.to_thread

from hermes.boundary.execution import launcher
from hermes.boundary.execution.bubblewrap import (
    HOME_INSIDE,
    FileView,
    find_bubblewrap,
    namespace_filter,
    wrapped_arguments,
)
from hermes.boundary.execution.cgroup import delegated_group
from hermes.boundary.execution.command_place import PlaceCheck, ScriptFiles, VisibleFolder
from hermes.boundary.execution.handles import end_handle
from hermes.boundary.execution.launch import (
    CommandLaunch,
    LandlockRules,
    Restrictions,
    encoded,
)
from hermes.boundary.execution.levels import (
    DESCRIPTIONS,
    SANDBOX_ADVICE,
    SANDBOX_LEVELS,
    Level,
    best_level,
    level_problem,
)
from hermes.boundary.execution.local import LocalCommands, LocalSandbox
from hermes.boundary.execution.overlay import overlay_works, work_folders
from hermes.boundary.execution.sandbox_folders import (
    SandboxFolder,
    delete_sandbox,
    known_sandboxes,
    sandbox_id,
)
from hermes.boundary.execution.sandbox_network import NETWORK_LEVEL, SandboxNetwork
from hermes.boundary.execution.scripts import script
from hermes.boundary.execution.seatbelt import seatbelt_arguments, seatbelt_profile
from hermes.boundary.execution.seccomp import filter_program
from hermes.boundary.execution.visible_files import (
    DEVICES,
    SETTINGS_FOLDER,
    SYSTEM_FOLDERS,
    contains_system,
    settings_files,
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

SANDBOX_NAME = "sandbox"
SHELL_FOLDERS = "/bin:/usr/bin:/usr/local/bin:/run/current-system/sw/bin"
"""The folders in which the backend looks for bash, which runs the commands."""


class SandboxBackend:
    """Isolates commands with an isolation level: a technique such as bubblewrap or Landlock. If no
    level works on this machine, commands are refused."""

    def __init__(self, options: BackendOptions, level: Level | None) -> None:
        self._options = options
        self._level = level
        self._folders = (options.sandboxes or options.processes.parent / "sandboxes") / SANDBOX_NAME
        self._network = SandboxNetwork(
            options.network,
            options.processes.with_name("network"),
            separate=level == NETWORK_LEVEL,
        )
        self.commands = LocalCommands(options.processes, options.environment)

    @property
    def isolation(self) -> str:
        if self._level is None:
            return "no level works here, so commands are refused"
        return f"{DESCRIPTIONS[self._level]}; {self._network.description}"

    async def check(self) -> Sequence[BackendFinding]:
        found = await anyio.to_thread.run_sync(findings, self._level)
        return (*found, *self._network.findings())

    async def open(self, scope: SandboxScope) -> "LocalSandbox":
        shared = "" if self._has_own_workspace else scope.workspace
        own = SandboxFolder(self._folders, scope, self._options.sharing, shared)
        workspace = Path(shared) if shared else own.workspace
        network = self._network
        confined = ConfinedLauncher(self._options, self._level, scope, own, workspace, network)
        await network.start()
        remark = partial(network.remark, str(scope.session))
        if not self._has_own_workspace:
            return LocalSandbox(scope, self.commands, confined, remark=remark)
        return LocalSandbox(
            scope, self.commands, confined, workspace, prepare=own.ensure, remark=remark
        )

    @property
    def _has_own_workspace(self) -> bool:
        return self._options.own_workspaces and self._options.sharing != "agent"

    async def end(self, handle: str) -> bool:
        return await anyio.to_thread.run_sync(end_handle, handle)

    async def sandboxes(self) -> Sequence[SandboxInfo]:
        found = await anyio.to_thread.run_sync(lambda: list(known_sandboxes(self._folders)))
        return sorted(found, key=lambda one: one.used_at, reverse=True)

    async def reset(self, id: str) -> bool:
        await self.commands.background.kill_in(id)
        return await anyio.to_thread.run_sync(delete_sandbox, self._folders, id)

    async def discard(self, scope: SandboxScope) -> None:
        if self._options.sharing == "session":
            id = sandbox_id(scope, "session")
            await anyio.to_thread.run_sync(delete_sandbox, self._folders, id)

    async def close_idle(self, seconds: float) -> int:
        """Does nothing, because nothing runs in a sandbox between two commands."""
        return 0

    async def aclose(self) -> None:
        await self._network.aclose()
        self.close()

    def close(self) -> None:
        """Ends the fork server."""
        self.commands.foreground.close()


class ConfinedLauncher:
    """Starts the commands of one session, with the restrictions of an isolation level."""

    def __init__(
        self,
        options: BackendOptions,
        level: Level | None,
        scope: SandboxScope,
        own: SandboxFolder,
        workspace: Path,
        network: SandboxNetwork,
    ) -> None:
        self._options = options
        self._network = network
        self._level = level
        self._scope = scope
        self._own = own
        self._workspace = workspace
        self._shell = shutil.which("bash", path=SHELL_FOLDERS) or "/bin/sh"

    def locate(self, folder: Path, scripts: Sequence[str]) -> CommandPlace:
        level = self._usable_level()
        return self._place_check(level).locate(str(self._shown(level, folder)), scripts)

    def launch(
        self, command: str, folder: Path, *, background: bool, place: CommandPlace | None = None
    ) -> CommandLaunch:
        return self._launch((self._shell, "-c", command), folder, place, lasting=background)

    def shell(self) -> tuple[str, ...]:
        launch = self._launch((self._shell, "-i"), self._workspace.resolve(), None, lasting=False)
        # Everybody on the machine can read the arguments of a process, so secrets are left out.
        visible = {k: v for k, v in launch.environment.items() if k not in self._options.secrets}
        arguments = (launch.restrictions.text(), str(launch.folder), json.dumps(visible))
        return tuple(script(launcher, *arguments, *launch.arguments))

    def _usable_level(self) -> Level:
        """Returns the level at which commands run. Raises ToolFailed if commands can't run."""
        if self._level is None:
            raise ToolFailed(f"Commands can't run here, because no sandbox works. {SANDBOX_ADVICE}")
        if contains_system(self._workspace):
            raise ToolFailed(
                f"The workspace {self._workspace} contains system folders, so commands can't"
                " be isolated: start Hermes in the folder of a project."
            )
        self._own.ensure()
        return self._level

    def _launch(
        self,
        command: tuple[str, ...],
        folder: Path,
        place: CommandPlace | None,
        *,
        lasting: bool,
    ) -> CommandLaunch:
        level = self._usable_level()
        shown = self._shown(level, folder)
        checks = self._place_check(level)
        check: Callable[[], None] = lambda: None  # noqa: E731
        if place is not None:
            check = partial(checks.check, place, str(shown))
        match level:
            case "bubblewrap":
                copies = checks.copies(place, self._own.approved) if place else ()
                # In an overlay, a process does not see the new files if other processes replace
                # files later. Only a background command runs long enough for this to matter, so it
                # gets no overlay.
                overlays = {} if lasting else self._overlays(checks.files, copies)
                view = self._view(tuple(copies), overlays)
                arguments = wrapped_arguments(view, shown, command, lasting=lasting)
                arguments = self._network.connected(arguments, self._scope.session)
                extra = self._restrictions(seccomp=namespace_filter(), wrapped=True)
            case "landlock":
                arguments, extra = self._landlocked(command)
            case "seatbelt":
                arguments, extra = self._seatbelted(command)
        return CommandLaunch(
            arguments=arguments,
            environment=self._environment(level),
            folder=folder,
            restrictions=extra,
            sandbox=self._own.id,
            secrets=tuple(self._options.secrets.values()),
            check=check,
        )

    def _shown(self, level: Level, folder: Path) -> Path:
        """Returns the path of a folder of the workspace, as commands see it at this level of
        isolation."""
        if level != "bubblewrap":
            return folder
        return Path(self._scope.workspace) / folder.relative_to(self._workspace.resolve())

    def _place_check(self, level: Level) -> PlaceCheck:
        """Returns the check that compares the place of a command with the approved one, at this
        level of isolation."""
        own, wrapped = self._own, level == "bubblewrap"
        environment = self._environment(level)
        places = [
            (Path(self._scope.workspace), self._workspace.resolve()),
            (Path("/tmp"), own.temporary),  # noqa: S108  # inside the sandbox
            (HOME_INSIDE, own.home),
            *((Path(one.path), Path(one.path)) for one in self._options.mounts if one.writable),
        ]
        changeable = [
            VisibleFolder(shown=shown if wrapped else real.resolve(), real=real.resolve())
            for shown, real in places
        ]
        readable = (one.path for one in self._options.mounts if not one.writable)
        fixed = (*SYSTEM_FOLDERS, SETTINGS_FOLDER, *readable)
        files = ScriptFiles(environment["HOME"], changeable, fixed, self._hidden)
        return PlaceCheck(SANDBOX_NAME, environment, files)

    def _overlays(
        self, files: ScriptFiles, copies: Sequence[tuple[Path, str]]
    ) -> Mapping[Path, Path]:
        """Prepares an overlay of each folder that contains the original of a file in `copies`. The
        keys of the result are the paths at which commands see these folders. The values are the
        work folders of the overlays."""
        program, folders = find_bubblewrap(), files.folders_of(path for _, path in copies)
        works = work_folders(folders, self._own.overlays).items()
        return {
            folder.shown: work
            for folder, work in works
            if program and overlay_works(program, folder.real, work)
        }

    def _view(
        self, copies: tuple[tuple[Path, str], ...], overlays: Mapping[Path, Path]
    ) -> FileView:
        return FileView(
            workspace=self._workspace.resolve(),
            shown=Path(self._scope.workspace),
            hidden=self._hidden,
            temporary=self._own.temporary,
            home=self._own.home,
            devices=self._own.devices,
            mounts=self._options.mounts,
            copies=copies,
            overlays=overlays,
        )

    def _landlocked(self, command: tuple[str, ...]) -> tuple[tuple[str, ...], Restrictions]:
        root = self._workspace.resolve()
        if any(one.is_relative_to(root) for one in self._hidden):
            raise ToolFailed(
                f"The workspace {self._workspace} contains the home of Hermes, which Landlock can't"
                " hide: start Hermes in the folder of a project, or install bubblewrap."
            )
        known = settings_files()
        readable = [one.path for one in self._options.mounts if not one.writable]
        writable = [one.path for one in self._options.mounts if one.writable]
        rules = LandlockRules(
            readable=(*SYSTEM_FOLDERS, *known.open, *readable),
            listable=known.mixed,
            writable=(*self._private, *(f"/dev/{name}" for name in DEVICES), *writable),
        )
        program = filter_program(platform.machine(), (), namespaces=False)
        return command, self._restrictions(landlock=rules, seccomp=encoded(program))

    def _seatbelted(self, command: tuple[str, ...]) -> tuple[tuple[str, ...], Restrictions]:
        profile = seatbelt_profile(
            readable=[one.path for one in self._options.mounts if not one.writable],
            writable=[one.path for one in self._options.mounts if one.writable],
            hidden=[str(one) for one in self._hidden],
            private=self._private,
        )
        return seatbelt_arguments(profile, command), self._restrictions()

    @property
    def _private(self) -> tuple[str, ...]:
        """The folders that commands of this sandbox can write."""
        own = self._own
        return tuple(str(one.resolve()) for one in (self._workspace, own.temporary, own.home))

    @property
    def _hidden(self) -> tuple[Path, ...]:
        home = [Path(self._scope.home)] if self._scope.home else []
        found = (one.resolve() for one in (*home, *self._options.hidden))
        return tuple(dict.fromkeys(one for one in found if one.is_dir()))

    def _restrictions(
        self, *, landlock: LandlockRules | None = None, seccomp: str = "", wrapped: bool = False
    ) -> Restrictions:
        return Restrictions(
            limits=self._options.limits,
            folders=self._private,
            landlock=landlock,
            seccomp=seccomp,
            wrapped=wrapped,
            group=delegated_group(),
        )

    def _environment(self, level: Level) -> dict[str, str]:
        own = self._own
        home, temporary = str(own.home), str(own.temporary)
        if level == "bubblewrap":
            home, temporary = str(HOME_INSIDE), "/tmp"  # noqa: S108  # inside the sandbox
        places = {"HOME": home, "TMPDIR": temporary}
        given = {**self._options.environment, **self._options.secrets}
        return {**given, **self._network.environment(), **places}


def findings(level: Level | None) -> tuple[BackendFinding, ...]:
    """Returns a finding that names the isolation level of commands. `level` is None if no level
    works. If the level is the weakest or None, the finding also says why the better levels do not
    work."""
    better = SANDBOX_LEVELS[: SANDBOX_LEVELS.index(level)] if level else SANDBOX_LEVELS
    problems = [f"{one}: {level_problem(one)}" for one in better]
    if level is None:
        text = f"Commands are refused, because no sandbox works: {'; '.join(problems)}."
        return (BackendFinding(level="error", text=text, hint=SANDBOX_ADVICE),)
    text = f"Commands run in a sandbox ({DESCRIPTIONS[level]})."
    if level == "landlock":
        text += f" A better level does not work: {'; '.join(problems)}."
        return (BackendFinding(level="warning", text=text, hint=SANDBOX_ADVICE),)
    return (BackendFinding(level="ok", text=text),)


def _make(options: BackendOptions) -> SandboxBackend:
    return SandboxBackend(options, best_level())


SANDBOX_BACKEND = BackendManifest(name=SANDBOX_NAME, make=_make)
