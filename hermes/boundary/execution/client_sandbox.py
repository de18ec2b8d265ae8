"""A sandbox whose commands run in a container or on another machine."""

import hashlib
import os
from collections.abc import Mapping, Sequence
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
from hermes.boundary.execution.local import LocalProcess
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
    """The folders and scripts of commands, at the paths at which commands see them."""

    async def folder(self, workdir: str) -> str:
        """Returns the folder in which a command begins. Raises ToolFailed if it is not a folder of
        the workspace."""
        ...

    async def scripts(self, folder: str, names: Sequence[str]) -> tuple[Script, ...]:
        """Returns the scripts with these names, for a command that begins in the folder. Raises
        ToolFailed if one of them is not a file that can be approved."""
        ...


class CommandSetting(Value):
    """The properties that all commands of a sandbox share."""

    backend: str
    scope: SandboxScope
    environment: Mapping[str, str]
    secrets: Mapping[str, str]
    sandbox: str
    """The id of the sandbox."""
    private_files: bool

    def variables(self) -> dict[str, str]:
        """Returns the variables that commands see in addition to the variables of the machine on
        which they run."""
        return {**variables_elsewhere(self.environment), **self.secrets}


def variables_elsewhere(environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables without those that describe this machine."""
    return {name: value for name, value in environment.items() if name not in _OWN_VARIABLES}


class ClientSandbox:
    """The files and commands of one scope: a session, a person or an agent, as the settings say."""

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
        self._commands = ClientCommands(machine)

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
        return await self._commands.run(wanted, seconds, observer, check)

    async def start(
        self, command: str, *, workdir: str = ".", place: CommandPlace | None = None
    ) -> "ClientProcess":
        wanted = await self._command(command, workdir)
        await self._machine.prepare()
        await self._check(place, workdir)
        prepared = orders(wanted.command, wanted.folder, wanted.environment)
        folder, limit = self._machine.files
        limits = CommandLimits(
            processes=0, memory=0, cpu_seconds=0, file_bytes=0, workspace_bytes=limit
        )
        mark = new_id()
        launch = CommandLaunch(
            arguments=supervised(self._machine, mark, "background"),
            environment=self._machine.environment,
            folder=Path("/"),
            restrictions=Restrictions(
                limits=limits if folder else None,
                folders=(folder,) if folder else (),
                wrapped=True,
            ),
            sandbox=self._setting.sandbox,
            secrets=tuple(self._setting.secrets.values()),
            input=prepared + b"go\n",
            mark=mark,
        )
        record = await self._background.start(command, launch, self._setting.scope)
        return self._process(record.id)

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
        return ClientProcess(id, self._setting.scope, self._background, self._commands)

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

    def __init__(
        self, id: str, scope: SandboxScope, background: Background, commands: ClientCommands
    ) -> None:
        self.id = id
        self._session = scope.session
        self._background = background
        self._commands = commands
        self._client = LocalProcess(id, scope, background)

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
            await self._commands.end(record.mark)
            status = await self._background.kill(self.id, self._session)
        return status

    async def _order(self, order: bytes) -> None:
        try:
            await self._client.write(order)
        except ToolFailed:
            # The process has ended, or its client does not read. Then it is ended by its mark.
            return
