"""Files and commands on a remote machine, through a small agent that runs there."""

import base64
import os
import time
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import TypeVar

import anyio

from hermes.boundary.execution.command_place import PLACE_CHANGED
from hermes.boundary.execution.environment import VISIBLE_VARIABLES
from hermes.boundary.execution.remote_calls import RemoteCalls
from hermes.boundary.execution.remote_foreground import FOLLOW_SECONDS, RemoteForeground
from hermes.boundary.search import search_result, search_task
from hermes.types.errors import ToolFailed
from hermes.types.execution import (
    LARGEST_FILE,
    BackendOptions,
    CommandObserver,
    CommandOutcome,
    CommandPlace,
    FileInfo,
    ProcessOutput,
    ProcessStatus,
    SandboxScope,
    Script,
    SearchQuery,
    SearchResult,
)
from hermes.types.identity import new_id
from hermes.types.value import Value

T = TypeVar("T")


class _Data(Value):
    data: bytes


class _Written(Value):
    new: bool


class _Listed(Value):
    entries: tuple[FileInfo, ...]


class _Described(Value):
    entry: FileInfo | None


class _Located(Value):
    folder: str
    scripts: tuple[tuple[str, str], ...]


class _Found(Value):
    code: int
    output: bytes


class _Output(Value):
    data: bytes
    whole: bool


class _Process(Value):
    process: ProcessStatus


class _Processes(Value):
    processes: tuple[ProcessStatus, ...]


class _Done(Value):
    """The answer to a request that returns nothing."""


