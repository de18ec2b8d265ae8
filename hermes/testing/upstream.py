"""A model server that says given bytes, and one request in every wire format to ask it with."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import msgspec

from hermes.core.models.wires import Wires
from hermes.types.events import AgentEvent
from hermes.types.messages import AssistantMessage, Message, UserMessage
from hermes.types.profile import ModelChoice, Wire
from hermes.types.protocols import ModelRequest
from hermes.types.tools import Tool, ToolContext

KEY = "sk-secret"
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n\r\n"


def json_response(body: bytes, status: int = 200, headers: bytes = b"") -> bytes:
    head = b"HTTP/1.1 %d X\r\nContent-Type: application/json\r\nConnection: close\r\n" % status
    return head + headers + b"\r\n" + body


@asynccontextmanager
async def answering(payload: bytes, heads: list[bytes] | None = None) -> AsyncIterator[str]:
    """A server at the address that says the same bytes to everyone and hangs up.

    The heads of the requests are added to `heads`, in lower case.
    """

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        if heads is not None:
            heads.append(head)
        await reader.readexactly(int(head.partition(b"content-length:")[2].split()[0]))
        writer.write(payload)
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


class Look(msgspec.Struct):
    at: int = 0


async def _look(_context: ToolContext, _arguments: Look) -> str:
    return "done"


LOOK = Tool(name="look", description="Looks.", arguments=Look, handler=_look)


def choice_of(wire: Wire, base_url: str = "http://127.0.0.1:9/v1") -> ModelChoice:
    return ModelChoice(provider="acme", model="some-1", base_url=base_url, api_key=KEY, wire=wire)


def request_to(choice: ModelChoice, *messages: Message) -> ModelRequest:
    return ModelRequest(
        choice=choice,
        system="be brief",
        messages=messages or (UserMessage(text="hi"),),
        step="t_1",
        tools=(LOOK,),
    )


async def ask(
    request: ModelRequest, silence: float = 300.0
) -> tuple[AssistantMessage, list[AgentEvent]]:
    """The answer over the wire format of the request, and what was told meanwhile."""
    events: list[AgentEvent] = []
    async with aiohttp.ClientSession() as session:
        message = await Wires(session, silence=silence).complete(request, events.append)
    return message, events


async def ask_raw(wire: Wire, response: bytes) -> tuple[AssistantMessage, list[AgentEvent]]:
    """What is made of a server's response."""
    async with answering(response) as base_url:
        return await ask(request_to(choice_of(wire, base_url)))
