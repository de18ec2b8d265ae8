"""Starts foreground commands through a fork server, and communicates with their supervisors."""

import contextlib
import json
import os
import signal
import socket
import weakref
from types import ModuleType

import anyio
import anyio.to_thread

from hermes.boundary.execution import fork_server
from hermes.boundary.execution.handles import CALL_MARK, end_command, handle_of
from hermes.boundary.execution.launch import CommandLaunch
from hermes.boundary.execution.process import ProcessGroup, signal_group, start_time
from hermes.boundary.execution.process_tree import send_signal, terminate_wrapped
from hermes.boundary.execution.scripts import script
from hermes.types.errors import ToolFailed
from hermes.types.value import Value

OUTPUT_READ = 65_536
"""Maximum number of bytes of output in one read."""
LONGEST_ARGUMENT = 131_071
"""Maximum number of bytes of a command. Linux limits each argument of a program to this length."""
STARTING_SECONDS = 10.0
"""Seconds within which a supervisor must answer."""
SUPERVISOR_SECONDS = 30.0
"""Seconds within which a supervisor must end all processes after the order to do so."""


class CommandRequest(Value):
    """A command in the form that is sent to a supervisor."""

    launch: CommandLaunch
    mark: str
    """Identifies the processes of the command, in case the supervisor is killed."""

    def line(self) -> bytes:
        """Encodes the request for a supervisor. Raises ValueError if the command is too long or
        contains NUL."""
        launch = self.launch
        for one in launch.arguments:
            if "\0" in one or len(os.fsencode(one)) > LONGEST_ARGUMENT:
                raise ValueError(f"a command can have at most {LONGEST_ARGUMENT} bytes and no NUL")
        fields = {
            "arguments": launch.arguments,
            "environment": {**launch.environment, CALL_MARK: self.mark},
            "folder": str(launch.folder),
            "restrictions": launch.restrictions.fields(),
        }
        return json.dumps(fields).encode() + b"\n"


class CommandEnd(Value):
    """The result of a command."""

    code: int
    left: int
    """Number of processes that were killed because they still ran at the end of the command."""
    exceeded: str
    """The exceeded limit because of which the command was ended; empty if no limit was exceeded."""


class SupervisorLost(Exception):
    """Raised if a supervisor has ended without an answer, because it or the fork server was
    killed."""


class ForkServerClient:
    """Starts commands through a fork server. The fork server is started when it is needed."""

    def __init__(self) -> None:
        self.starting_seconds = STARTING_SECONDS
        self._server: ServerProcess | None = None

    async def start(self, request: CommandRequest) -> "SupervisedCommand":
        """Prepares the command. Raises OSError or ValueError if the command can't be started."""
        line = request.line()
        try:
            return await self._start(line, request)
        except SupervisorLost:
            # The command has not begun, so it can be started through a new server.
            self.close()
        try:
            return await self._start(line, request)
        except SupervisorLost as error:
            raise ToolFailed("The command could not be started: its supervisor died.") from error

    def close(self) -> None:
        """Ends the server. Running commands continue, and the next command starts a new server."""
        if self._server is not None:
            self._server.end()
            self._server = None

    async def _start(self, line: bytes, request: CommandRequest) -> "SupervisedCommand":
        control, supervised = socket.socketpair()
        reading, writing = os.pipe()
        connection = SupervisorConnection(control, reading)
        try:
            with anyio.fail_after(self.starting_seconds):
                await self._send(supervised.fileno(), writing)
                # This process closes its copy of the supervisor's socket. Otherwise the connection
                # would stay open after the supervisor has ended.
                supervised.close()
                await connection.send(line)
                word, _, rest = (await connection.line()).partition(" ")
            supervisor, shell = _ready(word, rest)
        except BaseException as error:
            connection.close()
            if isinstance(error, (ConnectionError, TimeoutError)):
                raise SupervisorLost from error
            raise
        finally:
            supervised.close()
            os.close(writing)
        return SupervisedCommand(connection, supervisor, shell, request)

    async def _send(self, *descriptors: int) -> None:
        server = self._server = self._server or ServerProcess()
        while True:
            try:
                socket.send_fds(server.requests, [b"+"], descriptors)
            except BlockingIOError:
                await anyio.wait_writable(server.requests)
            else:
                return


class ServerProcess:
    """A process that runs the fork server, or another module that serves a socket. The process ends
    when this object is garbage-collected."""

    def __init__(
        self, module: ModuleType = fork_server, listener: socket.socket | None = None
    ) -> None:
        """Starts the module as a process. Its stdin is the other end of `requests`, and its stdout
        is `listener`."""
        self.requests, theirs = socket.socketpair()
        self.requests.setblocking(False)
        arguments = script(module)
        actions = [
            (os.POSIX_SPAWN_DUP2, theirs.fileno(), 0),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            *((os.POSIX_SPAWN_DUP2, one.fileno(), 1) for one in (listener,) if one),
        ]
        try:
            pid = os.posix_spawn(arguments[0], arguments, {}, file_actions=actions, setsid=True)
        except BaseException:
            self.requests.close()
            raise
        finally:
            theirs.close()
        self.end = weakref.finalize(self, _end_server, self.requests, pid)


