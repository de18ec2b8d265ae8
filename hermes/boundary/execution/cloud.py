"""The backend for providers of remote sandboxes, such as Modal and Daytona: one remote sandbox for
each session, person or agent."""

import logging
import time
from collections.abc import Sequence
from typing import Protocol

import anyio.to_thread

from hermes.boundary.execution.cloud_records import CloudRecord, CloudRecords
from hermes.boundary.execution.remote_calls import RECONNECT_PAUSES, RemoteCalls
from hermes.boundary.execution.remote_sandbox import RemoteSandbox
from hermes.boundary.execution.sandbox_folders import sandbox_id
from hermes.types.errors import HermesError, ToolFailed
from hermes.types.execution import (
    BackendFinding,
    BackendOptions,
    NetworkPolicy,
    SandboxInfo,
    SandboxScope,
)

log = logging.getLogger(__name__)

LIFETIME_SECONDS = 86_400
"""Maximum number of seconds for which a sandbox runs, at providers that limit this time."""
IDLE_SECONDS = 3600
"""Seconds without a request after which a provider stops a sandbox. The provider does this itself,
so it also works while no gateway is running."""


class SandboxStopped(Exception):
    """Raised by a provider that has not run a program, because the sandbox is not running."""


class CloudProvider(Protocol):
    """The sandboxes of one account at a provider. A sandbox is found by its name, and keeps the
    files of its workspace until it is deleted. If a method fails, it raises MachineUnreachable, or
    ToolFailed with a text that says what to do.
    """

    async def check(self) -> None:
        """Raises ToolFailed if the account can't be used."""
        ...

    async def start(self, name: str, workspace: str) -> None:
        """Creates the sandbox, or starts it again with its files. Does nothing if it is
        running."""
        ...

    async def running(self, name: str) -> bool: ...

    async def execute(
        self, name: str, arguments: Sequence[str], data: bytes, seconds: float
    ) -> bytes:
        """Runs a program with this input in a sandbox. Returns its output. Raises SandboxStopped if
        the sandbox is not running."""
        ...

    async def stop(self, name: str, workspace: str) -> None:
        """Shuts the sandbox down and keeps the files of the workspace."""
        ...

    async def delete(self, name: str) -> None:
        """Deletes the sandbox with its files. Does nothing if it does not exist."""
        ...

    async def names(self, prefix: str) -> Sequence[str]:
        """Returns the names that begin with the prefix, of running and of stopped sandboxes."""
        ...

    async def aclose(self) -> None: ...


class CloudMachine:
    """One remote sandbox, which belongs to a session, a person or an agent. Implements
    `RemoteMachine`."""

    def __init__(self, owner: "CloudBackend", id: str, record: CloudRecord) -> None:
        """`record` describes the sandbox. This record is stored only if no record with this id
        exists yet."""
        self._owner = owner
        self._id = id
        self._record = record

    async def exists(self) -> bool:
        known = await self._owner.find(self._id)
        return known is not None and await self._owner.provider.running(known.name)

    async def start(self) -> str:
        self._record = await self._owner.ensure(self._id, self._record)
        await self._owner.start(self._record)
        return self._record.workspace

    async def execute(self, arguments: Sequence[str], data: bytes, seconds: float) -> bytes:
        provider, name = self._owner.provider, self._record.name
        try:
            return await provider.execute(name, arguments, data, seconds)
        except SandboxStopped:
            # The provider has stopped the sandbox since it was last used, so it is started again.
            self._owner.forget(name)
        await self._owner.start(self._record)
        try:
            return await provider.execute(name, arguments, data, seconds)
        except SandboxStopped as error:
            self._owner.forget(name)
            raise ToolFailed(
                "The remote sandbox does not keep running: try again later."
            ) from error


