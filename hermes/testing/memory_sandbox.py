"""An execution backend whose files are in memory and whose commands run in its own small shell.

The object `MemoryMachine` stays when a backend is replaced, as a remote machine keeps running when
a gateway is restarted:

    async with MemoryMachine() as machine:
        backend = MemoryBackend(machine)
"""

import hashlib
import re
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import PurePosixPath
from types import TracebackType

import anyio
import anyio.abc
import anyio.to_process

from hermes.boundary.scan import SKIPPED, Hit, Scan, ScanTask
from hermes.testing.memory_shell import (
    MemoryFiles,
    MemoryLink,
    MemoryNode,
    MemoryShell,
    ShellError,
    joined,
)
from hermes.text.console import console_text
from hermes.types.errors import ToolFailed
from hermes.types.execution import (
    LARGEST_FILE,
    BackendFinding,
    CommandObserver,
    CommandOutcome,
    CommandPlace,
    FileInfo,
    ProcessOutput,
    ProcessStatus,
    SandboxInfo,
    SandboxScope,
    Script,
    SearchHit,
    SearchQuery,
    SearchResult,
)
from hermes.types.identity import new_id

REPORT_SECONDS = 0.5
"""Seconds between two reports of a running command's progress to its observer."""
KILLED = -9


class MemoryCommand:
    """A command that the machine runs, in the foreground or in the background."""

    def __init__(self, scope: SandboxScope, text: str) -> None:
        self.scope = scope
        self.text = text
        self.output = bytearray()
        self.code: int | None = None
        self.began_at = time.time()
        self.ended_at: float | None = None
        self.ended = anyio.Event()
        self.lines, self._input = anyio.create_memory_object_stream[bytes](100)
        self._scope = anyio.CancelScope()

    async def run(self, shell: Callable[["MemoryCommand"], MemoryShell]) -> None:
        with self._scope, self._input, self.lines:
            self.code = await shell(self).run(self.text)
        self.code = KILLED if self.code is None else self.code
        self.ended_at = time.time()
        self.ended.set()

    async def read_line(self) -> bytes:
        try:
            return await self._input.receive()
        except anyio.EndOfStream:
            return b""

    async def kill(self) -> None:
        self._scope.cancel()
        with anyio.CancelScope(shield=True):
            await self.ended.wait()

    @property
    def seconds(self) -> float:
        return (self.ended_at or time.time()) - self.began_at


class MemoryMachine:
    """Keeps files and runs commands until the `async with` block ends."""

    def __init__(self) -> None:
        self._trees: dict[str, MemoryFiles] = {}
        self._stack = AsyncExitStack()
        self._group: anyio.abc.TaskGroup = anyio.create_task_group()
        self.foreground: dict[str, MemoryCommand] = {}
        """Maps the handle of each running foreground command to the command."""
        self.background: dict[str, MemoryCommand] = {}
        """Maps the id of each background process to its command, even after the process has
        ended."""

    async def __aenter__(self) -> "MemoryMachine":
        await self._stack.enter_async_context(self._group)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._group.cancel_scope.cancel()
        await self._stack.__aexit__(kind, error, trace)

    def files(self, scope: SandboxScope) -> MemoryFiles:
        return self._trees.setdefault(scope.workspace, MemoryFiles())

    def begin(self, command: MemoryCommand, folder: str) -> None:
        files, root = self.files(command.scope), command.scope.workspace

        def shell(command: MemoryCommand) -> MemoryShell:
            return MemoryShell(files, root, folder, command.output.extend, command.read_line)

        self._group.start_soon(command.run, shell)


class MemoryBackend:
    isolation = "memory"

    def __init__(self, machine: MemoryMachine) -> None:
        self._machine = machine

    async def check(self) -> Sequence[BackendFinding]:
        return (BackendFinding(level="ok", text="Commands run in memory."),)

    async def open(self, scope: SandboxScope) -> "MemorySandbox":
        return MemorySandbox(scope, self._machine)

    async def end(self, handle: str) -> bool:
        command = self._machine.foreground.pop(handle, None)
        if command is None or command.ended.is_set():
            return False
        await command.kill()
        return True

    async def sandboxes(self) -> Sequence[SandboxInfo]:
        return ()

    async def reset(self, id: str) -> bool:
        return False

    async def discard(self, scope: SandboxScope) -> None:
        """Does nothing, because the files disappear together with the fake machine."""

    async def close_idle(self, seconds: float) -> int:
        return 0

    async def aclose(self) -> None:
        """Does nothing, because the machine outlives its backends."""


