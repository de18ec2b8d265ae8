"""A container in which the commands of one sandbox run."""

import hashlib
import os
import resource
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from pathlib import Path

import anyio
import anyio.to_thread
from msgspec.structs import replace

from hermes.boundary.execution.bubblewrap import HOME_INSIDE
from hermes.boundary.execution.container_engine import ContainerEngine
from hermes.boundary.execution.container_limits import ContainerLimits
from hermes.boundary.execution.handles import CALL_MARK
from hermes.boundary.execution.overlay import mount_options
from hermes.boundary.execution.sandbox_folders import SandboxFolder
from hermes.boundary.execution.visible_files import contains_system
from hermes.types.errors import ToolFailed
from hermes.types.execution import CommandLimits, Mount
from hermes.types.execution_clients import ContainerOptions
from hermes.types.value import Value

CONTAINER_BACKEND = "docker"
HOME_LABEL, SETTINGS_LABEL = "hermes.home", "hermes.settings"
CONTAINER_USER = 64_200
"""If the gateway runs as root, commands run with this user id and group id. No user of this machine
has this id."""
HIGHEST_LIMIT = 16_384
"""The highest limits that a container gets: for the open files of a process, and for the number of
processes of the container's user. Some machines do not let an engine set a higher limit."""
IDLE_CHECK_SECONDS = 10
SHORTEST_IDLE = 30
_TEMPORARY = "rw,nosuid,nodev,mode=1777,size=512m"

# The first process of a container. It ends if no command was started for some time and nothing else
# runs in the container. It also reaps the processes that have lost their parent.
_FIRST_PROCESS = f"""
used=/dev/shm/.hermes-used idle=0
while [ "$idle" -lt "$1" ]; do
  {CALL_MARK}=first sleep {IDLE_CHECK_SECONDS} & wait $!
  idle=$((idle + {IDLE_CHECK_SECONDS}))
  set -- "$1" /proc/[0-9]*
  if [ $# -gt 2 ] || [ -s "$used" ]; then idle=0; : > "$used"; fi
done
"""


class ContainerUse(Value):
    """The latest use of a running container."""

    at: float
    """The time at which the container was last used, on the monotonic clock."""
    process: int
    """The process id of the container's first process, as this machine sees it."""


class ContainerState(Value):
    """The state of an existing container."""

    running: bool
    settings: str
    """The hash of the settings with which the container was started."""
    process: int


class ContainerView(Value):
    """Everything that determines how a container is started: its files, limits, user and labels."""

    name: str
    labels: Mapping[str, str]
    workspace: Path
    """The folder on this machine that contains the files of the workspace."""
    shown: str
    """The path of the workspace in the container."""
    home: Path
    empty: Path
    """An empty folder that is mounted over /sys/devices, so that commands do not see the devices of
    this machine."""
    user: int
    hidden: tuple[Path, ...] = ()
    """Folders on this machine that are hidden if they are inside the workspace or a mount."""
    mounts: tuple[Mount, ...] = ()
    variables: Mapping[str, str] = {}
    """Variables that all programs in the container see."""
    copies: tuple[tuple[Path, str], ...] = ()
    """Copies of files on this machine, each with the path of the file in the container. Commands
    see the copy there and can't change it."""
    overlays: Mapping[str, Path] = {}
    """Maps each folder that commands see through an overlay to the work folder of the overlay. The
    keys are paths in the container. Other processes can't replace the files in an overlay."""
    filter: Path | None = None
    """The file with the system calls that commands may use; None for the engine's own list."""
    limits: CommandLimits = CommandLimits()
    options: ContainerOptions = ContainerOptions()


def run_arguments(view: ContainerView, *, keep_user: bool) -> tuple[str, ...]:
    """Returns the arguments with which the engine starts the container. `keep_user` means that the
    user of the gateway has the same user id in the container."""
    options = view.options
    lasting = max(SHORTEST_IDLE, int(options.idle_seconds))
    return (
        *("run", "--detach", "--rm", "--pull", "never", "--name", view.name),
        *(f"--label={name}={value}" for name, value in view.labels.items()),
        *("--read-only", "--cap-drop", "all", "--security-opt", "no-new-privileges"),
        *(("--security-opt", f"seccomp={view.filter}") if view.filter else ()),
        *("--network", "none", "--ipc", "private", "--hostname", "sandbox"),
        *("--user", f"{view.user}:{view.user}", *(("--userns", "keep-id") if keep_user else ())),
        *_limits(view.limits, options.cpus),
        *("--tmpfs", f"/tmp:{_TEMPORARY}", "--tmpfs", f"/var/tmp:{_TEMPORARY}"),  # noqa: S108
        *("--mount", f"type=bind,source={_named(view.empty)},target=/sys/devices,readonly"),
        *_mounts(view),
        *(f"--env={name}={value}" for name, value in view.variables.items()),
        *("--env", f"HOME={HOME_INSIDE}", "--workdir", view.shown, "--stop-signal", "KILL"),
        *options.arguments,
        *("--entrypoint", "sh", options.image, "-c", _FIRST_PROCESS, "hermes", str(lasting)),
    )