class CloudBackend:
    """Implements `ExecutionBackend` for one provider."""

    def __init__(
        self,
        name: str,
        options: BackendOptions,
        provider: CloudProvider,
        pauses: Sequence[float] = RECONNECT_PAUSES,
    ) -> None:
        """`pauses` are the seconds to wait before each new attempt to reach a running command after
        its connection was lost."""
        root = options.sandboxes or options.processes.parent / "sandboxes"
        self.provider = provider
        self._name = name
        self._pauses = pauses
        self._options = options
        self._records = CloudRecords(root / name)
        self._started: set[str] = set()

    @property
    def isolation(self) -> str:
        network = described_network(self._options.network)
        return f"a remote sandbox of {self._name.capitalize()}; {network}"

    async def check(self) -> Sequence[BackendFinding]:
        try:
            await self.provider.check()
        except ToolFailed as error:
            text, _, hint = str(error).partition(": ")
            return (BackendFinding(level="error", text=text, hint=hint),)
        return (BackendFinding(level="ok", text=f"Commands run in {self.isolation}."),)

    async def open(self, scope: SandboxScope) -> RemoteSandbox:
        id = sandbox_id(scope, self._options.sharing)
        calls = RemoteCalls(self._machine(id, scope), scope.workspace, self._pauses)
        return RemoteSandbox(scope, calls, self._options, f"{self._name}:{id}")

    async def end(self, handle: str) -> bool:
        name, _, rest = handle.partition(":")
        id, _, command = rest.partition(":")
        known = None
        if name == self._name and command.isalnum():
            known = await self.find(id)
        if known is None:
            return False
        machine = CloudMachine(self, id, known)
        return await RemoteCalls(machine, known.workspace).end(command)

    async def sandboxes(self) -> Sequence[SandboxInfo]:
        found = await anyio.to_thread.run_sync(self._records.listed)
        return sorted(found, key=lambda one: one.used_at, reverse=True)

    async def reset(self, id: str) -> bool:
        known = await self.find(id)
        if known is None:
            return False
        self.forget(known.name)
        # The record is deleted last, so that a crash never leaves a sandbox without a record.
        await self.provider.delete(known.name)
        return await anyio.to_thread.run_sync(self._records.delete, id)

    async def discard(self, scope: SandboxScope) -> None:
        if self._options.sharing == "session":
            await self.reset(sandbox_id(scope, "session"))

    async def close_idle(self, seconds: float) -> int:
        """Stops idle sandboxes, and deletes the sandboxes of deleted sessions."""
        closed = 0
        for info in await self.sandboxes():
            if info.used_at < time.time() - seconds:
                try:
                    closed += await self._close(info.id)
                except ToolFailed as error:
                    log.warning("the remote sandbox %s can't be stopped: %s", info.id, error)
        await self._delete_unknown()
        return closed

    async def aclose(self) -> None:
        await self.provider.aclose()

    async def find(self, id: str) -> CloudRecord | None:
        return await anyio.to_thread.run_sync(self._records.find, id)

    async def ensure(self, id: str, record: CloudRecord) -> CloudRecord:
        """Records that the sandbox is used now. Returns the stored record of the sandbox, which can
        differ from `record` if it was stored earlier."""
        return await anyio.to_thread.run_sync(self._records.ensure, id, record)

    async def start(self, record: CloudRecord) -> None:
        if record.name not in self._started:
            await self.provider.start(record.name, record.workspace)
            self._started.add(record.name)

    def forget(self, name: str) -> None:
        """Forgets that the sandbox is running."""
        self._started.discard(name)

    def _machine(self, id: str, scope: SandboxScope) -> CloudMachine:
        person = scope.person if self._options.sharing == "person" else None
        record = CloudRecord(
            agent=scope.agent,
            session=str(scope.session),
            person=person or "",
            workspace=scope.workspace,
            name="",
        )
        return CloudMachine(self, id, record)

    async def _close(self, id: str) -> bool:
        """Stops a sandbox that runs no command. Returns whether it was running."""
        known = await self.find(id)
        if known is None or not await self.provider.running(known.name):
            return False
        machine = CloudMachine(self, id, known)
        if await RemoteCalls(machine, known.workspace).running():
            return False
        self.forget(known.name)
        await self.provider.stop(known.name, known.workspace)
        return True

    async def _delete_unknown(self) -> None:
        """Deletes the remote sandboxes that have no record. The deletion of a session deletes only
        the record of its sandbox, and leaves the remote sandbox to this method."""
        try:
            names = await self.provider.names(self._records.prefix())
            kept = await anyio.to_thread.run_sync(self._records.names)
            for name in set(names) - kept:
                await self.provider.delete(name)
        except HermesError as error:
            log.warning("the remote sandboxes of deleted sessions remain: %s", error)


def described_network(policy: NetworkPolicy) -> str:
    match policy.mode:
        case "none":
            return "no network"
        case "hosts":
            return f"network: {', '.join(policy.hosts)}"
        case "open":
            return "an open network"
