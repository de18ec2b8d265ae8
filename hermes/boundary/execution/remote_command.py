"""Starts, follows and ends commands on a remote machine.

Each command has a folder with its state and its output, and a supervisor that outlives the
connection. This module runs on the remote machine, so it imports only the standard library.
"""

import contextlib
import json
import os
import select
import shutil
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn, TypedDict

from hermes.boundary.execution.output_files import OutputFiles, RedactedOutput
from hermes.boundary.execution.process_tree import (
    DEAD,
    adopt_orphans,
    descendants,
    end_descendants,
    find_process,
    process_table,
    restore_signals,
    send_signal,
)
from hermes.types.errors import ToolFailed

COMMAND_MARK = "HERMES_COMMAND"
"""The environment variable that marks the processes of a command, so that they can be found
again."""
LAST_OUTPUT_SECONDS = 0.5
"""Seconds that are allowed for the last output after the shell has ended."""
TERM_GRACE = 2.0
"""Seconds between SIGTERM and SIGKILL."""
RESULT_SECONDS = 10.0
"""Seconds within which a supervisor must write the result after all processes were killed."""
MOST_COMMANDS = 64
"""Maximum number of background commands that run at the same time."""
OLD_COMMAND_SECONDS = 86_400.0
"""Seconds for which the folders of finished commands are kept."""
STREAM_READ = 65_536
ENDED = "ended"
"""Name of a file in the folder of a command. If the file exists, the command never begins."""


class CommandOrder(TypedDict):
    """A command that the gateway wants to run."""

    command: str
    owner: str
    """The session that the command belongs to."""
    environment: Mapping[str, str]
    """Variables that are added to those of the machine."""
    secrets: list[str]
    """Values that are redacted in the output."""
    seconds: float | None
    """Number of seconds after which the command is ended; None for a background command."""


class CommandRecord(TypedDict):
    """The state of a command. It is written before the command begins."""

    id: str
    command: str
    owner: str
    background: bool
    began_at: float
    supervisor: int
    started: int
    """The start time of the supervisor, in clock ticks since boot."""


class CommandResult(TypedDict):
    """How a command ended."""

    code: int | None
    """The exit code; None if it is unknown."""
    left: int
    timed_out: bool
    ended_at: float


