"""Runs commands in the background. Each command has a folder with its record and its output, so
that no command is lost when the gateway restarts."""

import contextlib
import errno
import fcntl
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import anyio
import anyio.to_thread
import msgspec
from anyio.streams.buffered import BufferedByteReceiveStream

from hermes.boundary.execution import supervisor
from hermes.boundary.execution.handles import boot_id, is_here
from hermes.boundary.execution.launch import CommandLaunch
from hermes.boundary.execution.process import (
    KILL_GRACE,
    ProcessGroup,
    end_group,
    end_marked,
    runs,
    signal_group,
    start_time,
)
from hermes.boundary.execution.process_tree import (
    descendants,
    end_descendants,
    send_signal,
    terminate_wrapped,
)
from hermes.boundary.execution.scripts import script
from hermes.types.errors import ToolFailed
from hermes.types.execution import ProcessOutput, ProcessStatus, SandboxScope
from hermes.types.identity import AgentId, SessionKey, new_id
from hermes.types.value import Value

RECORD = "record.json"
PROCESS_MARK = "HERMES_PROCESS"
"""The environment variable that marks the processes of a background command, so that they can be
found again."""
MOST_RUNNING = 64
"""Maximum number of background processes of one agent that run at the same time."""
MOST_FINISHED = 256
"""Maximum number of finished processes whose records are kept."""
FINISHED_SECONDS = 86_400.0
"""Seconds for which the records of finished processes are kept."""
POLL_INTERVAL = 0.1


class BackgroundProcess(Value):
    """The record of a command, which is written before the command begins."""

    id: str
    command: str
    session: str
    agent: AgentId
    workdir: str
    process: ProcessGroup
    """The process group of the command. The supervisor is its leader."""
    started_at: float
    boot: str = ""
    """The boot id of the machine when the process was started. The records may be on a disk that
    another machine uses later. That machine has another boot id, so Hermes does not look for the
    process there."""
    wrapped: bool = False
    """Whether the command runs in a sandbox of bubblewrap."""
    sandbox: str = ""
    """The id of the sandbox in which the command runs; empty if it runs in none."""
    handle: str = ""
    """The handle of the command on another machine; empty for a command of this machine."""


