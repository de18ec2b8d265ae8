"""The streamed HTTP call that every wire format makes."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Protocol

import aiohttp
import anyio
import msgspec
from msgspec import Struct
from yarl import URL

from hermes.core.models.answer import Answer
from hermes.core.models.refusals import refusal, unreachable
from hermes.text.event_stream import EventStreamParser
from hermes.types.errors import Disconnected, Rejected
from hermes.types.messages import AssistantMessage
from hermes.types.protocols import Emit, ModelRequest

GATHER = 0.1
"""Seconds between two looks at an answer that nobody reads along."""
LINGER = 2.0
"""Seconds given to a finished answer for its usage and for closing."""
LONGEST_LINE = 4 << 20

HEADERS = {
    "Content-Type": "application/json",
    "Accept": "text/event-stream",
    # Compressing holds back the first words.
    "Accept-Encoding": "identity",
}
_EMPTY = (b"", b"[DONE]")


class Reader(Protocol):
    """Reads payloads of a wire format into an answer."""

    def take(self, payload: bytes) -> None: ...


class Post(Struct, frozen=True):
    url: URL
    headers: Mapping[str, str]
    body: bytes


class Events:
    """Server-sent events, cut anywhere: each payload is taken as soon as it is whole."""

    def __init__(self, answer: Answer, reader: Reader) -> None:
        self.answer = answer
        self._reader = reader
        self._parser = EventStreamParser()

    def feed(self, data: bytes) -> None:
        """What the bytes say is told at once, as one."""
        self.take(self._parser.feed(data))
        self.answer.flush()
        if self._parser.pending > LONGEST_LINE:
            raise Rejected(
                f"{self.answer.choice.provider} sent a line without end: check its base_url"
            )

    def end(self) -> None:
        """Some servers forget the last newline."""
        self.take(self._parser.end())
        self.answer.flush()

    def take(self, payloads: Sequence[bytes]) -> None:
        """Takes whole payloads; an answer that is not streamed is one."""
        try:
            for payload in payloads:
                if payload not in _EMPTY:
                    self._reader.take(payload)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            # A finished answer is not given up for what comes behind it.
            if not self.answer.finished:
                raise Disconnected(
                    f"{self.answer.choice.provider} sent something else than an answer"
                    f" ({error}); try again"
                ) from error


class Upstream:
    """Posts over the one session. `silence` is the longest wait for a byte, in seconds."""

    def __init__(self, session: aiohttp.ClientSession, silence: float) -> None:
        self._session = session
        # No total: the caller knows the turn's deadline.
        self._timeout = aiohttp.ClientTimeout(total=None, sock_connect=10.0, sock_read=silence)

    async def complete(
        self, request: ModelRequest, post: Post, reader: Callable[[Answer], Reader], emit: Emit
    ) -> AssistantMessage:
        """Streams the response through the reader to `emit`; raises one of our errors."""
        answer = Answer(request.choice, emit)
        events = Events(answer, reader(answer))
        try:
            async with self._session.post(
                post.url,
                data=post.body,
                headers=post.headers,
                timeout=self._timeout,
                # A redirect would carry the key to another host.
                allow_redirects=False,
            ) as response:
                await _read(response, events, live=request.live)
        except ValueError as error:
            # Such as a name and a password in the address, beside a key.
            raise Rejected(
                f"{request.choice.provider} can't be asked at its base_url: {error}"
            ) from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            # Once the model has finished, how the connection ends does not matter.
            if not answer.finished:
                raise unreachable(request.choice, error) from error
        return answer.message(request.step)


async def _read(response: aiohttp.ClientResponse, events: Events, *, live: bool) -> None:
    choice = events.answer.choice
    if response.status != 200:
        raise refusal(choice, response.status, response.headers, await response.read())
    match response.content_type:
        case "application/json":
            events.take([await response.read()])
            return
        case "text/html":
            raise Rejected(f"{choice.provider} answered with a web page: check its base_url")
    content = response.content
    async for data in content.iter_any() if live else _gathered(content):
        events.feed(data)
        if events.answer.finished:
            break
    else:
        events.end()
    # Reading to the end lets the connection be used again; not every server ends at once.
    with anyio.move_on_after(LINGER):
        async for data in content.iter_any():
            events.feed(data)


async def _gathered(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """What has come, a few times a second: to wake for each word costs more than to read it."""
    while not content.at_eof():
        with anyio.move_on_after(GATHER):
            await content.wait_eof()
        if data := content.read_nowait():
            yield data
