"""A model server that sends given bytes, and example requests in every wire format."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import msgspec

from hermes.core.models.answer import StreamedAnswer
from hermes.core.models.client import ModelClient
from hermes.core.models.stream import PayloadStream
from hermes.core.models.wires import builtin_wire_formats, wire_formats
from hermes.types.events import AgentEvent
from hermes.types.messages import AssistantMessage, Message, UserMessage
from hermes.types.models import ModelRequest, WireFormat
from hermes.types.profile import ModelChoice
from hermes.types.tools import Tool, ToolContext

PROVIDER_KEY = "sk-secret"
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n\r\n"


def json_response(body: bytes, status: int = 200, headers: bytes = b"") -> bytes:
    head = b"HTTP/1.1 %d X\r\nContent-Type: application/json\r\nConnection: close\r\n" % status
    return head + headers + b"\r\n" + body


@asynccontextmanager
async def answering(
    payload: bytes, heads: list[bytes] | None = None, bodies: list[bytes] | None = None
) -> AsyncIterator[str]:
    """Runs a server that sends the same bytes to every client and closes the connection.

    The heads of the requests are added to `heads`, in lower case, and the bodies to `bodies`.
    """

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        if heads is not None:
            heads.append(head)
        length = int(head.partition(b"content-length:")[2].split()[0])
        body = await reader.readexactly(length)
        if bodies is not None:
            bodies.append(body)
        writer.write(payload)
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


def model_client(session: aiohttp.ClientSession) -> ModelClient:
    """Returns a client for the built-in wire formats."""
    return ModelClient(session, wire_formats(builtin_wire_formats()))


class Look(msgspec.Struct):
    at: int = 0


async def _look(_context: ToolContext, _arguments: Look) -> str:
    return "done"


LOOK = Tool(name="look", description="Looks.", arguments=Look, handler=_look)


def choice_of(wire: str, base_url: str = "http://127.0.0.1:9/v1") -> ModelChoice:
    return ModelChoice(
        provider="acme", model="some-1", base_url=base_url, api_key=PROVIDER_KEY, wire=wire
    )


def request_to(choice: ModelChoice, *messages: Message) -> ModelRequest:
    return ModelRequest(
        choice=choice,
        system="be brief",
        messages=messages or (UserMessage(text="hi"),),
        step="t_1",
        tools=(LOOK,),
    )


async def ask(
    request: ModelRequest, *added: WireFormat, read_timeout: float = 300.0
) -> tuple[AssistantMessage, list[AgentEvent]]:
    """Sends the request, and returns the answer and the events. `added` are wire formats in
    addition to the built-in ones."""
    events: list[AgentEvent] = []
    async with aiohttp.ClientSession() as session:
        client = ModelClient(
            session, wire_formats([*builtin_wire_formats(), *added]), read_timeout=read_timeout
        )
        message = await client.complete(request, events.append)
    return message, events


def read(wire: WireFormat, *pieces: bytes) -> tuple[AssistantMessage, list[AgentEvent]]:
    """Parses the pieces of a stream. Returns the answer and the events that were emitted."""
    events: list[AgentEvent] = []
    answer = StreamedAnswer(choice_of(wire.name), events.append)
    stream = PayloadStream(answer, wire.parser(answer))
    for piece in pieces:
        stream.feed(piece)
    stream.end()
    return answer.message("t_1"), events
