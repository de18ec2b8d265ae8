"""Runs foreground commands in a container or on another machine, through a program of this machine
such as `docker` or `ssh`."""

import contextlib
import math
import subprocess
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Protocol

import anyio
import anyio.to_thread
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from hermes.boundary.execution.foreground import OUTPUT_GRACE, report_progress
from hermes.boundary.execution.handles import CALL_MARK
from hermes.boundary.execution.output import Output
from hermes.boundary.execution.process import KILL_GRACE, end_marked
from hermes.boundary.execution.shell_supervisor import (
    SUPERVISOR,
    SUPERVISOR_NAME,
    TERMINATION,
    orders,
)
from hermes.boundary.execution.watchdog import FileMeter
from hermes.types.errors import ToolFailed
from hermes.types.execution import CommandObserver, CommandOutcome
from hermes.types.identity import new_id
from hermes.types.value import Value

SUPERVISOR_START_SECONDS = 30.0
"""Seconds within which the supervisor of a command must answer."""
FORCE_SECONDS = 3.0
"""Seconds within which a supervisor must end a command. After that time, Hermes ends the command by
force."""
METER_SECONDS = 0.2
_LONGEST_LINE = 65_536


class ClientCommand(Value):
    """A shell command for a container or another machine."""

    command: str
    folder: str
    """The folder on the other machine in which the command begins."""
    environment: Mapping[str, str]


class Machine(Protocol):
    """A container or another machine, on which a program of this machine starts shell scripts."""

    @property
    def name(self) -> str:
        """The text with which the handles of the machine's commands begin, such as
        `docker:<container>`."""
        ...

    @property
    def shared(self) -> bool:
        """Whether programs of other people also run on the machine. If False, Hermes has started
        every process on it."""
        ...

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment variables of the local program that starts the scripts, such as
        `docker`."""
        ...

    @property
    def files(self) -> tuple[str, int]:
        """The folder on this machine that contains the files of commands, and the maximum size of
        the whole folder in bytes. If the files are on another machine or have no limit, the value
        is an empty name and 0."""
        ...

    async def prepare(self) -> None:
        """Makes the machine ready for commands. Raises ToolFailed if that is impossible."""
        ...

    def client(self, mark: str, *arguments: str, lasting: bool = False) -> tuple[str, ...]:
        """Returns the command line of a client: a program on this machine that runs `sh` with these
        arguments on the other machine. `mark` is put into the environment of `sh`. `lasting` means
        that the client outlives this process."""
        ...

    def watch(self) -> Callable[[], str] | None:
        """Begins to watch the limits of the machine, and returns a function. The function returns
        the name of the limit that the commands have reached since `watch` was called; empty if they
        have reached none. Returns None if the machine has no limits. The method and the function
        may block."""
        ...

    def terminal(self, folder: str) -> tuple[str, ...]:
        """Returns the command line of an interactive shell in this folder of the machine."""
        ...

    def failure(self, said: str) -> ToolFailed:
        """Returns the error for a client that has ended before its command. `said` is the client's
        error message."""
        ...

    async def clear(self) -> None:
        """Ends all commands on the machine. This is the last resort if a single command can't be
        ended."""
        ...


class ClientCommands:
    """Runs the foreground commands of one machine."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    async def run(
        self,
        command: ClientCommand,
        seconds: float,
        observer: CommandObserver,
        check: Callable[[], Awaitable[None]],
    ) -> CommandOutcome:
        """Runs the command for at most `seconds`. `check` is called right before the command
        begins, and raises ToolFailed if the command must not begin."""
        prepared = orders(command.command, command.folder, command.environment)
        await self._machine.prepare()
        mark = new_id()
        client = await self._start(prepared, mark)
        try:
            await client.become_ready()
            await observer.started(f"{self._machine.name}:{mark}")
            await check()
            watch = await anyio.to_thread.run_sync(LimitWatch, self._machine)
            outcome = await _attend(client, seconds, observer, watch)
        finally:
            with anyio.CancelScope(shield=True):
                ended = await client.finish()
                if not ended:
                    await self.end(mark)
                await client.aclose()
        if outcome is None:
            raise self._machine.failure(client.said)
        return outcome

    async def end(self, mark: str) -> bool:
        """Ends all processes of the command with this mark. Returns False if none was running."""
        code, said = await self.call(TERMINATION, mark, "01"[not self._machine.shared])
        if code == 0 and said.strip().isdecimal():
            return int(said) > 0
        await self._machine.clear()
        return True

    async def call(self, script: str, *arguments: str) -> tuple[int, str]:
        """Runs one of Hermes's own scripts on the machine. Returns the exit code and the output of
        the script. The code is negative if the script does not end in time."""
        with anyio.move_on_after(SUPERVISOR_START_SECONDS):
            done = await anyio.run_process(
                self._machine.client("hermes", "-c", script, "hermes", *arguments),
                stdin=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                check=False,
                env=self._machine.environment,
                start_new_session=True,
            )
            return done.returncode, done.stdout.decode(errors="replace")
        return -1, ""

    async def _start(self, prepared: bytes, mark: str) -> "Client":
        line = supervised(self._machine, mark, "foreground")
        # If a cancellation interrupted the start, nobody would end the process.
        with anyio.CancelScope(shield=True):
            try:
                process = await anyio.open_process(
                    line,
                    env=self._machine.environment,
                    start_new_session=True,
                )
            except OSError as error:
                raise self._machine.failure(str(error)) from error
        return Client(process, mark, prepared, self._machine)


