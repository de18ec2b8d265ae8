"""Server-sent events to one client: none is skipped, and a client that does not read is cut off."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

import anyio
from starlette.types import Receive, Scope, Send

from hermes.control.following import Following
from hermes.entry.http.connection import connection_of
from hermes.entry.http.responses import raw
from hermes.streaming.sse import KEEPALIVE
from hermes.types.events import Envelope

SLICE = 65_536
"""Bytes handed over at a time: no more than this waits for a client that is slow."""
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


class EventStream:
    """An open stream of server-sent events. A client may stop reading for `patience` seconds."""

    def __init__(self, scope: Scope, send: Send, patience: float) -> None:
        self._connection = connection_of(scope)
        self._send = send
        self._patience = patience

    async def start(self, headers: Mapping[str, str]) -> None:
        every = [*_STREAM, *raw(headers)]
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


class EventStreamResponse:
    """A response that a function writes while the events arrive."""

    def __init__(self, write: Callable[[EventStream], Awaitable[None]], patience: float) -> None:
        self._write = write
        self._patience = patience

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._write(EventStream(scope, send, self._patience))


async def next_or_keepalive(
    following: Following, out: EventStream, every: float = KEEPALIVE_SECONDS
) -> Sequence[Envelope]:
    """The next events. While there are none, comments keep proxies from closing the stream."""
    await following.gather(FRAME_SECONDS)
    while not (events := await following.next(every)) and not following.ended:
        await out.send(KEEPALIVE)
    return events