class MemorySandbox:
    def __init__(self, scope: SandboxScope, machine: MemoryMachine) -> None:
        self._scope = scope
        self._machine = machine
        self._nodes = machine.files(scope).nodes

    async def read(self, path: str) -> bytes:
        node = self._found(path)
        if not isinstance(node, bytes):
            raise ToolFailed(f"{path!r} is not a file.")
        return node

    async def write(self, path: str, data: bytes, *, expected: bytes | None = None) -> bool:
        if len(data) > LARGEST_FILE:
            raise ToolFailed(f"{path!r} is too large.")
        parts = self._parts(path)
        name = "/".join(parts)
        if expected is not None and self._found(path) != expected:
            raise ToolFailed(f"{path!r} was changed in the meantime: read it again.")
        if name in self._nodes and not isinstance(self._nodes[name], bytes):
            raise ToolFailed(f"{path!r} is not a file.")
        above = ["/".join(parts[:count]) for count in range(1, len(parts))]
        if any(self._nodes.get(folder) is not None for folder in above):
            raise ToolFailed(f"{path!r} goes through a file or a link.")
        self._nodes.update(dict.fromkeys(above))
        new = name not in self._nodes
        self._nodes[name] = data
        return new

    async def list(self, path: str) -> Sequence[FileInfo]:
        if self._found(path) is not None:
            raise ToolFailed(f"{path!r} is not a folder.")
        folder = "/".join(self._parts(path))
        inside = [name for name in self._nodes if name and name.rpartition("/")[0] == folder]
        return [_info(name, self._nodes[name]) for name in sorted(inside)]

    async def stat(self, path: str) -> FileInfo | None:
        name = "/".join(self._parts(path))
        self._check_folders(path)
        return _info(name, self._nodes[name]) if name in self._nodes else None

    async def remove(self, path: str) -> None:
        name = "/".join(self._parts(path))
        self._found(path)
        if not name or any(other.startswith(f"{name}/") for other in self._nodes):
            raise ToolFailed(f"{path!r} is not empty, or is the workspace itself.")
        del self._nodes[name]

    async def search(self, query: SearchQuery) -> SearchResult:
        place = "/".join(self._parts(query.path))
        chosen = self._found(query.path)
        try:
            re.compile(query.pattern)
        except re.error as error:
            raise ToolFailed(f"The pattern is not a regular expression: {error}.") from error
        files = {place: chosen} if isinstance(chosen, bytes) else self._below(place)
        task = ScanTask(
            pattern=query.pattern,
            path=place,
            names=query.names,
            glob="" if place in files else query.glob,
            limit=query.limit,
            seconds=query.seconds,
        )
        hits: list[Hit] = []
        remarks = [f"stopped after {query.seconds:g} s"]
        with anyio.move_on_after(query.seconds):
            # The search runs in another process, because Python can't interrupt the match of a
            # regular expression. Only a kill of the process ends such a match.
            hits = await anyio.to_process.run_sync(_matches, files, task, cancellable=True)
            remarks = [f"stopped at {query.limit} results"] * (len(hits) > query.limit)
        return SearchResult(
            hits=tuple(
                SearchHit(path=path, line=line, text=text)
                for path, line, text in hits[: query.limit]
            ),
            remarks=tuple(remarks),
        )

    private_files = True

    async def locate(self, workdir: str, scripts: Sequence[str]) -> CommandPlace:
        folder = self._folder("", workdir)
        found = [joined(folder, one) for one in scripts]
        return CommandPlace(
            backend="memory",
            folder=folder,
            scripts=tuple([Script(path=one, digest=await self._hash(one)) for one in found]),
        )

    async def _hash(self, path: str) -> str:
        found = await self.stat(path)
        return "" if found is None else hashlib.sha256(await self.read(path)).hexdigest()

    async def _check(self, place: CommandPlace | None, workdir: str) -> None:
        if place and place != await self.locate(workdir, [f"/{one.path}" for one in place.scripts]):
            raise ToolFailed(
                "The command was not run: its folder or one of its scripts has changed since the"
                " approval."
            )

    async def run(
        self,
        command: str,
        observer: CommandObserver,
        *,
        workdir: str = ".",
        seconds: float,
        place: CommandPlace | None = None,
    ) -> CommandOutcome:
        folder = self._folder(command, workdir)
        handle = f"memory:{new_id()}"
        await observer.started(handle)
        await self._check(place, workdir)
        running = MemoryCommand(self._scope, command)
        running.lines.close()
        self._machine.foreground[handle] = running
        self._machine.begin(running, folder)
        try:
            with anyio.move_on_after(seconds) as limit:
                await _follow(running, observer)
        finally:
            await running.kill()
            self._machine.foreground.pop(handle, None)
        assert running.code is not None
        return CommandOutcome(
            text=console_text(bytes(running.output)),
            code=running.code,
            seconds=running.seconds,
            timed_out=limit.cancelled_caught,
        )

    async def start(
        self, command: str, *, workdir: str = ".", place: CommandPlace | None = None
    ) -> "MemoryProcess":
        folder = self._folder(command, workdir)
        await self._check(place, workdir)
        id, started = new_id(), MemoryCommand(self._scope, command)
        self._machine.background[id] = started
        self._machine.begin(started, folder)
        return MemoryProcess(id, started)

    async def processes(self) -> Sequence[ProcessStatus]:
        ours = [id for id, one in self._machine.background.items() if self._owns(one)]
        return [await (await self.process(id)).status() for id in ours]

    async def process(self, id: str) -> "MemoryProcess":
        command = self._machine.background.get(id)
        if command is None or not self._owns(command):
            raise ToolFailed(f"There is no process {id!r} in this conversation.")
        return MemoryProcess(id, command)

    async def shell(self) -> Sequence[str]:
        raise ToolFailed("This sandbox is in memory, so no shell can be opened in it.")

    def _owns(self, command: MemoryCommand) -> bool:
        return command.scope.session == self._scope.session

    def _parts(self, path: str) -> Sequence[str]:
        wanted, root = PurePosixPath(path), PurePosixPath(self._scope.workspace)
        if wanted.is_absolute() and wanted.is_relative_to(root):
            wanted = wanted.relative_to(root)
        if wanted.is_absolute() or ".." in wanted.parts:
            raise ToolFailed(f"{path!r} is outside the workspace {root}.")
        if "\0" in path or len(path) > 4096:
            raise ToolFailed(f"{path[:80]!r} can't be the path of a file.")
        return wanted.parts

    def _found(self, path: str) -> MemoryNode:
        name = "/".join(self._parts(path))
        self._check_folders(path)
        if name not in self._nodes:
            raise ToolFailed(f"{path!r}: No such file or directory.")
        return self._nodes[name]

    def _check_folders(self, path: str) -> None:
        """Raises ToolFailed if the path goes through a link or a file."""
        *above, _ = self._parts(path) or ("",)
        for count in range(1, len(above) + 1):
            if self._nodes.get("/".join(above[:count])) is not None:
                raise ToolFailed(f"{path!r} goes through a file or a link.")

    def _below(self, folder: str) -> dict[str, bytes]:
        within = f"{folder}/" if folder else ""
        return {
            path: node
            for path, node in sorted(self._nodes.items())
            if path.startswith(within)
            and isinstance(node, bytes)
            and not SKIPPED.intersection(path.removeprefix(within).split("/")[:-1])
        }

    def _folder(self, command: str, workdir: str) -> str:
        if "\0" in command + workdir:
            raise ToolFailed("A command can't contain a NUL character.")
        try:
            folder = joined("", "/".join(self._parts(workdir)))
            self._machine.files(self._scope).check_folder(folder)
        except ShellError as error:
            raise ToolFailed(f"workdir {workdir!r} is not a folder of the workspace.") from error
        return folder