class Background:
    """The background processes that have records in one folder. A session can only use the
    processes that it has started."""

    def __init__(self, root: Path) -> None:
        self._root = root

    async def start(
        self, command: str, launch: CommandLaunch, scope: SandboxScope
    ) -> BackgroundProcess:
        """Starts the command. The command is recorded before it begins, so that a crash never
        leaves an unrecorded process."""
        folder = self._root / new_id()
        reading, gate = os.pipe()
        begun = False
        try:
            await anyio.to_thread.run_sync(self._prepare, folder, scope.agent)
            record = BackgroundProcess(
                id=folder.name,
                command=command,
                session=str(scope.session),
                agent=scope.agent,
                workdir=str(launch.folder),
                process=await self._spawn(launch, folder, reading),
                started_at=time.time(),
                boot=boot_id(),
                wrapped=launch.restrictions.wrapped,
                sandbox=launch.sandbox,
                handle=launch.handle,
            )
            _fill(folder / "input", launch.input)
            await anyio.to_thread.run_sync(_keep, folder, record)
            await anyio.to_thread.run_sync(launch.check)
            # The secrets are sent over stdin and not as arguments, because everybody on the machine
            # can read arguments.
            order = json.dumps(launch.secrets).encode() + b"\n"
            begun = os.write(gate, order) == len(order)
        except (OSError, ValueError, anyio.IncompleteRead) as error:
            raise ToolFailed(f"The command could not be started: {error}.") from error
        finally:
            os.close(reading)
            os.close(gate)
            if not begun:
                shutil.rmtree(folder, ignore_errors=True)
        return record

    async def _spawn(self, launch: CommandLaunch, folder: Path, gate: int) -> ProcessGroup:
        """Starts the supervisor, which outlives this process. The supervisor starts the command
        when it has read a line from the file descriptor `gate`."""
        async with await anyio.open_process(
            script(supervisor, str(folder), launch.restrictions.text(), *launch.arguments),
            cwd=launch.folder,
            env={**launch.environment, PROCESS_MARK: folder.name},
            stdin=gate,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as starter:
            assert starter.stdout
            said = await BufferedByteReceiveStream(starter.stdout).receive_until(b"\n", 32)
        started = start_time(int(said))
        if started is None:
            raise ToolFailed(
                "Background commands need Linux, because they are found through /proc."
            )
        return ProcessGroup(group=int(said), started=started)

    def of(self, session: SessionKey) -> list[ProcessStatus]:
        """Returns the session's processes, the oldest first."""
        return [status for record, status in self._all() if record.session == str(session)]

    def find(self, id: str, session: SessionKey) -> ProcessStatus:
        """Returns the process with the id. Raises ToolFailed if the session has no such process."""
        return self._find(id, session)[1]

    def record(self, id: str, session: SessionKey) -> BackgroundProcess:
        return self._find(id, session)[0]

    def output(self, id: str, session: SessionKey) -> ProcessOutput:
        self.find(id, session)
        pieces = sorted((self._root / id).glob("output.*"), key=lambda path: int(path.suffix[1:]))
        data = b""
        for piece in pieces:
            # The supervisor may delete the oldest output file while we read it.
            with contextlib.suppress(FileNotFoundError):
                data += piece.read_bytes()
        return ProcessOutput(data=data, whole=not pieces or pieces[0].suffix == ".0")

    def write(self, id: str, session: SessionKey, data: bytes) -> None:
        """Sends input to the process. Raises ToolFailed if the process has ended or does not read
        its input."""
        self.find(id, session)
        try:
            taken = _write(self._root / id / "input", data)
        except BlockingIOError:
            taken = 0
        except OSError as error:
            raise ToolFailed(f"Process {id} takes no input: it has ended.") from error
        if taken < len(data):
            raise ToolFailed(
                f"Process {id} took only the first {taken} of {len(data)} bytes: it does not read"
                " its input."
            )

    async def wait(self, id: str, session: SessionKey, seconds: float) -> ProcessStatus:
        """Waits until the process ends, for at most this many seconds. Returns the state of the
        process."""
        with anyio.move_on_after(seconds):
            while True:
                status = await anyio.to_thread.run_sync(self.find, id, session)
                if not status.running:
                    return status
                await anyio.sleep(POLL_INTERVAL)
        return await anyio.to_thread.run_sync(self.find, id, session)

    async def kill(self, id: str, session: SessionKey) -> ProcessStatus:
        """Ends the process and everything that it started, first with SIGTERM and then with
        SIGKILL."""
        record, status = await anyio.to_thread.run_sync(self._find, id, session)
        if not is_here(record.boot):
            return status
        process = record.process
        if status.running:
            await anyio.to_thread.run_sync(_terminate_all, record)
            await self.wait(id, session, KILL_GRACE)
        await anyio.to_thread.run_sync(_end_all, record)
        status = await self.wait(id, session, KILL_GRACE)
        if status.running:
            end_group(process)
        return await self.wait(id, session, KILL_GRACE)

    async def kill_in(self, sandbox: str) -> None:
        """Ends all processes of a sandbox."""
        for record, status in await anyio.to_thread.run_sync(lambda: list(self._all())):
            if record.sandbox == sandbox and (status.running or status.code is None):
                await self.kill(record.id, SessionKey.parse(record.session))

    def busy_sandboxes(self) -> set[str]:
        """Returns the ids of the sandboxes in which processes run."""
        return {record.sandbox for record, status in self._all() if status.running}

    def _prepare(self, folder: Path, agent: AgentId) -> None:
        known = list(self._all())
        if sum(one.running for record, one in known if record.agent == agent) >= MOST_RUNNING:
            raise ToolFailed(
                f"{MOST_RUNNING} background processes are running already: end some of them first."
            )
        finished = [one.id for _, one in known if not one.running]
        for old in finished[:-MOST_FINISHED]:
            shutil.rmtree(self._root / old, ignore_errors=True)
        running = {one.id for _, one in known if one.running}
        for path in self._root.glob("*"):
            if path.name not in running and _changed_at(path) < time.time() - FINISHED_SECONDS:
                shutil.rmtree(path, ignore_errors=True)
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700)
        os.mkfifo(folder / "input", 0o600)

    def _find(self, id: str, session: SessionKey) -> tuple[BackgroundProcess, ProcessStatus]:
        known = self._read(self._root / id) if id.isalnum() else None
        if known is None or known[0].session != str(session):
            raise ToolFailed(
                f"There is no process {id!r} in this conversation: `list` shows all processes."
            )
        return known

    def _all(self) -> Iterator[tuple[BackgroundProcess, ProcessStatus]]:
        for folder in sorted(self._root.glob("*")):
            if known := self._read(folder):
                yield known

    def _read(self, folder: Path) -> tuple[BackgroundProcess, ProcessStatus] | None:
        """Returns the record in the folder and the state of the recorded process; None if the
        folder has no record."""
        try:
            record = msgspec.json.decode((folder / RECORD).read_bytes(), type=BackgroundProcess)
        except (OSError, msgspec.DecodeError):
            return None
        alive = is_here(record.boot) and runs(record.process)
        code = _code(folder)
        running = alive and code is None
        until = time.time() if running else _changed_at(folder)
        return record, ProcessStatus(
            id=record.id,
            command=record.command,
            running=running,
            code=code,
            seconds=max(0.0, until - record.started_at),
            exceeded=_exceeded(folder),
        )


