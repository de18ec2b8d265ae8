"""Chat platforms that outlive the gateway: served over a socket, reached by adapters through it."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import partial
from typing import Literal

import anyio
import anyio.abc
import msgspec
from anyio.streams.buffered import BufferedByteReceiveStream

from hermes.testing.platforms import ChatServer, Shown, Update
from hermes.types.errors import Rejected
from hermes.types.value import Value

LONGEST_LINE = 16 << 20
REDELIVERED = 30
"""Updates that were taken already and come again at a new connection, as platforms do."""


class Ask(Value):
    """What an adapter wants of a platform."""

    id: int
    account: str
    kind: Literal["updates", "send", "edit"]
    place: str = ""
    """The chat to send to, or the message to edit."""
    text: str = ""
    offset: int = 0


class Told(Value):
    id: int
    updates: tuple[Update, ...] = ()
    message: str = ""
    rejected: str | None = None


_encode = msgspec.json.Encoder().encode
_decode_ask = msgspec.json.Decoder(Ask).decode
_decode_told = msgspec.json.Decoder(Told).decode


class Rooms(ChatServer):
    """A platform that remembers what was acknowledged, and whose chats can be waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.acknowledged = 0
        """Updates that the gateway has taken: position of the next."""
        self._ids: defaultdict[str, list[str]] = defaultdict(list)
        self._stirred: defaultdict[str, anyio.Event] = defaultdict(anyio.Event)

    def shown(self, chat: str) -> list[Shown]:
        """What stands in a chat, oldest first."""
        return [self.messages[id] for id in self._ids[chat]]

    async def until(self, chat: str, condition: Callable[[list[Shown]], bool]) -> None:
        """Returns when the condition holds for what stands in the chat."""
        while not condition(self.shown(chat)):
            await self._stirred[chat].wait()

    async def send(self, chat: str, text: str) -> str:
        id = await super().send(chat, text)
        self._ids[chat].append(id)
        self._stir(chat)
        return id

    async def edit(self, id: str, text: str) -> None:
        await super().edit(id, text)
        self._stir(self.messages[id].chat)

    def _stir(self, chat: str) -> None:
        self._stirred.pop(chat, anyio.Event()).set()


async def serve_rooms(
    rooms: Mapping[str, Rooms],
    *,
    task_status: anyio.abc.TaskStatus[int] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Serves the platforms, by account, until cancelled; tells the port once it listens.

    Not over a UNIX socket: when anyio's is cancelled in the round of the event loop in which data
    arrives, asyncio prints "Exception in callback … InvalidStateError".
    """
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        local_port = listener.extra_attributes[anyio.abc.SocketAttribute.local_port]
        task_status.started(local_port())
        await listener.serve(partial(_serve_one, rooms))


async def _serve_one(rooms: Mapping[str, Rooms], stream: anyio.abc.SocketStream) -> None:
    lines = BufferedByteReceiveStream(stream)
    desk = _Counter(rooms, stream)
    async with stream, anyio.create_task_group() as group:
        try:
            while True:
                line = await lines.receive_until(b"\n", LONGEST_LINE)
                group.start_soon(desk.answer, _decode_ask(line))
        except (anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError):
            group.cancel_scope.cancel()


class _Counter:
    """One gateway process as the platforms see it."""

    def __init__(self, rooms: Mapping[str, Rooms], stream: anyio.abc.SocketStream) -> None:
        self._rooms = rooms
        self._stream = stream
        self._writing = anyio.Lock()
        self._bases = {
            account: max(server.acknowledged - REDELIVERED, 0) for account, server in rooms.items()
        }

    async def answer(self, ask: Ask) -> None:
        try:
            told = await self._told(ask)
        except Rejected as error:
            told = Told(id=ask.id, rejected=str(error))
        async with self._writing:
            try:
                await self._stream.send(_encode(told) + b"\n")
            except anyio.BrokenResourceError:
                return

    async def _told(self, ask: Ask) -> Told:
        server = self._rooms[ask.account]
        match ask.kind:
            case "updates":
                position = self._bases[ask.account] + ask.offset
                server.acknowledged = max(server.acknowledged, position)
                return Told(id=ask.id, updates=tuple(await server.updates(position)))
            case "send":
                return Told(id=ask.id, message=await server.send(ask.place, ask.text))
            case "edit":
                await server.edit(ask.place, ask.text)
                return Told(id=ask.id)


class Link:
    """A gateway process's connection to the platforms."""

    def __init__(self, stream: anyio.abc.SocketStream) -> None:
        self._stream = stream
        self._writing = anyio.Lock()
        self._last = 0
        self._waiting: dict[int, anyio.Event] = {}
        self._told: dict[int, Told] = {}

    async def run(self) -> None:
        """Hears the platforms; raises EndOfStream when they are gone."""
        lines = BufferedByteReceiveStream(self._stream)
        while True:
            told = _decode_told(await lines.receive_until(b"\n", LONGEST_LINE))
            if event := self._waiting.pop(told.id, None):
                self._told[told.id] = told
                event.set()

    async def ask(
        self,
        account: str,
        kind: Literal["updates", "send", "edit"],
        place: str = "",
        text: str = "",
        offset: int = 0,
    ) -> Told:
        self._last += 1
        id = self._last
        ask = Ask(id=id, account=account, kind=kind, place=place, text=text, offset=offset)
        event = self._waiting[id] = anyio.Event()
        async with self._writing:
            await self._stream.send(_encode(ask) + b"\n")
        await event.wait()
        told = self._told.pop(id)
        if told.rejected is not None:
            raise Rejected(told.rejected)
        return told


class RemoteWire:
    """How an adapter in another process reaches one of the platforms."""

    def __init__(self, link: Link, account: str) -> None:
        self._link = link
        self._account = account

    async def updates(self, offset: int) -> list[Update]:
        return list((await self._link.ask(self._account, "updates", offset=offset)).updates)

    async def send(self, chat: str, text: str) -> str:
        return (await self._link.ask(self._account, "send", chat, text)).message

    async def edit(self, id: str, text: str) -> None:
        await self._link.ask(self._account, "edit", id, text)
