"""Connects a network namespace of bubblewrap with the proxy of its sandbox.

The module is run as a script, which needs only the standard library. It starts bubblewrap and a
second process, the forwarder. The forwarder listens on 127.0.0.1 inside the network namespace of
bubblewrap, and passes every connection on to a Unix socket on this machine. Commands in the sandbox
see neither the socket nor the forwarder.
"""

import contextlib
import ctypes
import fcntl
import json
import os
import select
import signal
import socket
import sys
from typing import NoReturn

PROXY_PORT = 3128
"""The port inside the sandbox at which commands find the proxy."""
PROXY_VARIABLES = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY")
_CLONE_NEWUSER, _CLONE_NEWNET, _NS_GET_USERNS = 0x1000_0000, 0x4000_0000, 0xB701
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_PIECE = 65_536
MOST_CONNECTIONS = 64
"""Maximum number of connections at a time. Further connections wait."""


def proxy_environment() -> dict[str, str]:
    """Returns the variables that make programs use the proxy."""
    address = f"http://127.0.0.1:{PROXY_PORT}"
    named = dict.fromkeys(PROXY_VARIABLES, address)
    return {**named, "no_proxy": "localhost,127.0.0.1,::1", "NO_PROXY": "localhost,127.0.0.1,::1"}


def main() -> NoReturn:
    """Runs bubblewrap until it ends, and exits with its code. The arguments are the folder of the
    sockets, the name of the sandbox, and the command line of bubblewrap with the whole path of the
    program."""
    folder, sandbox, program, *arguments = sys.argv[1:]
    told, info = os.pipe()
    gate, opened = os.pipe()
    # Supervisors expect that the first child is bubblewrap.
    bubblewrap = os.fork()
    if not bubblewrap:
        os.set_inheritable(info, True)
        os.set_inheritable(gate, True)
        # Bubblewrap creates the namespaces, writes the id of its child to `info`, and executes the
        # command when the other end of `gate` is written or closed.
        own = ["--info-fd", str(info), "--block-fd", str(gate)]
        os.execv(program, [program, *own, *arguments])  # noqa: S606  # running commands is its purpose
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1)
    parent = os.getpid()
    forwarder = os.fork()
    if not forwarder:
        _forward(folder, sandbox, (told, opened), parent)
    # `told`, the reading end of `info`, stays open: bubblewrap fails if no process can read what it
    # writes there.
    for descriptor in (info, gate, opened):
        os.close(descriptor)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _, status = os.waitpid(bubblewrap, 0)
    # The forwarder is killed here, because otherwise it would count as a process that the command
    # has left running. The processes in the namespace of bubblewrap end by themselves.
    os.kill(forwarder, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


def _forward(folder: str, sandbox: str, pipes: tuple[int, int], parent: int) -> NoReturn:
    told, opened = pipes
    try:
        # The kernel ends this process if its parent is killed.
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == parent:
            leave_descriptors({told, opened})
            os.setsid()
            # A command that gets SIGTERM may still need the network to clean up.
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            os.chdir(folder)
            with os.fdopen(told) as file:
                child = json.load(file)["child-pid"]
            join_namespaces(libc, child)
            # The server listens on all addresses of the namespace and not only on 127.0.0.1,
            # because the loopback interface may still be down. The interface then has no address.
            with socket.create_server(("", PROXY_PORT), backlog=MOST_CONNECTIONS) as listener:
                os.write(opened, b"g")
                os.close(opened)
                forward(listener, sandbox)
    finally:
        # If the forwarder fails, the command runs without a network.
        os._exit(1)


def leave_descriptors(kept: set[int]) -> None:
    """Closes all descriptors that this process has inherited, except `kept`. One of the closed
    descriptors is the pipe for the output of the command. If this process kept the pipe open, the
    readers of the output would wait for more."""
    with os.scandir("/proc/self/fd") as entries:
        found = {int(entry.name) for entry in entries}
    for descriptor in found - kept:
        with contextlib.suppress(OSError):
            os.close(descriptor)
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)


