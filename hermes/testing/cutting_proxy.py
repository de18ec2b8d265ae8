"""A proxy in front of PostgreSQL that cuts the connection at a chosen statement."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Literal

import anyio
import anyio.abc

Moment = Literal["before", "after"]
"""Whether the proxy cuts the connection before or after it passes the statement to the server."""
_EXECUTE = b"E"


class CuttingProxy:
    """A proxy that counts the statements of all connections that pass through it."""

    def __init__(self, socket: Path) -> None:
        self.statements = 0
        """Number of statements that have passed through the proxy."""
        self.cuts = 0
        self.port = 0
        self.refusing = False
        """Whether the proxy closes every new connection at once."""
        self._socket = socket
        self._open: set[anyio.CancelScope] = set()
        self._cut_at: int | None = None
        self._moment: Moment = "before"

    def url(self, database: str) -> str:
        """Returns the address of the database through the proxy. The address turns encryption off,
        because the proxy could not count encrypted statements."""
        return (
            f"postgresql://postgres@127.0.0.1:{self.port}/{database}"
            "?sslmode=disable&gssencmode=disable"
        )

    def arm(self, statement: int, moment: Moment) -> None:
        """Makes the proxy cut a connection when it sends the chosen statement. `statement` counts
        from now: 1 is the next statement of any connection."""
        self._cut_at, self._moment = self.statements + statement, moment

    def disarm(self) -> None:
        self._cut_at = None

    def cut_all(self) -> None:
        """Cuts every connection."""
        for scope in self._open:
            scope.cancel()

    async def _serve(self, client: anyio.abc.SocketStream) -> None:
        with anyio.CancelScope() as scope:
            self._open.add(scope)
            try:
                await self._connect(client)
            finally:
                self._open.discard(scope)

    async def _connect(self, client: anyio.abc.SocketStream) -> None:
        async with client:
            if self.refusing:
                return
            try:
                # anyio's stream is not used, because it raises an error if its socket is closed
                # during a cancellation.
                reader, writer = await asyncio.open_unix_connection(self._socket)
            except OSError:
                return
            try:
                async with anyio.create_task_group() as group:
                    group.start_soon(self._answer, reader, client, group.cancel_scope)
                    with suppress(anyio.EndOfStream, anyio.BrokenResourceError, ConnectionError):
                        await self._pass(client, writer)
                    group.cancel_scope.cancel()
            finally:
                writer.close()

    async def _pass(self, client: anyio.abc.SocketStream, server: asyncio.StreamWriter) -> None:
        """Passes the client's messages to the server until the client disconnects or sends the
        chosen statement. The caller then cuts the connection."""
        reader = _Messages(client)
        # The first message of a connection (the startup message) does not begin with a byte for its
        # kind.
        server.write(await reader.next(kinds=False))
        while True:
            message = await reader.next()
            if message[:1] == _EXECUTE:
                self.statements += 1
                if self.statements == self._cut_at:
                    self.cuts += 1
                    if self._moment == "after":
                        server.write(message)
                    return
            server.write(message)
            await server.drain()

    async def _answer(
        self,
        server: asyncio.StreamReader,
        client: anyio.abc.SocketStream,
        scope: anyio.CancelScope,
    ) -> None:
        with suppress(anyio.BrokenResourceError, ConnectionError):
            while data := await server.read(65_536):
                await client.send(data)
        scope.cancel()


class _Messages:
    """Splits the bytes of a client into messages of PostgreSQL's protocol."""

    def __init__(self, stream: anyio.abc.SocketStream) -> None:
        self._stream = stream
        self._data = b""

    async def next(self, *, kinds: bool = True) -> bytes:
        start = int(kinds)
        await self._fill(start + 4)
        length = start + int.from_bytes(self._data[start : start + 4], "big")
        await self._fill(length)
        message, self._data = self._data[:length], self._data[length:]
        return message

    async def _fill(self, size: int) -> None:
        while len(self._data) < size:
            self._data += await self._stream.receive()


@asynccontextmanager
async def cutting_proxy(socket: Path) -> AsyncIterator[CuttingProxy]:
    """Runs a proxy in front of the PostgreSQL server with this socket until the block ends."""
    proxy = CuttingProxy(socket)
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    proxy.port = listener.extra(anyio.abc.SocketAttribute.local_port)  # noqa: S610  # no Django
    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, proxy._serve)  # noqa: SLF001  # of this module
        try:
            yield proxy
        finally:
            group.cancel_scope.cancel()