def _limits(limits: CommandLimits, cpus: float) -> tuple[str, ...]:
    """Returns the options for the limits. Every kind of limit gets a value: without a value the
    engine would set its own default, which some machines do not allow."""
    files = _allowed(resource.RLIMIT_NOFILE, HIGHEST_LIMIT)
    processes = _allowed(resource.RLIMIT_NPROC, HIGHEST_LIMIT)
    chosen = [f"--ulimit=nofile={files}:{files}", f"--ulimit=nproc={processes}:{processes}"]
    chosen.append("--ulimit=core=0:0")
    if limits.cpu_seconds:
        chosen.append(f"--ulimit=cpu={limits.cpu_seconds}:{limits.cpu_seconds + 5}")
    if limits.file_bytes:
        chosen.append(f"--ulimit=fsize={limits.file_bytes}:{limits.file_bytes}")
    if limits.processes:
        chosen.append(f"--pids-limit={limits.processes}")
    if limits.memory:
        chosen += [f"--memory={limits.memory}", f"--memory-swap={limits.memory}"]
    if cpus:
        chosen.append(f"--cpus={cpus:g}")
    return tuple(chosen)


def _allowed(kind: int, wanted: int) -> int:
    highest = resource.getrlimit(kind)[1]
    return wanted if highest == resource.RLIM_INFINITY else min(wanted, highest)


def _mounts(view: ContainerView) -> tuple[str, ...]:
    shown = [(view.workspace, view.shown, ""), (view.home, str(HOME_INSIDE), "")]
    shown += [
        (Path(one.path), one.path, "" if one.writable else ",readonly") for one in view.mounts
    ]
    bound: list[str] = []
    for path, inside, access in shown:
        if work := view.overlays.get(inside):
            made = f'"volume-opt=o={mount_options(Path(_named(path)), Path(_named(work)))}"'
            overlay = f"type=volume,target={inside},volume-opt=type=overlay"
            bound += ["--mount", f"{overlay},volume-opt=device=overlay,{made}"]
        else:
            bound += ["--mount", f"type=bind,source={_named(path)},target={inside}{access}"]
    bound += [argument for one in view.options.volumes for argument in ("--volume", one)]
    for secret in view.hidden:
        for path, inside, _ in shown:
            if secret.is_relative_to(path):
                place = Path(inside, secret.relative_to(path))
                bound += ["--tmpfs", f"{place}:ro,mode=000,size=4k"]
    for copy, script in view.copies:
        target = _named(Path(script))
        bound += ["--mount", f"type=bind,source={_named(copy)},target={target},readonly"]
    return tuple(bound)


def _named(path: Path) -> str:
    if "," in str(path) or '"' in str(path):
        raise ToolFailed(
            f"The path {str(path)!r} can't be in a container, because it contains a comma or a"
            " double quote: rename it."
        )
    return str(path)


def name_prefix(folders: Path) -> str:
    """Returns the common prefix of the names of all containers of this home (the data folder of
    Hermes)."""
    return f"hermes-{hashlib.sha256(os.fsencode(folders.resolve())).hexdigest()[:10]}-"


class ContainerFolders:
    """The folders that a container needs. The folders belong to the user that runs the commands in
    the container. This user is never root."""

    def __init__(self, own: SandboxFolder, workspace: Path) -> None:
        self._own = own
        self._workspace = workspace

    def user(self) -> int:
        """Returns the user of the commands. Raises ToolFailed if this user would be root."""
        if os.geteuid() != 0:
            return os.geteuid()
        if self._workspace == self._own.workspace:
            return CONTAINER_USER
        owner = self._workspace.stat().st_uid
        if owner == 0:
            raise ToolFailed(
                f"The workspace {self._workspace} belongs to root, and commands in a container run"
                " as another user: give the folder to another user with chown, or start Hermes as"
                " another user."
            )
        return owner

    def new_files_owner(self) -> int | None:
        """Returns the user that owns the files which the file tools create; None for the user of
        this process."""
        return self.user() if os.geteuid() == 0 else None

    def ensure(self) -> None:
        """Creates the folders."""
        if contains_system(self._workspace):
            raise ToolFailed(
                f"The workspace {self._workspace} contains system folders, so commands can't"
                " be isolated: start Hermes in the folder of a project."
            )
        self._own.ensure()
        if os.geteuid() == 0:
            user = self.user()
            for folder in (self._own.workspace, self._own.home, self._own.temporary):
                if folder.stat().st_uid != user:
                    os.chown(folder, user, user)


