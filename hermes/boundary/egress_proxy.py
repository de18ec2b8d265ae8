"""An HTTP proxy that connects the commands of sandboxes with the allowed hosts, and with no others.

The proxy listens on a Unix socket. The forwarder of a sandbox writes the name of the sandbox as the
first line of each connection. The HTTP request follows. The proxy understands CONNECT and requests
with an absolute URL. The address of every connection is checked when the connection is made, by the
rules of `web_extract`, so that a host name can't lead to an address that is not public.
"""

import asyncio
import contextlib
import logging
import os
import socket
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import anyio
import anyio.to_thread
from aiohttp.abc import AbstractResolver

from hermes.boundary.egress import CONNECT_SECONDS, IsAllowed, PageResolver, may_reach
from hermes.boundary.proxy_requests import (
    HEAD_END,
    LARGEST_HEAD,
    ProxyRefusal,
    ProxyRequest,
    parse_head,
    refusal_reply,
)
from hermes.types.execution import NetworkPolicy

log = logging.getLogger(__name__)

MOST_TUNNELS, MOST_TUNNELS_OF_ALL = 64, 512
"""Maximum number of connections at a time: the first for one sandbox, the second for all sandboxes
together."""
HEAD_SECONDS, IDLE_SECONDS = 10.0, 120.0
"""Time limits in seconds: the first for the head of a request, the second for a connection on which
nothing is sent in either direction."""
MOST_REMEMBERED = 1000
"""Maximum number of refused hosts that are remembered. A remembered host is not logged again."""
LOOKUP_THREADS = 2
"""Number of threads that look up the names of hosts."""
LONGEST_SOCKET_PATH = 100
"""The kernel may refuse a socket whose path has this number of bytes or more. The exact limit
depends on the system."""
_PIECE = 65_536


def allows(policy: NetworkPolicy, host: str) -> bool:
    """Returns whether the policy allows the host, which is in lower case."""
    if policy.mode != "hosts":
        return policy.mode == "open"
    return any(
        host == one or (one.startswith("*.") and host.endswith(one[1:]))
        for one in map(str.lower, policy.hosts)
    )


