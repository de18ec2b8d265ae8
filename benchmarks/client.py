"""A cheap HTTP client for load tests, which measures the time to the first token."""

import asyncio
import time
from collections.abc import Mapping
from typing import cast

import httptools
import msgspec

from benchmarks.model import TOKEN

SAMPLE = 300
"""Maximum number of bytes of a wrong answer that are kept for the report."""


class Answer(msgspec.Struct, kw_only=True):
    """The result of one request."""

    status: int = 0
    tokens: int = 0
    """Number of the model's tokens that were received."""
    first: float = 0.0
    """Seconds until the first byte of content, or until the end of the answer if it has no
    content."""
    total: float = 0.0
    error: str = ""
    body: bytes = b""

    def good(self, tokens: int) -> bool:
        """Returns whether the answer succeeded and has this number of tokens."""
        return self.status == 200 and self.tokens == tokens and not self.error

    def told(self) -> str:
        """Describes the failure in words."""
        shown = self.body[:SAMPLE].decode(errors="replace")
        return f"status {self.status}, {self.tokens} tokens {self.error} {shown}".strip()


def encode(
    method: str, path: str, headers: Mapping[str, str] | None = None, body: bytes = b""
) -> bytes:
    """Returns the bytes of an HTTP request."""
    every = {
        "Host": "127.0.0.1",
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        **(headers or {}),
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in every.items())
    return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + body


class Wire(asyncio.Protocol):
    """One connection, and the answer that arrives on it."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._ended: asyncio.Future[None] | None = None
        self.body = bytearray()
        self.status = 0
        self.first = 0.0
        self._keep_alive = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # The cast is needed because uvloop's transports are not subclasses of asyncio.Transport.
        self.transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        if self._ended is not None and not self._ended.done():
            self._ended.set_exception(exc or ConnectionResetError("closed before the end"))

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            if self._ended is not None and not self._ended.done():
                self._ended.set_exception(ConnectionError(f"not HTTP: {error}"))

    def on_body(self, part: bytes) -> None:
        before = len(self.body)
        self.body += part
        if not self.first and self.body.find(TOKEN, max(0, before - len(TOKEN))) >= 0:
            self.first = time.perf_counter()

    def on_message_complete(self) -> None:
        self.status = self._parser.get_status_code()
        # The value is stored now, because the parser can't report it any more when the next answer
        # begins.
        self._keep_alive = self._parser.should_keep_alive()
        if self.status >= 200 and self._ended is not None and not self._ended.done():
            self._ended.set_result(None)

    def send(self, request: bytes) -> "asyncio.Future[None]":
        """Writes the request. Returns a future that is done when the answer is complete."""
        if self.transport is None:
            raise ConnectionResetError("closed before the request")
        self.body, self.status, self.first = bytearray(), 0, 0.0
        self._ended = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return self._ended

    @property
    def reusable(self) -> bool:
        closing = self.transport is None or self.transport.is_closing()
        return not closing and self._keep_alive


class Client:
    """Sends requests to one server, over one connection that is reopened if it is lost."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._wire: Wire | None = None

    async def connect(self) -> Wire:
        if self._wire is None or not self._wire.reusable:
            self.close()
            loop = asyncio.get_running_loop()
            _, self._wire = await loop.create_connection(Wire, "127.0.0.1", self._port)
        return self._wire

    async def ask(self, request: bytes, seconds: float = 60.0) -> Answer:
        """Sends a request and returns its answer. If the request fails, the answer describes the
        failure."""
        began, answer, wire = time.perf_counter(), Answer(), None
        try:
            async with asyncio.timeout(seconds):
                wire = await self.connect()
                await wire.send(request)
        except (OSError, TimeoutError) as error:
            answer.error = repr(error)
            self.close()
        ended = time.perf_counter()
        answer.total = answer.first = ended - began
        if wire is not None:
            answer.status, answer.body = wire.status, bytes(wire.body)
            answer.tokens = answer.body.count(TOKEN)
            if wire.first:
                answer.first = wire.first - began
        return answer

    def close(self) -> None:
        if self._wire is not None and self._wire.transport is not None:
            self._wire.transport.close()
        self._wire = None


async def ask_once(port: int, request: bytes, seconds: float = 10.0) -> Answer:
    """Sends one request over a connection of its own."""
    client = Client(port)
    try:
        return await client.ask(request, seconds)
    finally:
        client.close()