class Container:
    """Implements `Machine` for one container."""

    shared = False

    def __init__(
        self,
        engine: ContainerEngine,
        name: str,
        used: MutableMapping[str, ContainerUse],
        view: Callable[[], ContainerView] | None = None,
        files: tuple[str, int] = ("", 0),
        connect: Callable[[int], Awaitable[None]] | None = None,
    ) -> None:
        """`used` contains the last use of each container by this process. `view` describes the
        container; None if the container is already running. `connect` is called with the id of the
        container's first process, and connects the container's network; None for no network."""
        self._engine = engine
        self._container = name
        self._used = used
        self._view = view
        self._connect = connect
        self.files = files

    @property
    def name(self) -> str:
        return f"{CONTAINER_BACKEND}:{self._container}"

    @property
    def environment(self) -> Mapping[str, str]:
        return self._engine.environment

    async def prepare(self) -> None:
        """Starts the container if it does not run yet."""
        used = self._used.get(self._container)
        if used and time.monotonic() - used.at < SHORTEST_IDLE / 2:
            return
        await self._engine.require()
        if self._view:
            view = await anyio.to_thread.run_sync(self._view)
            process = await self._ensure(view)
            if self._connect and not (used and used.process == process):
                await self._connect(process)
            self._used[self._container] = ContainerUse(at=time.monotonic(), process=process)

    async def _ensure(self, view: ContainerView) -> int:
        """Starts the container, unless it already runs with the same settings. Returns the id of
        its first process."""
        settings = view.labels[SETTINGS_LABEL]
        if (state := await self._state()) and state.running and state.settings == settings:
            return state.process
        if state:
            await self.clear()
        arguments = run_arguments(view, keep_user=self._engine.rootless_podman)
        answer = await self._engine.call(*arguments)
        # The state is read even after an error, because another process may have started the same
        # container just now.
        state = await self._state()
        if view.overlays and not (state and state.running):
            # Some file systems can't be in an overlay, so the start is tried again without
            # overlays.
            return await self._ensure(replace(view, overlays={}))
        if not (state and state.running and state.settings == settings):
            raise ToolFailed(
                f"The container can't be started: {answer.error.strip()[-500:]}. `hermes doctor`"
                " shows what is missing."
            )
        return state.process

    async def _state(self) -> ContainerState | None:
        label = f'{{{{index .Config.Labels "{SETTINGS_LABEL}"}}}}'
        text = f"{{{{.State.Running}}}} {{{{.State.Pid}}}} {label}"
        answer = await self._engine.call("container", "inspect", "--format", text, self._container)
        if answer.code:
            return None
        running, process, settings = answer.output.strip().split(" ", 2)
        return ContainerState(running=running == "true", settings=settings, process=int(process))

    async def runs(self) -> bool:
        state = await self._state()
        return state is not None and state.running

    def watch(self) -> Callable[[], str]:
        used = self._used.get(self._container)
        return ContainerLimits(used.process if used else 0).reached

    def client(self, mark: str, *arguments: str, lasting: bool = False) -> tuple[str, ...]:
        marked = ("--env", f"{CALL_MARK}={mark}")
        return (self._engine.program, "exec", "-i", *marked, self._container, "sh", *arguments)

    def terminal(self, folder: str) -> tuple[str, ...]:
        marked = ("--env", f"{CALL_MARK}=shell", "--workdir", folder)
        shell = "command -v bash >/dev/null && exec bash; exec sh"
        # Docker refuses `-t` if the input is not a terminal.
        kind = "-it" if os.isatty(0) else "-i"
        return (self._engine.program, "exec", kind, *marked, self._container, "sh", "-c", shell)

    def failure(self, said: str) -> ToolFailed:
        self._used.pop(self._container, None)
        reason = said.strip()[-500:] or "it was ended from outside"
        return ToolFailed(f"The command could not be run in its container: {reason}. Try it again.")

    async def clear(self) -> None:
        """Removes the container with everything that runs in it."""
        self._used.pop(self._container, None)
        await self._engine.call("rm", "--force", "--volumes", self._container)
