"""Calls models over HTTP, in every wire format."""

import asyncio
from contextlib import suppress
from functools import lru_cache

import aiohttp
import anyio
from yarl import URL

from hermes.core.models.answer import StreamedAnswer
from hermes.core.models.attachments import ReadMedia, no_media, with_media
from hermes.core.models.provider_errors import refusal, unreachable
from hermes.core.models.stream import PayloadStream
from hermes.core.models.wires import WireFormats, find_wire
from hermes.types.errors import Rejected
from hermes.types.messages import AssistantMessage
from hermes.types.models import ModelRequest
from hermes.types.protocols import Emit

BATCH_SECONDS = 0.1
"""Seconds between two reads of an answer that nobody watches live."""
CLOSING_SECONDS = 2.0
"""Longest time in seconds, after the end of the answer, for the server to send the usage and to end
the response."""

HEADERS = {
    "Content-Type": "application/json",
    "Accept": "text/event-stream",
    # Compression is not requested, because it would delay the first words of an answer.
    "Accept-Encoding": "identity",
}


class ModelClient:
    """Calls models. The `ModelChoice` of a call names the wire format.

    `read_timeout` is the longest wait for the next byte, in seconds.
    """

    def __init__(
        self,
        session: aiohttp.ClientSession,
        wires: WireFormats,
        *,
        read_media: ReadMedia = no_media,
        read_timeout: float = 300.0,
    ) -> None:
        self._session = session
        self._wires = wires
        self._read_media = read_media
        # There is no total limit, because the caller enforces the turn's deadline.
        self._timeout = aiohttp.ClientTimeout(total=None, sock_connect=10.0, sock_read=read_timeout)

    async def complete(self, request: ModelRequest, emit: Emit) -> AssistantMessage:
        choice = request.choice
        wire = find_wire(self._wires, choice.wire)
        answer = StreamedAnswer(choice, emit)
        stream = PayloadStream(answer, wire.parser(answer))
        body = wire.body(await with_media(request, wire, self._read_media))
        try:
            async with self._session.post(
                _url(wire.url(choice)),
                data=body,
                headers={**HEADERS, **wire.headers(choice)},
                timeout=self._timeout,
                # Redirects are not followed, because they would carry the key to another host.
                allow_redirects=False,
            ) as response:
                await _read(response, stream, live=request.live)
        except ValueError as error:
            # aiohttp refuses to send the request, for example because both the address and the
            # settings contain a credential.
            raise Rejected(f"{choice.provider} can't be called at its base_url: {error}") from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            # After the model has finished its answer, it does not matter how the connection ends.
            if not answer.finished:
                raise unreachable(choice, error) from error
        return answer.message(request.step)


@lru_cache(maxsize=64)
def _url(text: str) -> URL:
    return URL(text)


async def _read(response: aiohttp.ClientResponse, stream: PayloadStream, *, live: bool) -> None:
    choice = stream.answer.choice
    if response.status != 200:
        raise refusal(choice, response.status, response.headers, await response.read())
    match response.content_type:
        case "application/json":
            stream.take([await response.read()])
            return
        case "text/html":
            raise Rejected(f"{choice.provider} answered with a web page: check its base_url")
    content = response.content
    while data := await (content.readany() if live else _batch(content)):
        stream.feed(data)
        if stream.answer.finished:
            break
    else:
        stream.end()
    if content.at_eof():
        return
    # A connection can be reused only after its response was read to the end. The wait is limited,
    # because some servers end the response late.
    with anyio.move_on_after(CLOSING_SECONDS):
        async for data in content.iter_any():
            stream.feed(data)


async def _batch(content: aiohttp.StreamReader) -> bytes:
    """Returns the next data, or nothing at the end of the response. The data is returned only a few
    times a second, because waking up for each word would cost CPU time."""
    while not content.at_eof():
        if not content.is_eof():
            # For an answer that nobody watches live, this wait is repeated many times. asyncio's
            # timeout is used, because it needs less CPU time than an anyio scope.
            with suppress(TimeoutError):
                async with asyncio.timeout(BATCH_SECONDS):
                    await content.wait_eof()
        if data := content.read_nowait():
            return data
    return b""