class MemoryProcess:
    def __init__(self, id: str, command: MemoryCommand) -> None:
        self.id = id
        self._command = command

    async def status(self) -> ProcessStatus:
        command = self._command
        return ProcessStatus(
            id=self.id,
            command=command.text,
            running=not command.ended.is_set(),
            code=command.code,
            seconds=command.seconds,
        )

    async def output(self) -> ProcessOutput:
        return ProcessOutput(data=bytes(self._command.output), whole=True)

    async def write(self, data: bytes) -> None:
        try:
            self._command.lines.send_nowait(data)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
            raise ToolFailed(f"Process {self.id} takes no input: it has ended.") from error

    async def wait(self, seconds: float) -> ProcessStatus:
        with anyio.move_on_after(seconds):
            await self._command.ended.wait()
        return await self.status()

    async def kill(self) -> ProcessStatus:
        await self._command.kill()
        return await self.status()


async def _follow(command: MemoryCommand, observer: CommandObserver) -> None:
    """Reports the last line of the output to the observer, again and again, until the command has
    ended."""
    shown = ""
    while not command.ended.is_set():
        with anyio.move_on_after(REPORT_SECONDS):
            await command.ended.wait()
        line = console_text(bytes(command.output)).rstrip().rpartition("\n")[2]
        if line and line != shown and not command.ended.is_set():
            observer.progress(line)
            shown = line


def _info(path: str, node: MemoryNode) -> FileInfo:
    name = path.rpartition("/")[2] or "."
    match node:
        case bytes():
            return FileInfo(name=name, kind="file", size=len(node), modified_at=0.0)
        case MemoryLink():
            return FileInfo(name=name, kind="link", size=0, modified_at=0.0)
        case None:
            return FileInfo(name=name, kind="folder", size=0, modified_at=0.0)


def _matches(files: dict[str, bytes], task: ScanTask) -> list[Hit]:
    """Returns the hits. If there are more hits than `task.limit`, returns more hits than the limit,
    so that the caller notices this."""
    scan, hits = Scan(task), list[Hit]()
    for path, data in files.items():
        if scan.selects(path):
            hits += scan.named(path) if task.names else scan.inside(path, data)
        if len(hits) > task.limit:
            break
    return hits
