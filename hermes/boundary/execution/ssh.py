"""The `ssh` backend: runs commands on another machine."""

import logging
from collections.abc import Sequence
from pathlib import PurePosixPath

import anyio.to_thread

from hermes.boundary.execution.background import Background
from hermes.boundary.execution.client_commands import ClientCommands
from hermes.boundary.execution.client_sandbox import ClientSandbox, CommandSetting
from hermes.boundary.execution.sandbox_folders import (
    SandboxFolder,
    delete_sandbox,
    known_sandboxes,
    sandbox_id,
)
from hermes.boundary.execution.ssh_connection import SSH_NAME, SshConnection
from hermes.boundary.execution.ssh_files import SshFiles
from hermes.types.errors import ToolFailed
from hermes.types.execution import (
    BackendFinding,
    BackendManifest,
    BackendOptions,
    SandboxInfo,
    SandboxScope,
)

log = logging.getLogger(__name__)

_PROBE = "[ -d /proc/self ] && grep --version >/dev/null 2>&1 && echo works"


class SshBackend:
    """Runs commands on another machine with the rights of an account there. The sandboxes have
    folders of their own, but the machine does not isolate them from each other."""

    def __init__(self, options: BackendOptions) -> None:
        self._options = options
        self._folders = (options.sandboxes or options.processes.parent / "sandboxes") / SSH_NAME
        self._connection = SshConnection(options.clients)
        self._commands = ClientCommands(self._connection)
        self._background = Background(options.processes)

    @property
    def isolation(self) -> str:
        return f"the account {self._connection.target} on another machine, not isolated there"

    async def check(self) -> Sequence[BackendFinding]:
        try:
            await self._connection.prepare()
            code, said = await self._commands.call(_PROBE)
        except ToolFailed as error:
            return (BackendFinding(level="error", text=str(error), hint=self._connection.advice),)
        if code or said.strip() != "works":
            text = f"Commands can't run on {self._connection.target}: a program is missing there."
            hint = "The machine needs Linux with sh, grep, sleep and python3."
            return (BackendFinding(level="error", text=text, hint=hint),)
        text = f"Commands run on {self._connection.target} with the rights of that account."
        return (BackendFinding(level="ok", text=text),)

    async def open(self, scope: SandboxScope) -> ClientSandbox:
        own = SandboxFolder(self._folders, scope, self._options.sharing)
        files = SshFiles(self._connection, self._root(own.id), scope.workspace, own.ensure)
        setting = CommandSetting(
            backend=self._connection.name,
            private_files=True,
            end=self.end,
            scope=scope,
            environment=self._options.environment,
            secrets=self._options.secrets,
            sandbox=own.id,
        )
        return ClientSandbox(setting, self._connection, files, files, self._background)

    def _root(self, id: str) -> str:
        return str(PurePosixPath(self._options.clients.ssh.folder, id))

    async def end(self, handle: str) -> bool:
        name, _, mark = handle.rpartition(":")
        if name != self._connection.name or not mark.isalnum():
            return False
        try:
            await self._connection.prepare()
            return await self._commands.end(mark)
        except ToolFailed as error:
            # Nothing more needs to be done: the supervisor on the other machine ends the command by
            # itself, because the connection to its gateway is gone.
            log.warning("a command of an earlier gateway could not be looked for: %s", error)
            return False

    async def sandboxes(self) -> Sequence[SandboxInfo]:
        """Returns the sandboxes. The sizes of their files are not known."""
        found = await anyio.to_thread.run_sync(lambda: list(known_sandboxes(self._folders)))
        return sorted(found, key=lambda one: one.used_at, reverse=True)

    async def reset(self, id: str) -> bool:
        await self._background.kill_in(id)
        if not await anyio.to_thread.run_sync((self._folders / id).is_dir) or not id.isalnum():
            return False
        await SshFiles(self._connection, self._root(id), "/").delete()
        return await anyio.to_thread.run_sync(delete_sandbox, self._folders, id)

    async def discard(self, scope: SandboxScope) -> None:
        if self._options.sharing == "session":
            await self.reset(sandbox_id(scope, "session"))

    async def close_idle(self, seconds: float) -> int:
        """Closes the connection if no command has used it for this number of seconds. The machine
        itself is not shut down."""
        return int(await self._connection.close_idle(seconds))

    async def aclose(self) -> None:
        await self._connection.aclose()


SSH_BACKEND = BackendManifest(name=SSH_NAME, make=SshBackend)
