"""Sends server-sent events to one client. No event is skipped, and a slow client slows the
stream."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from starlette.types import Receive, Scope, Send

from hermes.control.following import Following
from hermes.entry.http.responses import BodyStream, raw
from hermes.streaming.sse import KEEPALIVE
from hermes.types.events import Envelope

KEEPALIVE_SECONDS = 15.0
FRAME_SECONDS = 0.04
"""Text deltas that arrive within this number of seconds are sent in one frame. People do not notice
the delay, and the server has half as much work per stream."""


_STREAM = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
)


class EventStream(BodyStream):
    """A stream of server-sent events."""

    async def start(self, headers: Mapping[str, str]) -> None:
        every = [*_STREAM, *raw(headers)]
        await self._send({"type": "http.response.start", "status": 200, "headers": every})


class EventStreamResponse:
    """A response that a function writes as the events arrive."""

    def __init__(self, write: Callable[[EventStream], Awaitable[None]]) -> None:
        self._write = write

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._write(EventStream(send))


async def next_or_keepalive(
    following: Following, out: EventStream, every: float = KEEPALIVE_SECONDS
) -> Sequence[Envelope]:
    """Returns the next events. While there are no events, sends comments, so that proxies do not
    close the stream."""
    await following.gather(FRAME_SECONDS)
    while not (events := await following.next(every)) and not following.ended:
        await out.send(KEEPALIVE)
    return events
