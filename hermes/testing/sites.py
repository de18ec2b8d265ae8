"""Runs web servers on this machine that give a fixed answer for each path and count connections."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import anyio
import anyio.abc
from anyio.streams.buffered import BufferedByteReceiveStream

LONGEST_HEAD = 1 << 20


def answer(
    body: bytes | str = b"",
    *,
    status: int = 200,
    media_type: str = "text/html; charset=utf-8",
    headers: Mapping[str, str] | None = None,
) -> bytes:
    """Returns an HTTP answer as bytes."""
    data = body.encode() if isinstance(body, str) else body
    named = {"Content-Type": media_type, "Content-Length": str(len(data)), **(headers or {})}
    lines = [f"HTTP/1.1 {status} X", *(f"{name}: {value}" for name, value in named.items())]
    return "\r\n".join([*lines, "", ""]).encode() + data


class Site:
    """The address of a test server, and what the server has recorded: the requests, and the number
    of connections."""

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self.port = port
        self.accepted = 0
        self.heard: list[bytes] = []
        """The requests as they were received, with their bodies."""


@asynccontextmanager
async def serving(
    answers: Mapping[str, bytes], *, host: str = "127.0.0.1", port: int = 0
) -> AsyncIterator[Site]:
    """Runs a server. `answers` maps the path of a request, without the query, to the bytes of the
    answer. If these bytes are empty, the server sends nothing."""
    listener = await anyio.create_tcp_listener(local_host=host, local_port=port)
    site = Site(host, listener.extra(anyio.abc.SocketAttribute.local_port))  # noqa: S610  # no SQL

    async def serve(stream: anyio.abc.SocketStream) -> None:
        site.accepted += 1
        lines = BufferedByteReceiveStream(stream)
        try:
            async with stream:
                request = await _request(lines)
                site.heard.append(request)
                path = request.split(b" ", 2)[1].decode().partition("?")[0]
                if not (said := answers.get(path, answer(status=404))):
                    await anyio.sleep_forever()
                await stream.send(said)
        except (anyio.IncompleteRead, anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass  # a visitor who leaves early is counted too

    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, serve)
        try:
            yield site
        finally:
            group.cancel_scope.cancel()


async def _request(lines: BufferedByteReceiveStream) -> bytes:
    head = await lines.receive_until(b"\r\n\r\n", LONGEST_HEAD)
    length = 0
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            length = int(line[15:])
    return head + b"\r\n\r\n" + (await lines.receive_exactly(length) if length else b"")