def _terminate_all(record: BackgroundProcess) -> None:
    """Sends one SIGTERM to each process that the supervisor has started."""
    leader = record.process.group
    if record.wrapped:
        terminate_wrapped(leader)
        return
    away = [one for one in descendants(leader) if one.group != leader]
    signal_group(record.process, signal.SIGTERM)
    for entry in away:
        send_signal(entry.pid, entry.started, signal.SIGTERM)


def _end_all(record: BackgroundProcess) -> None:
    """Ends all processes except the supervisor. The supervisor ends by itself after it has written
    the exit code."""
    if runs(record.process):
        end_descendants(record.process.group)
    # If the supervisor was killed, the other processes of the command are no longer its
    # descendants. They are found by the mark in their environment.
    end_marked(f"{PROCESS_MARK}={record.id}", record.process.group)


def _keep(folder: Path, record: BackgroundProcess) -> None:
    fresh = folder / f"{RECORD}.new"
    with fresh.open("wb") as file:
        file.write(msgspec.json.encode(record))
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(folder / RECORD)


def _write(pipe: Path, data: bytes) -> int:
    handle = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    try:
        return os.write(handle, data)
    finally:
        os.close(handle)


def _fill(pipe: Path, data: bytes) -> None:
    """Writes all data to a pipe that nobody reads yet. Raises OSError if the pipe can't hold the
    data."""
    if not data:
        return
    handle = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    try:
        if len(data) > fcntl.fcntl(handle, fcntl.F_GETPIPE_SZ):
            fcntl.fcntl(handle, fcntl.F_SETPIPE_SZ, len(data))
        if os.write(handle, data) < len(data):
            raise OSError(errno.E2BIG, "the command and its environment variables are too long")
    finally:
        os.close(handle)


def _code(folder: Path) -> int | None:
    with contextlib.suppress(FileNotFoundError):
        return int((folder / "exit").read_text())
    return None


def _exceeded(folder: Path) -> str:
    with contextlib.suppress(FileNotFoundError):
        return (folder / "exceeded").read_text()
    return ""


def _changed_at(folder: Path) -> float:
    """Returns the time of the last change in the folder."""
    with contextlib.suppress(FileNotFoundError):
        return max(path.stat().st_mtime for path in (folder, *folder.iterdir()))
    return time.time()
