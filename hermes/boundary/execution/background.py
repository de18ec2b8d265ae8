"""Commands that run on by themselves, known by their files: a restart loses none of them."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import anyio
import anyio.to_thread
import msgspec
from anyio.streams.buffered import BufferedByteReceiveStream

from hermes.boundary.execution.process import (
    GRACE,
    end_group,
    end_marked,
    runs,
    signal_group,
    start_time,
)
from hermes.types.errors import ToolFailed
from hermes.types.identity import AgentId, SessionKey, new_id
from hermes.types.tools import Process
from hermes.types.value import Value

SUPERVISOR = Path(__file__).with_name("supervisor.py")
RECORD = "record.json"
MARK = "HERMES_PROCESS"
"""The variable by which everything that a process starts is known."""
LIVE = 64
"""Processes of one agent that run at the same time."""
FINISHED = 256
"""Finished ones that are kept, for a day at the most."""
DAY = 86_400.0
TICK = 0.1


class BackgroundProcess(Value):
    """A command on record, before it begins."""

    id: str
    command: str
    session: str
    agent: AgentId
    workdir: str
    process: Process
    """Of the supervisor, who leads the command's group."""
    started_at: float


class Status(Value):
    record: BackgroundProcess
    running: bool
    code: int | None
    """Negative for a signal; None while it runs, and when the supervisor was killed."""
    seconds: float
    """That it has run."""


class Kept(Value):
    """What is left of the output."""

    data: bytes
    whole: bool
    """False when earlier output is no longer there."""


class Background:
    """The processes under one folder; a session sees its own."""

    def __init__(self, root: Path, shell: str, environment: Mapping[str, str]) -> None:
        self._root = root
        self._shell = shell
        self._environment = environment

    async def start(
        self, command: str, workdir: Path, session: SessionKey, agent: AgentId
    ) -> BackgroundProcess:
        """On record, and running. Whoever dies in between leaves no process that nobody knows."""
        folder = self._root / new_id()
        reading, gate = os.pipe()
        begun = False
        try:
            await anyio.to_thread.run_sync(self._prepare, folder, agent)
            record = BackgroundProcess(
                id=folder.name,
                command=command,
                session=str(session),
                agent=agent,
                workdir=str(workdir),
                process=await self._spawn(command, workdir, folder, reading),
                started_at=time.time(),
            )
            await anyio.to_thread.run_sync(_keep, folder, record)
            begun = os.write(gate, b"g") == 1
        except (OSError, ValueError, anyio.IncompleteRead) as error:
            raise ToolFailed(f"The command could not be started: {error}.") from error
        finally:
            os.close(reading)
            os.close(gate)
            if not begun:
                shutil.rmtree(folder, ignore_errors=True)
        return record

    async def _spawn(self, command: str, workdir: Path, folder: Path, gate: int) -> Process:
        """The supervisor, at the gate: nobody's child, so that nobody's end ends it."""
        script = [sys.executable, "-I", "-S", str(SUPERVISOR)]
        async with await anyio.open_process(
            [*script, str(folder), self._shell, command],
            cwd=workdir,
            env={**self._environment, MARK: folder.name},
            stdin=gate,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as starter:
            assert starter.stdout
            said = await BufferedByteReceiveStream(starter.stdout).receive_until(b"\n", 32)
        started = start_time(int(said))
        if started is None:
            raise ToolFailed("Background commands need Linux: they are found again in /proc.")
        return Process(group=int(said), started=started)

    def of(self, session: SessionKey) -> list[Status]:
        """Those of the session, the oldest first."""
        return [one for one in self._all() if one.record.session == str(session)]

    def find(self, id: str, session: SessionKey) -> Status:
        """How the session's process stands. ToolFailed if it has none of that id."""
        status = self._status(self._root / id) if id.isalnum() else None
        if status is None or status.record.session != str(session):
            raise ToolFailed(
                f"There is no process {id!r} in this conversation: `list` shows those there are."
            )
        return status

    def output(self, id: str, session: SessionKey) -> Kept:
        self.find(id, session)
        pieces = sorted((self._root / id).glob("output.*"), key=lambda path: int(path.suffix[1:]))
        data = b""
        for piece in pieces:
            # The oldest may just have made room.
            with contextlib.suppress(FileNotFoundError):
                data += piece.read_bytes()
        return Kept(data=data, whole=not pieces or pieces[0].suffix == ".0")

    def write(self, id: str, session: SessionKey, data: bytes) -> None:
        """Gives the process input; ToolFailed if it has ended or does not read."""
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

    async def wait(self, id: str, session: SessionKey, seconds: float) -> Status:
        """How it stands when it has ended, or after so many seconds."""
        with anyio.move_on_after(seconds):
            while True:
                status = await anyio.to_thread.run_sync(self.find, id, session)
                if not status.running:
                    return status
                await anyio.sleep(TICK)
        return await anyio.to_thread.run_sync(self.find, id, session)

    async def kill(self, id: str, session: SessionKey) -> Status:
        """Ends it and all that it started, which is asked to end first."""
        status = await anyio.to_thread.run_sync(self.find, id, session)
        process = status.record.process
        if status.running:
            signal_group(process, signal.SIGTERM)
            await self.wait(id, session, GRACE)
        # The supervisor goes last, to say how it ended.
        await anyio.to_thread.run_sync(end_marked, f"{MARK}={id}", process.group)
        status = await self.wait(id, session, GRACE)
        if status.running:
            end_group(process)
        return await self.wait(id, session, GRACE)

    def _prepare(self, folder: Path, agent: AgentId) -> None:
        known = list(self._all())
        if sum(one.running for one in known if one.record.agent == agent) >= LIVE:
            raise ToolFailed(f"{LIVE} background processes are running already: end some first.")
        finished = [one.record.id for one in known if not one.running]
        for old in finished[:-FINISHED]:
            shutil.rmtree(self._root / old, ignore_errors=True)
        running = {one.record.id for one in known if one.running}
        for path in self._root.glob("*"):
            if path.name not in running and _changed_at(path) < time.time() - DAY:
                shutil.rmtree(path, ignore_errors=True)
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700)
        os.mkfifo(folder / "input", 0o600)

    def _all(self) -> Iterator[Status]:
        for folder in sorted(self._root.glob("*")):
            if status := self._status(folder):
                yield status

    def _status(self, folder: Path) -> Status | None:
        try:
            record = msgspec.json.decode((folder / RECORD).read_bytes(), type=BackgroundProcess)
        except (OSError, msgspec.DecodeError):
            return None
        alive = runs(record.process)
        code = _code(folder)
        running = alive and code is None
        until = time.time() if running else _changed_at(folder)
        return Status(
            record=record, running=running, code=code, seconds=max(0.0, until - record.started_at)
        )


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


def _code(folder: Path) -> int | None:
    with contextlib.suppress(FileNotFoundError):
        return int((folder / "exit").read_text())
    return None


def _changed_at(folder: Path) -> float:
    """When anything was last written there."""
    with contextlib.suppress(FileNotFoundError):
        return max(path.stat().st_mtime for path in (folder, *folder.iterdir()))
    return time.time()