def is_own_address(address: str) -> bool:
    """Returns whether the address belongs to this machine. A server that listens only on this
    machine, such as the gateway, can have such an address."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
    return True


def may_pass(address: str, port: int, allowed: IsAllowed = may_reach) -> bool:
    """Returns whether a sandbox may connect to the address and the port. `allowed` must permit
    them, and the address must not belong to this machine."""
    return allowed(address, port) and not is_own_address(address)


class EgressProxy:
    """The proxy of all sandboxes with the same policy."""

    def __init__(
        self,
        policy: NetworkPolicy,
        *,
        resolver: AbstractResolver | None = None,
        allowed: IsAllowed = may_pass,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        self._policy = policy
        # A command can choose hosts with slow name servers. So the look-ups for commands have
        # threads of their own, and do not occupy the other threads of the gateway.
        self._resolver = resolver or PageResolver(anyio.CapacityLimiter(LOOKUP_THREADS))
        self._allowed = allowed
        self._idle_seconds = idle_seconds
        self._starting = anyio.Lock()
        self._server: asyncio.Server | None = None
        self._path: Path | None = None
        self._tunnels: set[asyncio.Task[None]] = set()
        self._count: Counter[str] = Counter()
        """Number of open connections of each sandbox."""
        self._logged: dict[tuple[str, str], None] = {}
        """The refusals that were logged, each as a sandbox and a host, the oldest first."""
        self._refused: dict[tuple[str, str], None] = {}
        """The refusals that `take_refused` has not returned yet, each as a sandbox and a host."""

    async def start(self, folder: Path) -> None:
        """Starts to listen on a socket in the folder. Does nothing if the proxy already listens.

        Each process has its own socket in the folder. Background commands that outlive the process
        use the socket of the next process.
        """
        async with self._starting:
            if self._server is not None:
                return
            path = folder / f"{os.getpid()}.sock"
            listener = await anyio.to_thread.run_sync(_listen, path)
            self._server = await asyncio.start_unix_server(
                self._serve, sock=listener, limit=LARGEST_HEAD
            )
            self._path = path

    async def aclose(self) -> None:
        """Ends all connections and removes the socket."""
        if self._server is None or self._path is None:
            return
        self._server.close()
        for task in self._tunnels:
            task.cancel()
        self._path.unlink(missing_ok=True)

    def take_refused(self, sandbox: str) -> Sequence[str]:
        """Returns the hosts that the policy has refused to the sandbox since the last call of this
        method."""
        found = [refusal for refusal in self._refused if refusal[0] == sandbox]
        for refusal in found:
            del self._refused[refusal]
        return [host for _, host in found]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tunnels.add(task)
        try:
            await self._answer(reader, writer)
        except (OSError, EOFError, TimeoutError, asyncio.LimitOverrunError) as error:
            log.debug("a connection of a sandbox ended: %r", error)
        except asyncio.CancelledError:
            # The proxy is being closed. No caller waits for this task.
            pass
        finally:
            self._tunnels.discard(task)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with anyio.fail_after(HEAD_SECONDS):
            sandbox = (await reader.readuntil(b"\n")).decode(errors="replace").rstrip()
        self._count[sandbox] += 1
        try:
            with anyio.fail_after(HEAD_SECONDS):
                head = await _read_head(reader)
            request = parse_head(head)
            self._check(sandbox, request.host)
            server_reader, server_writer = await self._connect(request)
            try:
                if request.head:
                    server_writer.write(request.head)
                else:
                    writer.write(b"HTTP/1.1 200 Connection established" + HEAD_END)
                await self._join((reader, server_writer), (server_reader, writer))
            finally:
                server_writer.close()
        except ProxyRefusal as refusal:
            writer.write(refusal_reply(refusal))
            await writer.drain()
        finally:
            self._count -= Counter([sandbox])

    def _check(self, sandbox: str, host: str) -> None:
        many = self._count[sandbox] > MOST_TUNNELS or len(self._tunnels) > MOST_TUNNELS_OF_ALL
        if many:
            raise ProxyRefusal(503, "there are too many connections at the same time")
        if allows(self._policy, host):
            return
        _remember(self._refused, (sandbox, host))
        if _remember(self._logged, (sandbox, host)):
            log.info(
                "the sandbox of %s may not connect to %s; terminal.network can allow the host",
                sandbox,
                host,
            )
        raise ProxyRefusal(
            403, f"terminal.network does not allow {host}; the operator can add the host"
        )

    async def _connect(
        self, request: ProxyRequest
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Tries the allowed addresses of the host in order, and connects to the first that
        answers."""
        host, port = request.host, request.port
        try:
            with anyio.fail_after(CONNECT_SECONDS):
                found = [one["host"] for one in await self._resolver.resolve(host, port)]
        except (OSError, TimeoutError):
            raise ProxyRefusal(502, f"there is no host {host}") from None
        public = [address for address in found if self._allowed(address, port)]
        if not public:
            raise ProxyRefusal(
                403,
                f"{host}:{port} is not allowed: a command can only reach web servers on other"
                " machines that have public addresses",
            )
        for address in public:
            # The address is numeric, so that no second look-up can return another address.
            with contextlib.suppress(OSError, TimeoutError), anyio.fail_after(CONNECT_SECONDS):
                return await asyncio.open_connection(address, port)
        raise ProxyRefusal(502, f"{host}:{port} can't be reached")

    async def _join(self, *pipes: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
        """Passes bytes on in both directions until both sides have closed the connection, or
        nothing was sent for too long."""
        with anyio.CancelScope(deadline=anyio.current_time() + self._idle_seconds) as scope:
            async with anyio.create_task_group() as group:
                for reader, writer in pipes:
                    group.start_soon(self._pass_on, reader, writer, scope)

    async def _pass_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, scope: anyio.CancelScope
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(_PIECE):
                scope.deadline = anyio.current_time() + self._idle_seconds
                writer.write(data)
                await writer.drain()
            if writer.can_write_eof():
                writer.write_eof()
            return
        scope.cancel()


def _remember(known: dict[tuple[str, str], None], refusal: tuple[str, str]) -> bool:
    """Adds the refusal, and forgets the oldest refusals if there are too many. Returns False if
    this refusal was known already."""
    if refusal in known:
        return False
    known[refusal] = None
    while len(known) > MOST_REMEMBERED:
        del known[next(iter(known))]
    return True


async def _read_head(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil(HEAD_END)
    except asyncio.LimitOverrunError:
        raise ProxyRefusal(400, f"the request has more than {LARGEST_HEAD} bytes") from None


def _listen(path: Path) -> socket.socket:
    """Returns a socket that listens at the path. Removes the sockets of dead processes from the
    folder."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    for old in path.parent.glob("*.sock"):
        if old == path or not _is_alive(old):
            old.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    try:
        # The socket gets its final name only when it listens. Otherwise another process could
        # mistake it for the socket of a dead process and remove it.
        new = path.with_suffix(".new")
        new.unlink(missing_ok=True)
        with short_path(new) as name:
            listener.bind(name)
        listener.listen(MOST_TUNNELS)
        new.rename(path)
    except BaseException:
        listener.close()
        raise
    return listener


def _is_alive(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe, short_path(path) as name:
        return probe.connect_ex(name) == 0


@contextlib.contextmanager
def short_path(path: Path) -> Iterator[str]:
    """Yields a path that leads to the same socket as `path` and is short enough for the kernel."""
    if len(os.fsencode(path)) < LONGEST_SOCKET_PATH:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
