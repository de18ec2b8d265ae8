"""Protocols for reading and writing files and running commands."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, Protocol

from hermes.types.execution_clients import ClientOptions
from hermes.types.identity import AgentId, PersonId, SessionKey
from hermes.types.value import Value

LARGEST_FILE = 10_000_000
"""Largest size in bytes of a file that can be read, written or searched."""
GIGABYTE = 1_000_000_000

Sharing = Literal["session", "person", "agent"]
"""The conversations that share a sandbox: the turns of one session, all sessions of one person, or
all sessions of one agent."""


class SandboxScope(Value):
    """The agent, session and workspace that a sandbox is opened for."""

    agent: AgentId
    session: SessionKey
    """The session that owns the background processes. Other sessions can't see them."""
    workspace: str
    """The folder that paths are relative to. It is on the machine on which the backend runs
    commands."""
    home: str = ""
    """The agent's own folder on this machine. File operations can't use it."""
    person: PersonId | None = None
    """The person whose message the turn answers; None if the person is not known."""


class FileInfo(Value):
    """One entry of a folder."""

    name: str
    kind: Literal["file", "folder", "link", "other"]
    """The kind of entry. `other` is a pipe, a socket or a device."""
    size: int
    """Size in bytes. It is meaningful for files only."""
    modified_at: float
    """Time of the last change, in seconds since 1970."""


class SearchQuery(Value):
    pattern: str
    """A regular expression in Python's syntax, applied to each line."""
    path: str = "."
    """The file or folder that is searched."""
    names: bool = False
    """Whether the pattern is matched against the paths of files instead of their contents."""
    glob: str = ""
    """Only files whose name matches this glob are searched. A glob with a slash is matched against
    the path."""
    limit: int = 100
    """The search stops after this number of hits."""
    seconds: float = 10.0
    """The search stops after this number of seconds."""


class SearchHit(Value):
    path: str
    """The path relative to the workspace; quoted like a Python string if it is not printable."""
    line: int = 0
    """The line number, from 1; 0 for a match in the path itself."""
    text: str = ""
    """The line, or the part of a long line around the match."""


class SearchResult(Value):
    hits: tuple[SearchHit, ...] = ()
    remarks: tuple[str, ...] = ()
    """Reasons why the search may have missed hits."""


class CommandOutcome(Value):
    """The result of a foreground command."""

    text: str
    """The command's output and errors, without terminal escapes. The middle of a long text is
    left out."""
    code: int
    """The exit code. It is negative if a signal ended the command."""
    seconds: float
    timed_out: bool
    left: int = 0
    """Number of processes that the command left running and the backend had to kill."""
    exceeded: str = ""
    """The limit that the command exceeded, such as `memory`; the command was then ended. Empty if
    no limit was exceeded."""


class ProcessStatus(Value):
    """The state of a background process."""

    id: str
    command: str
    running: bool
    code: int | None
    """The exit code; negative if a signal ended the process. None if the process is running or the
    code is unknown."""
    seconds: float
    """Number of seconds for which the process has run."""
    exceeded: str = ""
    """The limit that the process exceeded, such as `memory`; the process was then ended. Empty if
    no limit was exceeded."""


class ProcessOutput(Value):
    data: bytes
    """The latest output, with terminal escapes."""
    whole: bool
    """Whether `data` is the whole output. False if earlier output has been dropped."""


class Script(Value):
    """A file that a command runs."""

    path: str
    """The absolute path as commands see it."""
    digest: str
    """The SHA-256 hash of the content; empty if there is no such file."""


class CommandPlace(Value):
    """The place where a command would run. A person's approval of the command is for this place
    only."""

    backend: str
    folder: str
    """The folder in which the command begins, without symbolic links."""
    environment: tuple[tuple[str, str], ...] = ()
    """The names of the variables that the command sees, each with the hash of its value."""
    scripts: tuple[Script, ...] = ()
    """The files that the command runs."""


class CommandObserver(Protocol):
    """Follows one foreground command. For a tool call, its `ToolContext` is the observer."""

    async def started(self, handle: str) -> None:
        """Stores the handle of the command. The command starts after this method has returned."""
        ...

    def progress(self, text: str) -> None:
        """Receives the last line of output, at most twice a second."""
        ...