def join_namespaces(libc: ctypes.CDLL, pid: int) -> None:
    """Joins the network namespace of the process `pid`. Before that, joins the user namespace that
    owns this network namespace. The process itself may be in another user namespace."""
    network = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    owner = fcntl.ioctl(network, _NS_GET_USERNS)
    # A process can't join the user namespace that it is in.
    inside = os.path.samestat(os.fstat(owner), os.stat("/proc/self/ns/user"))  # noqa: PTH116
    for namespace, kind in ((owner, _CLONE_NEWUSER), (network, _CLONE_NEWNET)):
        if not (inside and namespace == owner) and libc.setns(namespace, kind):
            raise OSError(ctypes.get_errno(), "the namespaces of the sandbox can't be joined")
        os.close(namespace)


def forward(listener: socket.socket, sandbox: str, end: int | None = None) -> None:
    """Joins each connection of the listener with a connection to the proxy, until the descriptor
    `end` is readable."""
    connections: list[JoinedSockets] = []
    while True:
        reading: list[socket.socket | int] = [
            one for connection in connections for one in connection.sources()
        ]
        writing = [one for connection in connections for one in connection.targets()]
        if end is not None:
            reading.append(end)
        if len(connections) < MOST_CONNECTIONS:
            reading.append(listener)
        readable, writable, _ = select.select(reading, writing, [])
        if end in readable:
            return
        for connection in connections:
            connection.advance({*readable, *writable})
        connections = [one for one in connections if not one.closed]
        if listener in readable:
            client, _ = listener.accept()
            if (proxy := connect_to_proxy(sandbox)) is None:
                client.close()
            else:
                connections.append(JoinedSockets(client, proxy))


class JoinedSockets:
    """Two sockets. The bytes that arrive at one of them are sent to the other."""

    def __init__(self, one: socket.socket, other: socket.socket) -> None:
        for end in (one, other):
            end.setblocking(False)
        self._other = {one: other, other: one}
        self._pending: dict[socket.socket, bytes] = {}
        """Bytes that arrived at a socket and are not sent to the other socket yet."""
        self._open = {one, other}
        """The sockets at which bytes may still arrive."""
        self.closed = False

    def sources(self) -> list[socket.socket]:
        return [one for one in self._open if one not in self._pending]

    def targets(self) -> list[socket.socket]:
        return [self._other[one] for one in self._pending]

    def advance(self, ready: set[socket.socket | int]) -> None:
        """Sends and receives with the sockets that are ready. Closes both sockets when both sides
        have ended the connection, or when one side fails."""
        try:
            for source in [one for one in self._pending if self._other[one] in ready]:
                self._send(source)
            for source in [one for one in self.sources() if one in ready]:
                self._receive(source)
        except BlockingIOError:
            # A socket that is ready for reading may not be ready for writing, or the reverse. The
            # failed operation is tried again when a socket is ready the next time.
            pass
        except OSError:
            self._open.clear()
            self._pending.clear()
        if not self._open and not self._pending:
            self.closed = True
            for end in self._other:
                end.close()

    def _send(self, source: socket.socket) -> None:
        target, data = self._other[source], self._pending[source]
        if rest := data[target.send(data) :]:
            self._pending[source] = rest
        else:
            del self._pending[source]

    def _receive(self, source: socket.socket) -> None:
        if data := source.recv(_PIECE):
            self._pending[source] = data
        else:
            self._open.discard(source)
            self._other[source].shutdown(socket.SHUT_WR)


def connect_to_proxy(sandbox: str) -> socket.socket | None:
    """Connects to the proxy of a process that still runs; returns None if there is no such proxy.
    The sockets of the proxies are in the current folder. The first line that is sent tells the
    proxy the name of the sandbox. Commands can't change this line, because their data follows
    it."""
    with os.scandir() as entries:
        names = [entry.name for entry in entries]
    for name in names:
        if name.endswith(".sock"):
            proxy = socket.socket(socket.AF_UNIX)
            proxy.setblocking(False)
            if not proxy.connect_ex(name):
                proxy.send(f"{' '.join(sandbox.split())}\n".encode(errors="replace"))
                return proxy
            proxy.close()
    return None
