"""A small proxy that passes each connection to the next of several servers on this machine."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import anyio
import anyio.abc


class RoundRobinProxy:
    """A proxy that passes bytes on unchanged. If a server refuses the connection, the proxy tries
    the next server."""

    def __init__(self, ports: Sequence[int]) -> None:
        self.port = 0
        self._ports = ports
        self._next = 0

    async def serve(self, client: anyio.abc.SocketStream) -> None:
        async with client:
            server = await self._connected()
            if server is None:
                return
            async with server, anyio.create_task_group() as group:
                group.start_soon(_pass_on, client, server, group.cancel_scope)
                group.start_soon(_pass_on, server, client, group.cancel_scope)

    async def _connected(self) -> anyio.abc.SocketStream | None:
        """Returns a connection to the next server that accepts a connection, or None if no server
        accepts one."""
        for _ in self._ports:
            self._next = (self._next + 1) % len(self._ports)
            try:
                return await anyio.connect_tcp("127.0.0.1", self._ports[self._next])
            except OSError:
                continue
        return None


async def _pass_on(
    source: anyio.abc.SocketStream, target: anyio.abc.SocketStream, both: anyio.CancelScope
) -> None:
    try:
        async for data in source:
            await target.send(data)
    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
        pass
    both.cancel()


@asynccontextmanager
async def round_robin(ports: Sequence[int], port: int = 0) -> AsyncIterator[RoundRobinProxy]:
    """Runs a proxy in front of these ports until the block ends. If `port` is 0, the system chooses
    a free port."""
    proxy = RoundRobinProxy(ports)
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=port)
    async with listener, anyio.create_task_group() as group:
        proxy.port = listener.extra(anyio.abc.SocketAttribute.local_port)  # noqa: S610  # not Django
        group.start_soon(listener.serve, proxy.serve)
        yield proxy
        group.cancel_scope.cancel()
