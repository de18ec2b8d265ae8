"""Starts foreground commands and supervises each of them, in processes outside the gateway.

A gateway runs this module as a server, which needs only the standard library, and passes a socket
as stdin. For each command the gateway sends two descriptors over that socket: a control socket and
the pipe for the output. The server forks a supervisor, which reads the request, a line of JSON,
from the control socket. The supervisor and the gateway then exchange these lines:

- The supervisor writes `ready <its pid> <pid of the shell>`, or `failed <reason>`.
- The gateway writes `go`. Only then does the shell execute the command. At any time, the gateway
  can write `kill` to end everything. The end of the stream has the same effect, so a gateway that
  dies leaves no foreground command running.
- The supervisor writes `shell <code>` if the shell has ended and other processes still run, and
  `ended <code> <number killed> <limit>` when everything has ended. The limit is the one for which
  the supervisor ended the command, such as `memory`; empty if no limit was exceeded.

The supervisor is a subreaper, so even a process that leaves the shell's session stays a descendant
of the supervisor.
"""

import contextlib
import gc
import json
import os
import select
import signal
import socket
from typing import NoReturn, TypedDict

from hermes.boundary.execution.cgroup import ControlGroup, control_group
from hermes.boundary.execution.process_tree import (
    ProcessEntry,
    adopt_orphans,
    end_at_once,
    end_descendants,
    forbid_inspection,
    process_table,
    restore_signals,
    send_signal,
)
from hermes.boundary.execution.restrictions import RestrictionFields, exit_code, limit_of, restrict
from hermes.boundary.execution.watchdog import LIMIT_CHECK_SECONDS, Watchdog

KEPT_FOR_THE_COMMAND = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
"""Signals that end a command. The server and the supervisors must outlive the command, so they
block these signals."""
EXEC_FAILED = 127


class RequestFields(TypedDict):
    """The fields of a request for a command."""

    arguments: list[str]
    environment: dict[str, str]
    folder: str
    restrictions: RestrictionFields


class ChildWatch:
    """Waits for a socket and for the end of child processes at the same time."""

    def __init__(self, watched: socket.socket) -> None:
        self._woken, waker = os.pipe()
        os.set_blocking(waker, False)
        os.set_blocking(self._woken, False)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._watched = watched.fileno()
        self._poll = select.poll()
        self._poll.register(self._woken, select.POLLIN)
        self._poll.register(self._watched, select.POLLIN)

    def wait(self, seconds: float | None = None) -> bool:
        """Waits until the socket can be read or a child process ends, for at most this number of
        seconds. Returns True if the socket can be read."""
        milliseconds = None if seconds is None else seconds * 1000
        ready = {descriptor for descriptor, _ in self._poll.poll(milliseconds)}
        if self._woken in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._woken, 4096)
        return self._watched in ready


class ForkServer:
    """Forks a supervisor for each command, until the gateway closes its end of the socket."""

    def __init__(self, requests: socket.socket) -> None:
        self._requests = requests
        self._supervisors: set[int] = set()

    def serve(self) -> None:
        watch, open_for_requests = ChildWatch(self._requests), True
        while open_for_requests:
            if watch.wait():
                open_for_requests = self._accept()
            self._reap(os.WNOHANG)
        while self._supervisors:
            self._reap(0)

    def _accept(self) -> bool:
        """Starts a supervisor. Returns False if there are no more requests."""
        data, descriptors, _, _ = socket.recv_fds(self._requests, 1, 2)
        if not data:
            return False
        pid = os.fork()
        if not pid:
            self._requests.close()
            _supervise(*descriptors)
        self._supervisors.add(pid)
        for descriptor in descriptors:
            os.close(descriptor)
        return True

    def _reap(self, options: int) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, options)
                if not pid:
                    return
                if pid in self._supervisors:
                    self._supervisors.remove(pid)
                    if os.WIFSIGNALED(status):
                        self._end_strays()
                if not self._supervisors:
                    return

    def _end_strays(self) -> None:
        """Ends the processes that a killed supervisor has left. The fork server has become their
        parent."""
        while strays := [one for one in process_table() if self._is_stray(one)]:
            for stray in strays:
                end_descendants(stray.pid)
                send_signal(stray.pid, stray.started, signal.SIGKILL)
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(stray.pid, 0)

    def _is_stray(self, entry: ProcessEntry) -> bool:
        return entry.parent == os.getpid() and entry.pid not in self._supervisors


