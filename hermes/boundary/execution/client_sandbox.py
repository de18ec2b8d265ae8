"""A sandbox whose commands run in a container or on another machine."""

import hashlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Protocol

import anyio
import anyio.to_thread

from hermes.boundary.execution.background import Background
from hermes.boundary.execution.client_commands import (
    ClientCommand,
    ClientCommands,
    Machine,
    supervised,
)
from hermes.boundary.execution.command_place import PLACE_CHANGED
from hermes.boundary.execution.launch import CommandLaunch, Restrictions
from hermes.boundary.execution.local import LocalProcess, with_remark
from hermes.boundary.execution.process import KILL_GRACE
from hermes.boundary.execution.shell_supervisor import input_lines, orders
from hermes.types.errors import ToolFailed
from hermes.types.execution import (
    CommandLimits,
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

_OWN_VARIABLES = frozenset({"HOME", "LOGNAME", "PATH", "SHELL", "TMPDIR", "USER"})
"""Variables that describe this machine. Commands on another machine get the values of that
machine."""


class SandboxFiles(Protocol):
    """The files of a sandbox. The methods are those of `Sandbox`."""

    async def read(self, path: str) -> bytes: ...

    async def write(self, path: str, data: bytes, *, expected: bytes | None = None) -> bool: ...

    async def list(self, path: str) -> Sequence[FileInfo]: ...

    async def stat(self, path: str) -> FileInfo | None: ...

    async def remove(self, path: str) -> None: ...

    async def search(self, query: SearchQuery) -> SearchResult: ...


class SandboxPlaces(Protocol):
    """Finds the folders and scripts that commands use. Their paths are the paths that commands
    see."""

    async def folder(self, workdir: str) -> str:
        """Returns the folder in which a command begins. Raises ToolFailed if `workdir` is not a
        folder of the workspace."""
        ...

    async def scripts(self, folder: str, names: Sequence[str]) -> tuple[Script, ...]:
        """Returns the scripts with these names, for a command that begins in the folder. Raises
        ToolFailed if one of them is not a file that can be approved."""
        ...


class PinnedMachine(Protocol):
    """Finds a machine for one command. On that machine, nobody can replace the scripts that a
    person approved for the command."""

    async def __call__(self, place: CommandPlace, *, lasting: bool) -> Machine | None:
        """Returns the machine; None if the machine of the sandbox already protects the scripts.
        `lasting` means that the command runs in the background. Raises ToolFailed if a script is
        not the approved one."""
        ...


async def no_pinned_machine(place: CommandPlace, *, lasting: bool) -> Machine | None:
    """The `PinnedMachine` of a backend that has no special machine for approved scripts. It always
    returns None."""
    return None


class CommandSetting(Value):
    """The properties that all commands of a sandbox share."""

    backend: str
    scope: SandboxScope
    environment: Mapping[str, str]
    secrets: Mapping[str, str]
    sandbox: str
    """The id of the sandbox."""
    private_files: bool
    end: Callable[[str], Awaitable[bool]]
    """Ends the command with this handle. Returns whether it was running."""
    pinned: PinnedMachine = no_pinned_machine
    remark: Callable[[], str] = lambda: ""
    """Returns a text that is added to the output of a foreground command."""

    def variables(self) -> dict[str, str]:
        """Returns the variables that commands see in addition to the variables of the machine on
        which they run."""
        return {**variables_elsewhere(self.environment), **self.secrets}


def variables_elsewhere(environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables without those that describe this machine."""
    return {name: value for name, value in environment.items() if name not in _OWN_VARIABLES}


class ClientSandbox:
    """The files and commands of one session, in a container or on another machine. The setting
    `terminal.scope` says which sessions share a container."""

    def __init__(
        self,
        setting: CommandSetting,
        machine: Machine,
        files: SandboxFiles,
        places: SandboxPlaces,
        background: Background,
    ) -> None:
        self._setting = setting
        self._machine = machine
        self._files = files
        self._places = places
        self._background = background

    @property
    def private_files(self) -> bool:
        return self._setting.private_files

    async def read(self, path: str) -> bytes:
        return await self._files.read(path)

    async def write(self, path: str, data: bytes, *, expected: bytes | None = None) -> bool:
        return await self._files.write(path, data, expected=expected)

    async def list(self, path: str) -> Sequence[FileInfo]:
        return await self._files.list(path)

    async def stat(self, path: str) -> FileInfo | None:
        return await self._files.stat(path)

    async def remove(self, path: str) -> None:
        await self._files.remove(path)

    async def search(self, query: SearchQuery) -> SearchResult:
        return await self._files.search(query)

    async def locate(self, workdir: str, scripts: Sequence[str]) -> CommandPlace:
        folder = await self._places.folder(workdir)
        return CommandPlace(
            backend=self._setting.backend,
            folder=folder,
            environment=tuple(
                (name, hashlib.sha256(os.fsencode(value)).hexdigest())
                for name, value in sorted(self._setting.variables().items())
            ),
            scripts=await self._places.scripts(folder, scripts),
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
        wanted = await self._command(command, workdir)
        check = partial(self._check, place, workdir)
        async with self._machine_for(place) as machine:
            outcome = await ClientCommands(machine).run(wanted, seconds, observer, check)
        return with_remark(outcome, self._setting.remark())

    async def start(
        self, command: str, *, workdir: str = ".", place: CommandPlace | None = None
    ) -> "ClientProcess":
        wanted = await self._command(command, workdir)
        async with self._machine_for(place, lasting=True) as machine:
            await machine.prepare()
            await self._check(place, workdir)
            launch = self._launch(wanted, machine)
            record = await self._background.start(command, launch, self._setting.scope)
        return self._process(record.id)

    @asynccontextmanager
    async def _machine_for(
        self, place: CommandPlace | None, *, lasting: bool = False
    ) -> AsyncIterator[Machine]:
        """Yields the machine for a command. `place` is the place (folder, environment and scripts)
        that a person approved, if the command has one. A command with such a place can get a
        separate machine. At the end of the block, the separate machine is cleared: everything that
        runs on it ends. If the command is `lasting` (it outlives the block), the machine is cleared
        only after an error."""
        own = await self._setting.pinned(place, lasting=lasting) if place else None
        begun = False
        try:
            yield own or self._machine
            begun = True
        finally:
            if own and not (lasting and begun):
                with anyio.CancelScope(shield=True):
                    await own.clear()

    def _launch(self, wanted: ClientCommand, machine: Machine) -> CommandLaunch:
        """Returns how to start the client of a background command."""
        prepared = orders(wanted.command, wanted.folder, wanted.environment)
        folder, limit = machine.files
        limits = CommandLimits(
            processes=0, memory=0, cpu_seconds=0, file_bytes=0, workspace_bytes=limit
        )
        mark = new_id()
        return CommandLaunch(
            arguments=supervised(machine, mark, "background"),
            environment=machine.environment,
            folder=Path("/"),
            restrictions=Restrictions(
                limits=limits if folder else None,
                folders=(folder,) if folder else (),
                wrapped=True,
            ),
            sandbox=self._setting.sandbox,
            secrets=tuple(self._setting.secrets.values()),
            input=prepared + b"go\n",
            handle=f"{machine.name}:{mark}",
        )

    async def processes(self) -> Sequence[ProcessStatus]:
        session = self._setting.scope.session
        return await anyio.to_thread.run_sync(self._background.of, session)

    async def process(self, id: str) -> "ClientProcess":
        session = self._setting.scope.session
        await anyio.to_thread.run_sync(self._background.find, id, session)
        return self._process(id)

    async def shell(self) -> Sequence[str]:
        await self._machine.prepare()
        return self._machine.terminal(await self._places.folder("."))

    def _process(self, id: str) -> "ClientProcess":
        return ClientProcess(id, self._setting, self._background)

    async def _check(self, place: CommandPlace | None, workdir: str) -> None:
        """Raises ToolFailed if the command would not run in the approved place."""
        if place is None:
            return
        now = await self.locate(workdir, [])
        if now.folder != place.folder:
            raise ToolFailed(PLACE_CHANGED.format("the folder"))
        if now.backend != place.backend or now.environment != place.environment:
            raise ToolFailed(PLACE_CHANGED.format("the environment"))
        found = await self._places.scripts("/", [one.path for one in place.scripts])
        for script, approved in zip(found, place.scripts, strict=True):
            if script != approved:
                raise ToolFailed(PLACE_CHANGED.format(approved.path))

    async def _command(self, command: str, workdir: str) -> ClientCommand:
        if "\0" in command + workdir:
            raise ToolFailed("A command can't contain a NUL character.")
        folder = await self._places.folder(workdir)
        return ClientCommand(command=command, folder=folder, environment=self._setting.variables())


class ClientProcess:
    """A background process on another machine. A program on this machine has started the process,
    follows it, and outlives the gateway."""

    def __init__(self, id: str, setting: CommandSetting, background: Background) -> None:
        self.id = id
        self._session = setting.scope.session
        self._background = background
        self._end = setting.end
        self._client = LocalProcess(id, setting.scope, background)

    async def status(self) -> ProcessStatus:
        return await self._client.status()

    async def output(self) -> ProcessOutput:
        return await self._client.output()

    async def write(self, data: bytes) -> None:
        for line in input_lines(data):
            await self._client.write(line)

    async def wait(self, seconds: float) -> ProcessStatus:
        return await self._client.wait(seconds)

    async def kill(self) -> ProcessStatus:
        for order in (b"term\n", b"kill\n"):
            if (status := await self.status()).running:
                await self._order(order)
                status = await self.wait(KILL_GRACE)
        if status.running or status.code is None:
            record = self._background.record(self.id, self._session)
            await self._end(record.handle)
            status = await self._background.kill(self.id, self._session)
        return status

    async def _order(self, order: bytes) -> None:
        try:
            await self._client.write(order)
        except ToolFailed:
            # The process has ended, or its client does not read the order. In the second case,
            # `kill` later ends the process by its handle.
            return
