"""The protocols behind which tools read and write files and run commands."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, Protocol

from hermes.types.identity import AgentId, SessionKey
from hermes.types.value import Value

LARGEST_FILE = 10_000_000
"""Bytes of a file that can be read, written or searched."""


class SandboxScope(Value):
    """The agent, session and workspace that a sandbox is opened for."""

    agent: AgentId
    session: SessionKey
    """Background processes belong to it; other sessions can't see them."""
    workspace: str
    """The folder that paths are relative to, as the backend names it."""
    home: str = ""
    """The agent's own folder on this machine. File operations refuse it."""


class FileInfo(Value):
    """One entry of a folder."""

    name: str
    kind: Literal["file", "folder", "link", "other"]
    """`other` is a pipe, a socket or a device."""
    size: int
    """Bytes; meaningful for files only."""
    modified_at: float
    """Seconds since 1970."""


class SearchQuery(Value):
    pattern: str
    """A regular expression in Python's syntax, applied to each line."""
    path: str = "."
    """The file or folder that is searched."""
    names: bool = False
    """Match the paths of files instead of their contents."""
    glob: str = ""
    """Search only files whose name, or whose path if the glob has a slash, matches."""
    limit: int = 100
    """The search stops after so many hits."""
    seconds: float = 10.0
    """The search stops after this time."""


class SearchHit(Value):
    path: str
    """Relative to the workspace; quoted like a Python string if it is not printable."""
    line: int = 0
    """From 1; 0 for a hit in the path itself."""
    text: str = ""
    """The line, or the part of a long line around the match."""


class SearchResult(Value):
    hits: tuple[SearchHit, ...] = ()
    remarks: tuple[str, ...] = ()
    """Reasons why there may be more hits than these."""


class CommandOutcome(Value):
    """How a foreground command ended."""

    text: str
    """Its output and errors, without terminal escapes. The middle of a long text is left out."""
    code: int
    """The exit code, negative for the signal that ended it."""
    seconds: float
    timed_out: bool
    left: int = 0
    """Number of processes that it left running, and that were killed."""


class ProcessStatus(Value):
    """The state of a background process."""

    id: str
    command: str
    running: bool
    code: int | None
    """The exit code, negative for a signal. None while it runs, and when it is unknown."""
    seconds: float
    """Time that it has run."""


class ProcessOutput(Value):
    data: bytes
    """The latest output, with terminal escapes."""
    whole: bool
    """False when earlier output is no longer kept."""


class CommandObserver(Protocol):
    """Follows one foreground command. A ToolContext is an observer."""

    async def started(self, handle: str) -> None:
        """Commits the handle. The command begins after this has returned."""
        ...

    def progress(self, text: str) -> None:
        """Receives the last line of output, at most twice a second."""
        ...


class SandboxProcess(Protocol):
    """A background process of the sandbox's session.

    It outlives the turn and the gateway. That of a stateless request ends with the request.
    """

    @property
    def id(self) -> str: ...

    async def status(self) -> ProcessStatus: ...

    async def output(self) -> ProcessOutput: ...

    async def write(self, data: bytes) -> None:
        """Sends input; ToolFailed if the process has ended or does not read."""
        ...

    async def wait(self, seconds: float) -> ProcessStatus:
        """The state when it has ended, or after so many seconds."""
        ...

    async def kill(self) -> ProcessStatus:
        """Ends the process and everything that it started; SIGTERM comes first."""
        ...


class Sandbox(Protocol):
    """Files and commands of one scope. Both see the same files.

    Paths are relative to the workspace, or absolute inside it. File operations never leave the
    workspace and follow no symbolic link. An operation that can't be done raises ToolFailed.
    """

    async def read(self, path: str) -> bytes:
        """The whole file."""
        ...

    async def write(self, path: str, data: bytes, *, expected: bytes | None = None) -> bool:
        """Replaces the file atomically and creates missing folders; True if the file is new.

        With `expected`, ToolFailed if the file does not hold exactly that any more.
        """
        ...

    async def list(self, path: str) -> Sequence[FileInfo]:
        """The entries of the folder, by name."""
        ...

    async def stat(self, path: str) -> FileInfo | None:
        """None if nothing is there."""
        ...

    async def remove(self, path: str) -> None:
        """Deletes a file, a symbolic link or an empty folder."""
        ...

    async def search(self, query: SearchQuery) -> SearchResult:
        """Ends in time, whatever the pattern."""
        ...

    async def run(
        self, command: str, observer: CommandObserver, *, workdir: str = ".", seconds: float
    ) -> CommandOutcome:
        """Runs a shell command without input, for so many seconds at most.

        When it returns, raises or is cancelled, nothing that the command started is running.
        """
        ...

    async def start(self, command: str, *, workdir: str = ".") -> SandboxProcess:
        """Starts a shell command in the background."""
        ...

    async def processes(self) -> Sequence[ProcessStatus]:
        """The background processes of the session, the oldest first."""
        ...

    async def process(self, id: str) -> SandboxProcess:
        """ToolFailed if the session has no such background process."""
        ...


class ExecutionBackend(Protocol):
    """One kind of machine that tools act on."""

    @property
    def isolation(self) -> str:
        """How commands are isolated from this machine, as people are told; `none` if not at all."""
        ...

    async def open(self, scope: SandboxScope) -> Sandbox:
        """The scope's sandbox. Called for every turn, so it defers slow work to the first use."""
        ...

    async def end(self, handle: str) -> bool:
        """Ends a foreground command that a dead gateway left running; False if none runs.

        The handle may come from another backend, or from before a reboot.
        """
        ...


class BackendOptions(Value):
    """The arguments with which every backend is created."""

    processes: Path
    """Folder for records of background processes."""
    environment: Mapping[str, str]
    """The variables that commands see."""


class BackendManifest(Value):
    """A backend that can be chosen in the settings."""

    name: str
    """The value of `terminal.backend` that selects it."""
    make: Callable[[BackendOptions], ExecutionBackend]