def supervised(machine: Machine, mark: str, kind: str) -> tuple[str, ...]:
    """Returns the command line of a client, such as `docker` or `ssh`, that runs a supervisor on
    the machine."""
    arguments = ("-c", SUPERVISOR, SUPERVISOR_NAME, mark, kind, "01"[not machine.shared])
    return machine.client(mark, *arguments, lasting=kind == "background")


class LimitWatch:
    """Watches the limits of a command."""

    def __init__(self, machine: Machine) -> None:
        folder, limit = machine.files
        self._meter = FileMeter((folder,), limit) if folder and limit else None
        self._reached = machine.watch()

    async def wait(self) -> str:
        """Returns the name of a limit as soon as it is exceeded."""
        if not (self._meter or self._reached):
            await anyio.sleep_forever()
        found = ""
        while not found:
            await anyio.sleep(METER_SECONDS)
            found = await anyio.to_thread.run_sync(self._check, abandon_on_cancel=True)
        return found

    async def reached(self) -> str:
        """Returns the name of the limit that the commands have reached on their machine; empty if
        they have reached none."""
        return await anyio.to_thread.run_sync(self._reached) if self._reached else ""

    def _check(self) -> str:
        if self._reached and (found := self._reached()):
            return found
        return "workspace" if self._meter and self._meter.full(()) else ""


