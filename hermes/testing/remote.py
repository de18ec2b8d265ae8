"""Serves chat platforms over a socket, so that they outlive the gateway, and connects adapters to
them."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import partial
from typing import Literal

import anyio
import anyio.abc
import msgspec
from anyio.streams.buffered import BufferedByteReceiveStream
from msgspec.structs import replace

from hermes.testing.platforms import Batch, ChatServer, Shown
from hermes.types.errors import Rejected
from hermes.types.messages import Content
from hermes.types.value import Value

LONGEST_CALL = 16 << 20
REDELIVERED = 60
"""Number of earlier updates that a platform delivers again when a gateway process connects. Real
platforms also repeat updates."""


class PlatformCall(Value):
    """A call of an adapter to a platform."""

    account: str
    kind: Literal["updates", "send", "edit", "typing"]
    id: int = 0
    place: str = ""
    """The chat to send to, the message to edit, or the sync token to continue from."""
    content: Content = Content(text="")
    key: str = ""


class PlatformAnswer(Value):
    id: int
    batch: Batch | None = None
    message: str = ""
    rejected: str | None = None


_encode = msgspec.json.Encoder().encode
_decode_call = msgspec.json.Decoder(PlatformCall).decode
_decode_answer = msgspec.json.Decoder(PlatformAnswer).decode


class Rooms(ChatServer):
    """A platform on which a test can wait for a change in a chat."""

    def __init__(self) -> None:
        super().__init__()
        self._ids: defaultdict[str, list[str]] = defaultdict(list)
        self._stirred: defaultdict[str, anyio.Event] = defaultdict(anyio.Event)

    def shown(self, chat: str) -> list[Shown]:
        """Returns our messages in a chat, oldest first."""
        return [self.messages[id] for id in self._ids[chat]]

    async def until(self, chat: str, condition: Callable[[list[Shown]], bool]) -> None:
        """Returns when the condition holds for our messages in the chat."""
        while not condition(self.shown(chat)):
            await self._stirred[chat].wait()

    async def send(self, chat: str, content: Content, key: str) -> str:
        id = await super().send(chat, content, key)
        self._ids[chat].append(id)
        self._stir(chat)
        return id

    async def edit(self, id: str, content: Content) -> None:
        await super().edit(id, content)
        self._stir(self.messages[id].chat)

    def _stir(self, chat: str) -> None:
        self._stirred.pop(chat, anyio.Event()).set()


async def serve_rooms(
    rooms: Mapping[str, Rooms],
    *,
    task_status: anyio.abc.TaskStatus[int] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Serves the platforms until the task is cancelled. `rooms` maps each account to its platform.
    Reports the port to the task's starter as soon as the server listens.

    The server uses TCP and not a UNIX socket. If a read on anyio's UNIX socket is cancelled in the
    same round of the event loop in which data arrives, asyncio prints "Exception in callback …
    InvalidStateError".
    """
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        local_port = listener.extra_attributes[anyio.abc.SocketAttribute.local_port]
        task_status.started(local_port())
        await listener.serve(partial(_serve_one, rooms))


async def _serve_one(rooms: Mapping[str, Rooms], stream: anyio.abc.SocketStream) -> None:
    lines = BufferedByteReceiveStream(stream)
    process = _GatewayProcess(rooms, stream)
    async with stream, anyio.create_task_group() as group:
        try:
            while True:
                line = await lines.receive_until(b"\n", LONGEST_CALL)
                group.start_soon(process.answer, _decode_call(line))
        except (anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError):
            group.cancel_scope.cancel()


class _GatewayProcess:
    """The platforms' end of the connection to one gateway process."""

    def __init__(self, rooms: Mapping[str, Rooms], stream: anyio.abc.SocketStream) -> None:
        self._rooms = rooms
        self._stream = stream
        self._writing = anyio.Lock()
        self._connected: set[str] = set()

    async def answer(self, call: PlatformCall) -> None:
        try:
            answer = await self._result(call)
        except Rejected as error:
            answer = PlatformAnswer(id=call.id, rejected=str(error))
        async with self._writing:
            try:
                await self._stream.send(_encode(answer) + b"\n")
            except anyio.BrokenResourceError:
                return

    async def _result(self, call: PlatformCall) -> PlatformAnswer:
        server = self._rooms[call.account]
        match call.kind:
            case "updates":
                token = int(call.place)
                if call.account not in self._connected:
                    self._connected.add(call.account)
                    token = max(token - REDELIVERED, 0)
                return PlatformAnswer(id=call.id, batch=await server.updates(str(token)))
            case "send":
                message = await server.send(call.place, call.content, call.key)
                return PlatformAnswer(id=call.id, message=message)
            case "edit":
                await server.edit(call.place, call.content)
            case "typing":
                await server.typing(call.place)
        return PlatformAnswer(id=call.id)


class PlatformConnection:
    """A gateway process's end of the connection to the platforms."""

    def __init__(self, stream: anyio.abc.SocketStream) -> None:
        self._stream = stream
        self._writing = anyio.Lock()
        self._last = 0
        self._waiting: dict[int, anyio.Event] = {}
        self._answers: dict[int, PlatformAnswer] = {}

    async def run(self) -> None:
        """Receives the answers of the platforms. Raises EndOfStream when the process of the
        platforms has ended."""
        lines = BufferedByteReceiveStream(self._stream)
        while True:
            answer = _decode_answer(await lines.receive_until(b"\n", LONGEST_CALL))
            if event := self._waiting.pop(answer.id, None):
                self._answers[answer.id] = answer
                event.set()

    async def call(self, call: PlatformCall) -> PlatformAnswer:
        self._last += 1
        id = self._last
        event = self._waiting[id] = anyio.Event()
        async with self._writing:
            await self._stream.send(_encode(replace(call, id=id)) + b"\n")
        await event.wait()
        answer = self._answers.pop(id)
        if answer.rejected is not None:
            raise Rejected(answer.rejected)
        return answer


class RemoteWire:
    """The connection of an adapter whose platform is in another process."""

    def __init__(self, connection: PlatformConnection, account: str) -> None:
        self._connection = connection
        self._account = account

    async def updates(self, token: str) -> Batch:
        batch = (await self._call("updates", token)).batch
        assert batch is not None
        return batch

    async def send(self, chat: str, content: Content, key: str) -> str:
        return (await self._call("send", chat, content, key)).message

    async def edit(self, id: str, content: Content) -> None:
        await self._call("edit", id, content)

    async def typing(self, chat: str) -> None:
        await self._call("typing", chat)

    async def _call(
        self,
        kind: Literal["updates", "send", "edit", "typing"],
        place: str,
        content: Content | None = None,
        key: str = "",
    ) -> PlatformAnswer:
        call = PlatformCall(
            account=self._account,
            kind=kind,
            place=place,
            content=content or Content(text=""),
            key=key,
        )
        return await self._connection.call(call)