def _end_server(requests: socket.socket, pid: int) -> None:
    requests.close()
    with contextlib.suppress(ProcessLookupError, ChildProcessError):
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


class SupervisorConnection:
    """The control socket of a supervisor, and the output of its command."""

    def __init__(self, control: socket.socket, output: int) -> None:
        control.setblocking(False)
        os.set_blocking(output, False)
        self._control = control
        self._output = output
        self._received = b""

    async def send(self, data: bytes) -> None:
        while data:
            try:
                data = data[self._control.send(data) :]
            except BlockingIOError:
                await anyio.wait_writable(self._control)

    async def line(self) -> str:
        """Reads the next line. Raises SupervisorLost if there is no further line."""
        while b"\n" not in self._received:
            await anyio.wait_readable(self._control)
            try:
                data = self._control.recv(4096)
            except ConnectionError:
                data = b""
            if not data:
                raise SupervisorLost
            self._received += data
        line, _, self._received = self._received.partition(b"\n")
        return line.decode()

    async def output(self) -> bytes:
        """Reads the next piece of output; empty at the end."""
        # The wait before every read keeps endless output from blocking the event loop.
        await anyio.wait_readable(self._output)
        return os.read(self._output, OUTPUT_READ)

    def close(self) -> None:
        self._control.close()
        os.close(self._output)


class SupervisedCommand:
    """A prepared command, which begins when `release` is called. It must be closed."""

    def __init__(
        self,
        connection: SupervisorConnection,
        supervisor: ProcessGroup,
        shell: ProcessGroup,
        request: CommandRequest,
    ) -> None:
        self._connection = connection
        self._supervisor = supervisor
        self._shell = shell
        self._mark = request.mark
        self._wrapped = request.launch.restrictions.wrapped
        self.ending_seconds = SUPERVISOR_SECONDS
        self._code: int | None = None
        self._left: int | None = None
        """Number of processes that the supervisor had to kill; None until all processes have ended.
        Then the exit code in `_code` is known, too."""
        self._exceeded = ""
        self._lost = False

    @property
    def handle(self) -> str:
        return handle_of(self._shell, self._mark, self._supervisor)

    async def release(self) -> None:
        """Lets the command begin."""
        with contextlib.suppress(ConnectionError):
            await self._connection.send(b"go\n")

    async def output(self) -> bytes:
        """Reads the next piece of output; empty at the end."""
        return await self._connection.output()

    async def shell_ended(self) -> None:
        """Returns when the shell or the supervisor has ended. Other processes may still run."""
        while self._code is None and not self._lost:
            await self._listen()

    def terminate(self) -> None:
        """Sends SIGTERM to the processes of the command: to all processes in its bubblewrap
        sandbox, or otherwise to the process group of the shell."""
        if self._wrapped:
            terminate_wrapped(self._supervisor.group)
        else:
            signal_group(self._shell, signal.SIGTERM)

    async def end(self) -> CommandEnd | None:
        """Ends everything that the command has started. Returns None if the result is unknown."""
        # The command may have stopped its supervisor with SIGSTOP. A stopped supervisor reads no
        # orders, so it is resumed first.
        send_signal(self._supervisor.group, self._supervisor.started, signal.SIGCONT)
        with anyio.move_on_after(self.ending_seconds):
            while self._left is None and not self._lost:
                with contextlib.suppress(ConnectionError):
                    await self._connection.send(b"kill\n")
                await self._listen()
        if self._left is None or self._code is None:
            await anyio.to_thread.run_sync(end_command, self._shell, self._mark, self._supervisor)
            self._lost = True
            return None
        return CommandEnd(code=self._code, left=self._left, exceeded=self._exceeded)

    async def aclose(self) -> None:
        """Ends all processes, even if the task was cancelled."""
        with anyio.CancelScope(shield=True):
            await self.end()
        self._connection.close()

    async def _listen(self) -> None:
        try:
            word, code, *rest = (await self._connection.line()).split(" ", 3)
        except SupervisorLost:
            self._lost = True
            return
        self._code = int(code)
        if word == "ended":
            self._left, self._exceeded = int(rest[0]), rest[1]


def _ready(word: str, rest: str) -> tuple[ProcessGroup, ProcessGroup]:
    """Returns the process groups of the supervisor and of the shell. Raises OSError if the command
    can't begin."""
    if word != "ready":
        raise OSError(rest)
    supervisor, shell = map(int, rest.split())
    return _group(supervisor), _group(shell)


def _group(pid: int) -> ProcessGroup:
    return ProcessGroup(group=pid, started=start_time(pid) or 0)