class Client:
    """The program on this machine that runs a supervisor on the other machine."""

    def __init__(self, process: Process, mark: str, prepared: bytes, machine: Machine) -> None:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        self._process = process
        self._orders = process.stdin
        self._output = process.stdout
        self._reports = BufferedByteReceiveStream(process.stderr)
        self._mark = mark
        self._prefix = f"hermes-{mark} "
        self._prepared = prepared
        self._machine = machine
        self.said = ""
        """The text that the client itself has written to stderr, such as an error message of
        `ssh`."""
        self.result: tuple[int, int] | None = None
        """The exit code of the command, and the number of processes that were killed at its end;
        None if the supervisor has reported no end."""
        self.begun = anyio.Event()
        """Set when the supervisor reports that the command has begun, or when the client has
        ended."""
        self.over = anyio.Event()
        """Set when the command or the client has ended."""
        self.silent = anyio.Event()
        """Set when all output has been read."""
        self.text = Output()

    async def become_ready(self) -> None:
        """Waits until the command can begin. Raises ToolFailed if it can't."""
        words: list[str] = []
        with anyio.move_on_after(SUPERVISOR_START_SECONDS):
            await self.order(self._prepared)
            words = (await self._report()).split(" ", 1)
        if words and words[0] == "failed":
            self.result = (0, 0)
            raise ToolFailed(f"The command could not be started: {words[-1]}.")
        if words != ["ready"]:
            raise self._machine.failure(self.said)

    async def order(self, data: bytes) -> None:
        """Sends lines to the supervisor. Does nothing if the client has ended."""
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self._orders.send(data)

    async def follow(self) -> None:
        """Reads the reports of the supervisor until the command has ended."""
        while words := (await self._report()).split():
            if words[0] == "begun":
                self.begun.set()
            elif words[0] == "ended" and len(words) == 3:
                self.result = (_code(words[1]), int(words[2]))
                break
        self.begun.set()
        self.over.set()

    async def kill(self) -> None:
        """Kills the processes of the command and its supervisor from this machine, which sees the
        processes of its containers. The supervisor itself may be unable to end the command: if the
        command has reached its limit for processes, for example, the supervisor can't start the
        program that finds them."""
        await anyio.to_thread.run_sync(end_marked, f"{CALL_MARK}={self._mark}")

    async def read(self) -> None:
        """Reads the output until its end."""
        with contextlib.suppress(anyio.EndOfStream, anyio.BrokenResourceError):
            while True:
                self.text.add(await self._output.receive())
        self.silent.set()

    async def finish(self) -> bool:
        """Ends the command if it still runs. Returns False if the supervisor has not reported the
        end of the command in time."""
        with anyio.move_on_after(FORCE_SECONDS):
            if self.result is None and not self.over.is_set():
                await self.order(b"kill\n")
                await self.follow()
        return self.result is not None

    async def aclose(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._process.aclose()

    async def _report(self) -> str:
        """Returns the next report of the supervisor; empty if there is no further report."""
        while True:
            try:
                line = await self._reports.receive_until(b"\n", _LONGEST_LINE)
            except (anyio.IncompleteRead, anyio.DelimiterNotFound, anyio.EndOfStream):
                self.said += self._reports.buffer.decode(errors="replace")
                return ""
            text = line.decode(errors="replace")
            if text.startswith(self._prefix):
                return text.removeprefix(self._prefix)
            self.said = f"{self.said}{text}\n"[-_LONGEST_LINE:]


async def _attend(
    client: Client, seconds: float, observer: CommandObserver, watch: LimitWatch
) -> CommandOutcome | None:
    """Starts the command, and waits for its end. Returns None if nobody knows how the command
    ended."""
    since, exceeded = time.monotonic(), ""
    async with anyio.create_task_group() as group:

        async def measure() -> None:
            nonlocal exceeded
            exceeded = await watch.wait()
            await client.order(b"kill\n")
            if exceeded != "workspace":
                await client.kill()

        for task in (client.read, client.follow, measure):
            group.start_soon(task)
        group.start_soon(partial(report_progress, client.text, observer))
        await client.order(b"go\n")
        with anyio.move_on_after(SUPERVISOR_START_SECONDS):
            await client.begun.wait()
        with anyio.move_on_after(seconds if seconds else math.inf) as limit:
            await client.over.wait()
        if limit.cancelled_caught:
            await client.order(b"term\n")
            with anyio.move_on_after(KILL_GRACE):
                await client.over.wait()
            await client.order(b"kill\n")
            with anyio.move_on_after(FORCE_SECONDS):
                await client.over.wait()
            client.over.set()
        with anyio.move_on_after(OUTPUT_GRACE):
            await client.silent.wait()
        group.cancel_scope.cancel()
    exceeded = exceeded or await watch.reached()
    if client.result is None and not (limit.cancelled_caught or exceeded):
        return None
    code, left = client.result or (-9, 0)
    return CommandOutcome(
        text=client.text.text(),
        code=code,
        seconds=time.monotonic() - since,
        timed_out=limit.cancelled_caught,
        left=left,
        exceeded=exceeded,
    )


def _code(word: str) -> int:
    """Returns the exit code of a command, negative if a signal ended it."""
    code = int(word)
    return 128 - code if 128 < code < 128 + 65 else code