class Supervisor:
    """Runs one command, and ends all processes that the command started."""

    def __init__(self, control: socket.socket, output: int) -> None:
        self._control = control
        self._output = output
        self._watch = ChildWatch(control)
        self._shell = 0
        self._code: int | None = None
        self._gate, self._waiting = socket.socketpair()
        self._watchdog: Watchdog | None = None
        self._group: ControlGroup | None = None
        self._wrapped = False
        self._exceeded = ""

    def run(self) -> None:
        try:
            self._prepare()
        except (OSError, ValueError) as error:
            self._tell(f"failed {error}")
            return
        self._tell(f"ready {os.getpid()} {self._shell}")
        left = self._attend()
        if self._watchdog and not self._exceeded:
            self._exceeded = limit_of(self._code or 0)
        if self._group:
            if self._code and not self._exceeded:
                # The kernel may have ended the command between two checks.
                self._exceeded = self._group.exceeded()
            self._group.end()
        self._tell(f"ended {self._code} {left} {self._exceeded}")

    def _attend(self) -> int:
        """Waits until all processes of the command have ended, an order arrives or a limit is
        exceeded. Then kills the processes that still run. Returns the number of processes that
        `end_descendants` has killed."""
        told = False
        while True:
            ordered = (
                self._watch.wait(LIMIT_CHECK_SECONDS if self._watchdog else None) and self._obey()
            )
            alone = self._reap(os.WNOHANG)
            if self._code is not None and alone:
                return 0
            if ordered or self._exceeds_limit():
                break
            # In a sandbox of bubblewrap, processes that the command has left running end by
            # themselves a moment later. So the gateway is not told about these processes.
            if self._code is not None and not told and not self._wrapped:
                self._tell(f"shell {self._code}")
                told = True
        if self._exceeded:
            end_at_once(os.getpid(), self._shell, wrapped=self._wrapped)
        left = end_descendants(os.getpid())
        # Without /proc, only the processes in the process group of the shell can be found.
        with contextlib.suppress(OSError):
            os.killpg(self._shell, signal.SIGKILL)
        self._reap(0)
        return left

    def _prepare(self) -> None:
        """Starts the shell process, which waits for a byte before it executes the command."""
        request: RequestFields = json.loads(self._read_line())
        restrictions = request["restrictions"]
        os.chdir(request["folder"])
        self._wrapped = restrictions["wrapped"]
        limits = restrictions["limits"]
        self._group = control_group(restrictions["group"], limits)
        self._shell = os.fork()
        if not self._shell:
            self._gate.close()
            _become(request, self._waiting, self._output, self._group)
        if limits is not None:
            self._watchdog = Watchdog(os.getpid(), limits, restrictions["folders"], self._group)
        self._waiting.close()
        os.close(self._output)
        # The shell sends this byte when its process group exists. A signal to this group must not
        # be sent earlier.
        self._gate.recv(1)

    def _read_line(self) -> bytes:
        data = b""
        while not data.endswith(b"\n"):
            piece = self._control.recv(65536)
            if not piece:
                os._exit(0)
            data += piece
        return data

    def _obey(self) -> bool:
        """Reads an order from the gateway (`go` or `kill`). Returns True if all processes must be
        ended."""
        order = b""
        with contextlib.suppress(ConnectionError):
            order = self._control.recv(4096)
        if order != b"go\n":
            return True
        with contextlib.suppress(ConnectionError):
            self._gate.send(b"g")
        return False

    def _exceeds_limit(self) -> bool:
        if self._watchdog and self._watchdog.due():
            self._exceeded = self._watchdog.exceeded()
        return bool(self._exceeded)

    def _reap(self, options: int) -> bool:
        """Collects dead children. Returns True if no child is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, options)
            except ChildProcessError:
                return True
            if not pid:
                return False
            if pid == self._shell and self._code is None:
                self._code = exit_code(status, wrapped=self._wrapped)

    def _tell(self, line: str) -> None:
        # The write fails if the gateway is dead. Then nobody needs the result.
        with contextlib.suppress(OSError):
            self._control.sendall(f"{line}\n".encode(errors="replace"))


def _supervise(control: int, output: int) -> NoReturn:
    try:
        os.setsid()
        adopt_orphans()
        for descriptor in (control, output):
            os.set_inheritable(descriptor, False)
        Supervisor(socket.socket(fileno=control), output).run()
    finally:
        os._exit(0)


def _become(
    request: RequestFields, gate: socket.socket, output: int, group: ControlGroup | None
) -> NoReturn:
    """Executes the command in a session of its own, as soon as a byte arrives on the socket
    `gate`."""
    try:
        os.setsid()
        gate.send(b"r")
        if gate.recv(1) == b"g":
            for descriptor in (1, 2):
                os.dup2(output, descriptor)
            restore_signals()
            signal.pthread_sigmask(signal.SIG_UNBLOCK, KEPT_FOR_THE_COMMAND)
            if group:
                group.join()
            restrict(request["restrictions"])
            command, environment = request["arguments"], request["environment"]
            os.execve(command[0], command, environment)  # noqa: S606  # running commands is its purpose
    except (OSError, ValueError) as error:
        os.write(2, f"{error}\n".encode(errors="replace"))
    finally:
        os._exit(EXEC_FAILED)


def main() -> None:
    """Serves the socket that was passed as stdin."""
    signal.pthread_sigmask(signal.SIG_BLOCK, KEPT_FOR_THE_COMMAND)
    # A program that embeds Hermes may have inheritable descriptors, which commands must not get.
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    requests = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(null, descriptor)
    # The server leaves the folder in which it was started, so that this folder can be unmounted.
    os.chdir("/")
    adopt_orphans()
    forbid_inspection()
    gc.freeze()
    ForkServer(requests).serve()