class SandboxProcess(Protocol):
    """A background process that a session has started in its sandbox.

    The process continues after the end of the turn and of the gateway. A process that a stateless
    request has started is an exception: it ends with the request.
    """

    @property
    def id(self) -> str: ...

    async def status(self) -> ProcessStatus: ...

    async def output(self) -> ProcessOutput: ...

    async def write(self, data: bytes) -> None:
        """Sends input. Raises ToolFailed if the process has ended or does not read its input."""
        ...

    async def wait(self, seconds: float) -> ProcessStatus:
        """Waits until the process ends, for at most this number of seconds. Returns the state of
        the process."""
        ...

    async def kill(self) -> ProcessStatus:
        """Ends the process and everything that it started, first with SIGTERM and then with
        SIGKILL."""
        ...


class Sandbox(Protocol):
    """The files and commands for one `SandboxScope`. Commands and file operations see the same
    files.

    Paths are relative to the workspace, or absolute inside it. File operations never leave the
    workspace and follow no symbolic link. An operation that fails raises ToolFailed.
    """

    @property
    def private_files(self) -> bool:
        """Whether the workspace belongs to the sandbox alone. If so, a command that deletes the
        workspace destroys only files of the sandbox."""
        ...

    async def read(self, path: str) -> bytes:
        """Returns the whole file."""
        ...

    async def write(self, path: str, data: bytes, *, expected: bytes | None = None) -> bool:
        """Replaces the file atomically and creates missing folders. Returns True if the file is
        new.

        If `expected` is given and differs from the current content of the file, raises ToolFailed
        and writes nothing.
        """
        ...

    async def list(self, path: str) -> Sequence[FileInfo]:
        """Returns the entries of the folder, sorted by name."""
        ...

    async def stat(self, path: str) -> FileInfo | None:
        """Describes the file or folder at the path. Returns None if the path does not exist."""
        ...

    async def remove(self, path: str) -> None:
        """Deletes a file, a symbolic link or an empty folder."""
        ...

    async def search(self, query: SearchQuery) -> SearchResult:
        """Searches within the query's time limit, whatever the pattern is."""
        ...

    async def locate(self, workdir: str, scripts: Sequence[str]) -> CommandPlace:
        """Finds out where a command would run, and hashes the scripts. A script is a path that the
        command would use, absolute or relative to `workdir`. Raises ToolFailed if a script is not a
        file that commands can read."""
        ...

    async def run(
        self,
        command: str,
        observer: CommandObserver,
        *,
        workdir: str = ".",
        seconds: float,
        place: CommandPlace | None = None,
    ) -> CommandOutcome:
        """Runs a shell command without input, for at most this number of seconds.

        If `place` is given, the command runs exactly there: with the folder, the environment and
        the scripts of this place. If one of these has changed, raises ToolFailed and runs nothing.

        After this method has returned, raised or been cancelled, nothing that the command
        started is still running.
        """
        ...

    async def start(
        self, command: str, *, workdir: str = ".", place: CommandPlace | None = None
    ) -> SandboxProcess:
        """Starts a shell command in the background. `place` has the same meaning as for `run`."""
        ...

    async def processes(self) -> Sequence[ProcessStatus]:
        """Returns the background processes of the session, oldest first."""
        ...

    async def process(self, id: str) -> SandboxProcess:
        """Returns a background process. Raises ToolFailed if the session has no such process."""
        ...

    async def shell(self) -> Sequence[str]:
        """Returns the command line with which a person at this machine opens an interactive shell
        in the sandbox."""
        ...


class NetworkPolicy(Value):
    """The hosts that commands can connect to."""

    mode: Literal["none", "hosts", "open"] = "none"
    """`none` allows no connections, `hosts` allows the listed hosts, and `open` allows all public
    hosts."""
    hosts: tuple[str, ...] = ()
    """The names of the allowed hosts. The field is used in the mode `hosts` only."""


class CommandLimits(Value):
    """Limits for one command with all processes that it starts. The value 0 means no limit."""

    processes: int = 512
    memory: int = 4 * GIGABYTE
    """Memory of all processes together, in bytes."""
    cpu_seconds: int = 3600
    """CPU time of each process, in seconds."""
    file_bytes: int = 4 * GIGABYTE
    """Maximum size of each file that the command writes, in bytes."""
    workspace_bytes: int = 10 * GIGABYTE
    """Maximum size of all files in the sandbox together, in bytes."""


class Mount(Value):
    """A folder or file of this machine that commands can see, in addition to the workspace."""

    path: str
    """The absolute path, which is the same on this machine and in the sandbox."""
    writable: bool = False


class BackendFinding(Value):
    """A fact about a backend on this machine: that it works, or why it does not work."""

    level: Literal["ok", "warning", "error"]
    """`warning` means that commands run with a restriction, and `error` that no command can run."""
    text: str
    hint: str = ""
    """Says what the operator can do; empty if nothing needs to be done."""