class CommandFolder:
    """The folder of one command."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def claim(self) -> bool:
        """Creates the folder of the command. Returns False if the folder already exists. In this
        case, another call has already started or ended the command."""
        try:
            self.path.mkdir(mode=0o700)
        except FileExistsError:
            return False
        return True

    def record(self) -> CommandRecord | None:
        found: CommandRecord | None = _parsed(self.path / "record.json")
        return found

    def keep(self, name: str, value: object) -> None:
        """Writes a file of the folder atomically."""
        fresh = self.path / f"{name}.new"
        fresh.write_text(json.dumps(value))
        fresh.replace(self.path / name)

    def result(self) -> CommandResult | None:
        """Returns the result of the command; None if the command is running or has not begun."""
        found: CommandResult | None = _parsed(self.path / "result.json")
        if found is not None:
            return found
        record = self.record()
        if record is None or self.supervisor_lives(record):
            return None
        # The supervisor may have written the result and ended since the result was looked for, so
        # it is looked for again.
        found = _parsed(self.path / "result.json")
        unknown = CommandResult(code=None, left=0, timed_out=False, ended_at=record["began_at"])
        return found or unknown

    def supervisor_lives(self, record: CommandRecord) -> bool:
        entry = find_process(record["supervisor"])
        return entry is not None and entry.started == record["started"] and entry.state not in DEAD

    def output(self, piece: int, position: int, most: int) -> tuple[bytes, int, int, bool]:
        """Reads output from a position in one of the numbered output files (pieces). Returns the
        data, the piece and the position at which the next call must continue, and whether older
        output was dropped before it could be read."""
        numbers = self._pieces()
        lost = bool(numbers) and piece < numbers[0]
        if lost:
            piece, position = numbers[0], 0
        data = b""
        while piece in numbers and len(data) < most:
            with (
                contextlib.suppress(FileNotFoundError),
                (self.path / f"output.{piece}").open("rb") as file,
            ):
                file.seek(position)
                read = file.read(most - len(data))
                data += read
                position += len(read)
            if len(data) >= most or piece + 1 not in numbers:
                break
            piece, position = piece + 1, 0
        return data, piece, position, lost

    def _pieces(self) -> list[int]:
        return sorted(int(path.suffix[1:]) for path in self.path.glob("output.*"))


def _parsed(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        return None


def folders(root: Path) -> Iterator[tuple[CommandFolder, CommandRecord]]:
    """Yields the commands in the folder, the oldest first."""
    for path in sorted(root.glob("*")):
        folder = CommandFolder(path)
        if record := folder.record():
            yield folder, record


def start(root: Path, id: str, workdir: int, order: CommandOrder) -> CommandFolder:
    """Starts a command in the folder whose descriptor is `workdir`. Raises ToolFailed if the
    command was ended before it began."""
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    _tidy(root)
    folder = CommandFolder(root / id)
    if not folder.claim():
        raise ToolFailed("The command was ended before it began.")
    if order["seconds"] is None:
        os.mkfifo(folder.path / "input", 0o600)
    reading, writing = os.pipe()
    starter = os.fork()
    if not starter:
        os.setsid()
        if not os.fork():
            os.close(reading)
            _supervise(folder, workdir, order, writing)
        os._exit(0)
    os.close(writing)
    os.waitpid(starter, 0)
    # If the command can't begin, the supervisor writes the reason to the pipe. If the command
    # begins, the pipe closes without a text.
    with os.fdopen(reading, "rb") as pipe:
        problem = pipe.read()
    if problem or folder.record() is None:
        raise ToolFailed(f"The command could not be started: {problem.decode()}.")
    return folder


def _tidy(root: Path) -> None:
    """Deletes old folders. Raises ToolFailed if too many commands are running."""
    running = 0
    for path in root.glob("*"):
        folder = CommandFolder(path)
        if folder.record() is not None and folder.result() is None:
            running += 1
        elif path.stat().st_mtime < time.time() - OLD_COMMAND_SECONDS:
            shutil.rmtree(path, ignore_errors=True)
    if running >= MOST_COMMANDS:
        raise ToolFailed(f"{MOST_COMMANDS} commands are running already: end some of them first.")


def _supervise(folder: CommandFolder, workdir: int, order: CommandOrder, ready: int) -> NoReturn:
    """Runs in the supervisor, which ends when the command has ended."""
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
        adopt_orphans()
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in range(3):
            os.dup2(null, descriptor)
        _Supervisor(folder, order).run(workdir, ready)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.write(ready, str(error).encode(errors="replace"))
    finally:
        os._exit(0)


class _Supervisor:
    """Waits for a command, and writes its output and its result."""

    def __init__(self, folder: CommandFolder, order: CommandOrder) -> None:
        self._folder = folder
        self._order = order
        self._output = RedactedOutput(OutputFiles(folder.path), order["secrets"])
        self._shell = 0
        self._code: int | None = None
        self._childless = False
        self._poll = select.poll()
        self._stream, self._writing = os.pipe()
        self._wakeups, self._wakeup = os.pipe()
        self._open = True

    def run(self, workdir: int, ready: int) -> None:
        order, background = self._order, self._order["seconds"] is None
        self._watch_children()
        name = self._folder.path / "input" if background else Path(os.devnull)
        # The pipe is also opened for writing. Without any writer, the command would read an end of
        # file.
        keys = os.open(name, os.O_RDWR)
        entry = find_process(os.getpid())
        record = CommandRecord(
            id=self._folder.path.name,
            command=order["command"],
            owner=order["owner"],
            background=background,
            began_at=time.time(),
            supervisor=os.getpid(),
            started=entry.started if entry else 0,
        )
        self._folder.keep("record.json", record)
        if (self._folder.path / ENDED).exists():
            raise InterruptedError("the command was ended before it began")
        added = {**order["environment"], COMMAND_MARK: record["id"]}
        self._shell = os.fork()
        if not self._shell:
            _become(order["command"], added, workdir, (keys, self._writing, self._writing))
        os.close(self._writing)
        os.close(ready)
        timed_out = self._wait(order["seconds"])
        left = 0
        if not background:
            self._read(LAST_OUTPUT_SECONDS)
            left = end_descendants(os.getpid())
        self._read(LAST_OUTPUT_SECONDS)
        self._output.finish()
        self._reap()
        os.close(keys)
        result = CommandResult(
            code=self._code, left=left, timed_out=timed_out, ended_at=time.time()
        )
        self._folder.keep("result.json", result)

    def _watch_children(self) -> None:
        for descriptor in (self._stream, self._wakeups, self._wakeup):
            os.set_blocking(descriptor, False)
        signal.set_wakeup_fd(self._wakeup)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._poll.register(self._stream, select.POLLIN)
        self._poll.register(self._wakeups, select.POLLIN)

    def _wait(self, seconds: float | None) -> bool:
        """Waits until the shell of a foreground command has ended, or until all processes of a
        background command have ended. Returns True if the time is up first."""
        deadline = None if seconds is None else time.monotonic() + seconds
        timed_out = False
        self._reap()
        while not (self._childless if seconds is None else self._code is not None):
            self._turn(deadline)
            if deadline is not None and time.monotonic() >= deadline:
                if timed_out:
                    break
                timed_out = True
                deadline = time.monotonic() + TERM_GRACE
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self._shell, signal.SIGTERM)
        return timed_out

    def _read(self, seconds: float) -> None:
        """Reads the output to its end, for at most this number of seconds."""
        deadline = time.monotonic() + seconds
        while self._open and time.monotonic() < deadline:
            self._turn(deadline)

    def _turn(self, deadline: float | None) -> None:
        """Waits for output, for the end of a child, or until the deadline."""
        pause = None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000
        for descriptor, _ in self._poll.poll(pause):
            data = os.read(descriptor, STREAM_READ)
            if descriptor == self._wakeups:
                self._reap()
            elif data:
                self._output.write(data)
            else:
                self._poll.unregister(descriptor)
                self._open = False

    def _reap(self) -> None:
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    return
                if pid == self._shell:
                    self._code = os.waitstatus_to_exitcode(status)
        except ChildProcessError:
            self._childless = True


def _become(
    command: str, added: Mapping[str, str], workdir: int, streams: tuple[int, int, int]
) -> NoReturn:
    shell = shutil.which("bash") or "/bin/sh"
    try:
        os.setpgid(0, 0)
        os.fchdir(workdir)
        for descriptor, stream in enumerate(streams):
            os.dup2(stream, descriptor)
        restore_signals()
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        for name, value in added.items():
            os.putenv(name, value)
        os.execv(shell, [shell, "-c", command])  # noqa: S606  # running commands is its purpose
    except OSError as error:
        os.write(2, f"{error}\n".encode(errors="replace"))
    finally:
        os._exit(127)


def end(folder: CommandFolder, grace: float) -> bool:
    """Ends a command with everything that it has started. If `grace` is more than 0, the processes
    first get SIGTERM, and have this number of seconds to end by themselves. Returns False if the
    command was not running. If the command has not begun yet, this call prevents its start."""
    # A supervisor that is just starting writes its record, and then looks for the file ENDED. This
    # process creates ENDED, and then reads the record. So the supervisor finds ENDED, or this
    # process finds the record, or both.
    folder.path.mkdir(mode=0o700, exist_ok=True)
    (folder.path / ENDED).touch()
    record = folder.record()
    if record is None or folder.result() is not None:
        end_marked(folder.path.name)
        return False
    supervisor = record["supervisor"]
    if grace:
        for one in descendants(supervisor):
            send_signal(one.pid, one.started, signal.SIGTERM)
        _await_result(folder, grace)
    send_signal(supervisor, record["started"], signal.SIGCONT)
    end_descendants(supervisor)
    _await_result(folder, RESULT_SECONDS)
    end_marked(folder.path.name)
    return True


def _await_result(folder: CommandFolder, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while folder.result() is None and time.monotonic() < deadline:
        time.sleep(0.01)


def end_marked(id: str) -> None:
    """Kills the processes of a command whose supervisor was killed."""
    mark = f"{COMMAND_MARK}={id}".encode()
    for one in process_table():
        with contextlib.suppress(OSError):
            if mark in Path(f"/proc/{one.pid}/environ").read_bytes().split(b"\0"):
                send_signal(one.pid, one.started, signal.SIGKILL)
