"""Server-sent events to one client: nothing is skipped; one that does not read is cut."""

from typing import Protocol

import anyio

from hermes.entry.http.call import Call
from hermes.entry.http.connection import connection_of
from hermes.entry.http.reader import Events
from hermes.streaming.sse import KEEPALIVE

STALLED_SECONDS = 30.0
"""A client that does not read for so long is cut; it can go on by event id."""
KEEPALIVE_SECONDS = 15.0


class Stalled(Exception):
    """The client does not read."""


class Reader(Protocol):
    async def next(self) -> Events: ...


class SSEStream:
    def __init__(self, call: Call) -> None:
        self._connection = connection_of(call.request.scope)
        self._send = call.send
        self._headers = call.headers

    async def start(self, headers: dict[str, str]) -> None:
        every = {
            "content-type": "text/event-stream; charset=utf-8",
            "cache-control": "no-cache",
            "x-accel-buffering": "no",
            **self._headers,
            **headers,
        }
        raw = [(name.encode(), value.encode("latin-1")) for name, value in every.items()]
        await self._send({"type": "http.response.start", "status": 200, "headers": raw})

    async def send(self, frames: bytes) -> None:
        """Returns once the client keeps up; raises when it does not."""
        with anyio.move_on_after(STALLED_SECONDS) as scope:
            await self._send({"type": "http.response.body", "body": frames, "more_body": True})
        if scope.cancelled_caught:
            self._connection.cut()
            raise Stalled

    async def finish(self) -> None:
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})


async def next_or_keepalive(reader: Reader, out: SSEStream) -> Events:
    """What comes next, with a comment now and then so that nobody in between hangs up."""
    while True:
        with anyio.move_on_after(KEEPALIVE_SECONDS):
            return await reader.next()
        await out.send(KEEPALIVE)