class RemoteSandbox:
    """The files and commands of one session on a remote machine. The setting `terminal.scope` says
    which sessions share the machine."""

    private_files = True

    def __init__(
        self, scope: SandboxScope, calls: RemoteCalls, options: BackendOptions, handle: str
    ) -> None:
        """`handle` is the text with which the handles of foreground commands begin."""
        self._scope = scope
        self._calls = calls
        self._options = options
        self._handle = handle
        self._backend = handle.partition(":")[0]

    async def read(self, path: str) -> bytes:
        return (await self._calls.call("read", _Data, {"path": path})).data

    async def write(self, path: str, data: bytes, *, expected: bytes | None = None) -> bool:
        if len(data) > LARGEST_FILE:
            raise ToolFailed(f"That is more than {LARGEST_FILE} bytes for {path!r}; write less.")
        known = None if expected is None else _encoded(expected)
        fields = {"path": path, "data": _encoded(data), "expected": known}
        return (await self._calls.call("write", _Written, fields)).new

    async def list(self, path: str) -> Sequence[FileInfo]:
        return (await self._calls.call("list", _Listed, {"path": path})).entries

    async def stat(self, path: str) -> FileInfo | None:
        return (await self._calls.call("stat", _Described, {"path": path})).entry

    async def remove(self, path: str) -> None:
        await self._calls.call("remove", _Done, {"path": path})

    async def search(self, query: SearchQuery) -> SearchResult:
        task = search_task(query)._asdict()
        found = await self._calls.call(
            "search", _Found, {"path": query.path, "task": task}, query.seconds
        )
        return search_result(query, found.code, found.output)

    async def locate(self, workdir: str, scripts: Sequence[str]) -> CommandPlace:
        fields = {"workdir": workdir, "scripts": list(scripts)}
        found = await self._calls.call("locate", _Located, fields)
        return CommandPlace(
            backend=self._backend,
            folder=found.folder,
            environment=self._hashes(),
            scripts=tuple(Script(path=path, digest=digest) for path, digest in found.scripts),
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
        fields = self._launch(command, workdir, seconds, place)
        id, since = new_id(), time.monotonic()
        await self._calls.machine.start()
        await observer.started(f"{self._handle}:{id}")
        running = RemoteForeground(self._calls, id, observer)
        try:
            result = await running.follow(fields)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await running.end()
            raise
        assert result.code is not None
        return CommandOutcome(
            text=running.output.text(),
            code=result.code,
            seconds=time.monotonic() - since,
            timed_out=result.timed_out,
            left=result.left,
        )

    async def start(
        self, command: str, *, workdir: str = ".", place: CommandPlace | None = None
    ) -> "RemoteProcess":
        fields = self._launch(command, workdir, None, place)
        id = new_id()
        await self._calls.call("start", _Done, {**fields, "id": id, "wait": 0.0})
        return RemoteProcess(id, self._calls, self._owner)

    async def processes(self) -> Sequence[ProcessStatus]:
        if not await self._calls.machine.exists():
            return ()
        return (await self._calls.call("processes", _Processes, {"owner": self._owner})).processes

    async def process(self, id: str) -> "RemoteProcess":
        if not await self._calls.machine.exists():
            raise ToolFailed(f"There is no process {id!r}: the sandbox is not running.")
        found = RemoteProcess(id, self._calls, self._owner)
        await found.status()
        return found

    async def shell(self) -> Sequence[str]:
        raise ToolFailed(
            "Hermes opens no shell in a remote sandbox: use the program or the web site of its"
            " provider."
        )

    @property
    def _owner(self) -> str:
        return str(self._scope.session)

    def _environment(self) -> dict[str, str]:
        """Returns the variables that commands see in addition to those of the remote machine."""
        # Variables such as PATH and HOME describe this machine, so remote commands do not get them.
        given = self._options.environment.items()
        chosen = {name: value for name, value in given if name not in VISIBLE_VARIABLES}
        return {**chosen, **self._options.secrets}

    def _hashes(self) -> tuple[tuple[str, str], ...]:
        given = sorted(self._environment().items())
        return tuple((name, sha256(os.fsencode(value)).hexdigest()) for name, value in given)

    def _launch(
        self, command: str, workdir: str, seconds: float | None, place: CommandPlace | None
    ) -> Mapping[str, object]:
        """Returns the fields of a request that starts a command."""
        if "\0" in command + workdir:
            raise ToolFailed("A command can't contain a NUL character.")
        if place and (place.backend, place.environment) != (self._backend, self._hashes()):
            raise ToolFailed(PLACE_CHANGED.format("the environment"))
        order = {
            "command": command,
            "owner": self._owner,
            "environment": self._environment(),
            "secrets": list(self._options.secrets.values()),
            "seconds": seconds,
        }
        scripts = [[one.path, one.digest] for one in place.scripts] if place else []
        approved = {"folder": place.folder, "scripts": scripts} if place else None
        return {"workdir": workdir, "order": order, "place": approved}


class RemoteProcess:
    """A background process on a remote machine."""

    def __init__(self, id: str, calls: RemoteCalls, owner: str) -> None:
        self.id = id
        self._calls = calls
        self._owner = owner

    async def status(self) -> ProcessStatus:
        return await self._await(0.0)

    async def output(self) -> ProcessOutput:
        found = await self._call("output", _Output, {})
        return ProcessOutput(data=found.data, whole=found.whole)

    async def write(self, data: bytes) -> None:
        await self._call("input", _Done, {"data": _encoded(data)})

    async def wait(self, seconds: float) -> ProcessStatus:
        deadline = time.monotonic() + seconds
        while True:
            pause = min(max(0.0, deadline - time.monotonic()), FOLLOW_SECONDS)
            status = await self._await(pause)
            if not status.running or time.monotonic() >= deadline:
                return status

    async def kill(self) -> ProcessStatus:
        return (await self._call("kill", _Process, {})).process

    async def _await(self, seconds: float) -> ProcessStatus:
        return (await self._call("process", _Process, {"wait": seconds}, seconds)).process

    async def _call(
        self, kind: str, answer: type[T], fields: Mapping[str, object], wait: float = 0.0
    ) -> T:
        named = {"id": self.id, "owner": self._owner, **fields}
        return await self._calls.call(kind, answer, named, wait)


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()
