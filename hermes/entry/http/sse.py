"""Server-sent events to one client: nothing is skipped; one that does not read is cut."""

from collections.abc import Sequence
from typing import Protocol

import anyio

from hermes.entry.http.call import Call
from hermes.entry.http.connection import connection_of
from hermes.entry.http.reply import raw
from hermes.streaming.sse import KEEPALIVE
from hermes.types.events import Envelope

SLICE = 65_536
"""Bytes handed over at a time: as much and no more waits for a client that is slow."""
KEEPALIVE_SECONDS = 15.0
FRAME_SECONDS = 0.04
"""Words that come faster share a frame: nobody sees it, and it halves the work of a stream."""


_STREAM = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
)


class Stalled(Exception):
    """The client does not read."""


class Reader(Protocol):
    @property
    def ended(self) -> bool: ...

    async def next(self, within: float = ...) -> Sequence[Envelope]: ...
    async def gather(self, seconds: float) -> None: ...


class SSEStream:
    def __init__(self, call: Call) -> None:
        self._connection = connection_of(call.request.scope)
        self._send = call.send
        self._headers = call.headers
        self._patience = call.patience

    async def start(self, headers: dict[str, str]) -> None:
        every = [*_STREAM, *raw(self._headers), *raw(headers)]
        await self._send({"type": "http.response.start", "status": 200, "headers": every})

    async def send(self, frames: bytes) -> None:
        """Returns once the client keeps up; raises Stalled when it does not."""
        for start in range(0, len(frames), SLICE):
            await self._send_slice(frames[start : start + SLICE])

    async def _send_slice(self, part: bytes) -> None:
        message = {"type": "http.response.body", "body": part, "more_body": True}
        if not self._connection.flow.write_paused:
            await self._send(message)
            return
        with anyio.move_on_after(self._patience) as scope:
            await self._send(message)
        if scope.cancelled_caught:
            self._connection.cut()
            raise Stalled

    async def finish(self) -> None:
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})


async def next_or_keepalive(reader: Reader, out: SSEStream) -> Sequence[Envelope]:
    """What comes next, with a comment now and then so that nobody in between hangs up."""
    await reader.gather(FRAME_SECONDS)
    while not (events := await reader.next(KEEPALIVE_SECONDS)) and not reader.ended:
        await out.send(KEEPALIVE)
    return events