class SandboxInfo(Value):
    """A sandbox that a backend keeps."""

    id: str
    """The name by which `reset` finds the sandbox."""
    agent: AgentId
    session: str = ""
    """The session that last used the sandbox. Other sessions may share the sandbox."""
    person: str = ""
    """The person that the sandbox belongs to. Empty if the sessions of a person do not share a
    sandbox."""
    workspace: str = ""
    """The folder of this machine in which the commands work; empty if the sandbox has a workspace
    of its own."""
    used_at: float = 0.0
    """The time of the last turn that used the sandbox, in seconds since 1970."""
    bytes: int = 0
    """Size of the sandbox's files in bytes."""


class ExecutionBackend(Protocol):
    """Opens sandboxes on one kind of machine."""

    @property
    def isolation(self) -> str:
        """How commands are isolated from this machine, in words for people; `none` if they are not
        isolated."""
        ...

    async def check(self) -> Sequence[BackendFinding]:
        """Finds out whether commands can run here, and changes nothing. An `error` among the
        findings means that all commands will be refused."""
        ...

    async def open(self, scope: SandboxScope) -> Sandbox:
        """Returns the scope's sandbox. The method is called for every turn, so slow work must be
        postponed until the sandbox is first used."""
        ...

    async def end(self, handle: str) -> bool:
        """Ends a foreground command that a dead gateway left running. Returns False if the
        command is not running any more.

        The handle may come from another backend, or from the time before a reboot. For such a
        handle, the method returns False.
        """
        ...

    async def sandboxes(self) -> Sequence[SandboxInfo]:
        """Returns the sandboxes that this backend keeps, the most recently used first. The result
        is empty if the backend keeps no files of its own."""
        ...

    async def reset(self, id: str) -> bool:
        """Ends the processes of a sandbox and deletes its files. Returns False if there is no such
        sandbox."""
        ...

    async def discard(self, scope: SandboxScope) -> None:
        """Deletes the files of the scope's sandbox, unless other sessions share it. The method is
        called after a stateless request, whose files no later turn can use."""
        ...

    async def close_idle(self, seconds: float) -> int:
        """Shuts down the sandboxes that were not used for this number of seconds and run no
        command. Their files are kept, and the next use starts them again. Returns how many
        sandboxes were shut down."""
        ...

    async def aclose(self) -> None:
        """Releases the resources that the backend holds in this process, such as connections. The
        background processes of the sandboxes continue."""
        ...


class CloudAccount(Value):
    """An account at a provider of remote sandboxes, and the properties of the sandboxes that are
    created there."""

    image: str = ""
    """The container image of the sandboxes."""
    key_id: str = ""
    """The public part of the key, if the key has two parts."""
    key: str = ""
    """The secret part of the key; empty if there is no account."""
    url: str = ""
    """The address of the provider's API; empty if the provider has only one address."""
    cpus: float = 1.0
    """Number of processors of a sandbox."""

    def __repr__(self) -> str:
        return f"CloudAccount(image={self.image!r})"


class BackendOptions(Value):
    """The options that every backend is created with."""

    processes: Path
    """Folder that stores the records of background processes."""
    environment: Mapping[str, str]
    """The environment variables that commands see."""
    secrets: Mapping[str, str] = {}
    """Environment variables that commands see in addition to `environment`. Their values are
    redacted in all output."""
    sudo_password: str = ""
    """The password that a backend without isolation gives to sudo and to no other program; empty
    for none."""
    sandboxes: Path | None = None
    """Folder in which a backend may keep the files of its sandboxes. Each sandbox has the subfolder
    `<backend>/<sandbox id>`. If None, the folder is `sandboxes` in the parent folder of
    `processes`."""
    sharing: Sharing = "session"
    own_workspaces: bool = False
    """Whether each sandbox has a workspace of its own, which replaces the scope's workspace. If
    False, all sandboxes work in the workspace of their scope."""
    hidden: tuple[Path, ...] = ()
    """Folders on this machine that commands in a sandbox can't see, even if they are inside the
    workspace or a mount."""
    limits: CommandLimits = CommandLimits()
    mounts: tuple[Mount, ...] = ()
    network: NetworkPolicy = NetworkPolicy()
    modal: CloudAccount = CloudAccount()
    daytona: CloudAccount = CloudAccount()
    clients: ClientOptions = ClientOptions()


class BackendManifest(Value):
    """A backend that can be chosen in the settings."""

    name: str
    """The value of `terminal.backend` that selects this backend."""
    make: Callable[[BackendOptions], ExecutionBackend]
