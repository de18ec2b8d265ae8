"""A fake model that is fast enough not to limit the measured server: it encodes all frames in
advance, and writes once per token."""

import asyncio
import sys
from collections import deque
from collections.abc import Callable
from typing import cast

import httptools
import msgspec
import uvloop

TOKEN = b"lorem"
"""The text of every token. It occurs nowhere else in a request or an answer."""
READ = "notes.txt"
"""The file that the model reads with a tool call."""

_STREAM = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
    b"cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n"
)


class Behaviour(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The behaviour of the model. A change of the behaviour does not affect requests that are
    already running."""

    ttft: float = 0.0
    """Seconds before the first token."""
    tokens: int = 20
    delay: float = 0.0
    """Seconds between two tokens."""
    padding: int = 0
    """Number of characters that are added to every token."""
    tool: bool = False
    """Whether the model first calls the tool `read_file`, and answers only after its result."""
    command: str = ""
    """A command that the model first runs with the tool `terminal`; empty for none."""

    @property
    def seconds(self) -> float:
        """Minimum duration of an answer."""
        return self.ttft + self.tokens * self.delay


class Counts(msgspec.Struct, kw_only=True):
    """Numbers of requests, counted since the behaviour of the model was last set."""

    calls: int = 0
    tool_calls: int = 0
    open: int = 0
    most_open: int = 0


class Options(msgspec.Struct):
    include_usage: bool = False


class Message(msgspec.Struct):
    role: str


class Asked(msgspec.Struct):
    """The parts of a request on which the answer depends."""

    stream: bool = False
    stream_options: Options | None = None
    messages: list[Message] = []


def chunk(data: bytes) -> bytes:
    """Encodes one piece of a chunked body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def frame(delta: bytes, finish: bytes = b"null") -> bytes:
    return (
        b'data: {"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1,'
        b'"model":"fake-model","choices":[{"index":0,"delta":%b,"finish_reason":%b}]}\n\n'
    ) % (delta, finish)


def usage(size: int, tokens: int) -> bytes:
    prompt = size // 4
    return b'{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}' % (
        prompt,
        tokens,
        prompt + tokens,
    )


def last_frames(finish: bytes, counted: bytes) -> bytes:
    """Encodes the end of a stream. `counted` is the token usage, or empty if the request did not
    ask for it."""
    tail = b""
    if counted:
        tail = (
            b'data: {"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1,'
            b'"model":"fake-model","choices":[],"usage":%b}\n\n'
        ) % counted
    return chunk(frame(b"{}", finish) + tail + b"data: [DONE]\n\n") + b"0\r\n\r\n"


def reply(body: bytes, status: bytes = b"200 OK") -> bytes:
    head = b"HTTP/1.1 %b\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    return head % (status, len(body)) + body


def encoded_call(number: int, behaviour: Behaviour) -> bytes:
    """Encodes the tool call of the model. `number` makes the id of the call unique."""
    name, arguments = "read_file", {"path": READ}
    if behaviour.command:
        name, arguments = "terminal", {"command": behaviour.command}
    function = {"name": name, "arguments": msgspec.json.encode(arguments).decode()}
    call = {"index": 0, "id": f"call_{number}", "type": "function", "function": function}
    return msgspec.json.encode([call])


class Scene:
    """The state that all connections share: the behaviour of the model, the encoded frames of its
    answers, and the counts of requests."""

    def __init__(self) -> None:
        self.counts = Counts()
        self.last = b"{}"
        self.behave(Behaviour())

    def behave(self, behaviour: Behaviour) -> None:
        self.behaviour = behaviour
        word = TOKEN + b"." * behaviour.padding + b" "
        self.token = chunk(frame(b'{"content":"%b"}' % word))
        self.opening = _STREAM + chunk(frame(b'{"role":"assistant","content":""}'))
        self.text = word * behaviour.tokens
        self.counts = Counts(open=self.counts.open, most_open=self.counts.open)

    def whole(self, asked: Asked, size: int) -> bytes:
        counted = usage(size, self.behaviour.tokens)
        message, finish = b'{"role":"assistant","content":"%b"}' % self.text, b"stop"
        if self.calls_tool(asked):
            call = encoded_call(self.counts.calls, self.behaviour)
            message = b'{"role":"assistant","content":null,"tool_calls":%b}' % call
            finish = b"tool_calls"
        return reply(
            b'{"id":"chatcmpl-bench","object":"chat.completion","created":1,"model":"fake-model",'
            b'"choices":[{"index":0,"message":%b,"finish_reason":"%b"}],"usage":%b}'
            % (message, finish, counted)
        )

    def calls_tool(self, asked: Asked) -> bool:
        """Returns whether the model must now answer with a tool call, and counts this call."""
        wanted = self.behaviour.tool or bool(self.behaviour.command)
        due = wanted and all(one.role != "tool" for one in asked.messages)
        self.counts.tool_calls += due
        return due


class Stream:
    """One streamed answer. Each token is written separately, at its scheduled time."""

    def __init__(self, scene: Scene, asked: Asked, size: int, writer: "Connection") -> None:
        self._loop = asyncio.get_running_loop()
        self._writer = writer
        self._token, self._opening = scene.token, scene.opening
        self._behaviour = scene.behaviour
        self._left = scene.behaviour.tokens
        wanted = asked.stream_options is not None and asked.stream_options.include_usage
        counted = usage(size, scene.behaviour.tokens) if wanted else b""
        self._end = last_frames(b'"stop"', counted)
        if scene.calls_tool(asked):
            call = encoded_call(scene.counts.calls, self._behaviour)
            self._opening += chunk(frame(b'{"tool_calls":%b}' % call))
            self._end, self._left = last_frames(b'"tool_calls"', counted), 0
        self._next = self._loop.time() + scene.behaviour.ttft
        self._timer = self._later(self._open)

    def _later(self, step: Callable[[], None]) -> asyncio.Handle:
        if self._next <= self._loop.time():
            return self._loop.call_soon(step)
        return self._loop.call_at(self._next, step)

    def _open(self) -> None:
        self._writer.write(self._opening)
        self._step()

    def _step(self) -> None:
        if not self._left:
            self._writer.write(self._end)
            self._writer.answered()
            return
        self._left -= 1
        self._writer.write(self._token)
        self._next += self._behaviour.delay
        self._timer = self._later(self._step)

    def cancel(self) -> None:
        self._timer.cancel()


class Connection(asyncio.Protocol):
    """A client's connection. Requests are answered in order."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self._url = b""
        self._parts: list[bytes] = []
        self._waiting: deque[tuple[bytes, bytes]] = deque()
        self._stream: Stream | None = None
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # The cast is needed because uvloop's transports are not subclasses of asyncio.Transport.
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._waiting.clear()
        if self._stream is not None:
            self._stream.cancel()
        if self._timer is not None:
            self._timer.cancel()
        if self._busy:
            self._scene.counts.open -= 1
            self._stream = self._timer = None

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            if self._transport is not None:
                self._transport.close()

    def on_message_begin(self) -> None:
        self._url, self._parts = b"", []

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_body(self, body: bytes) -> None:
        self._parts.append(body)

    def on_message_complete(self) -> None:
        self._waiting.append((self._url, b"".join(self._parts)))
        if not self._busy:
            self._answer_next()

    @property
    def _busy(self) -> bool:
        return self._stream is not None or self._timer is not None

    def write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def answered(self) -> None:
        self._stream = self._timer = None
        self._scene.counts.open -= 1
        self._answer_next()

    def _answer_next(self) -> None:
        while self._waiting and not self._busy:
            url, body = self._waiting.popleft()
            if url.endswith(b"/chat/completions"):
                self._complete(body)
            else:
                self.write(self._told(url, body))

    def _complete(self, body: bytes) -> None:
        scene = self._scene
        asked = msgspec.json.decode(body, type=Asked)
        counts, scene.last = scene.counts, body
        counts.calls += 1
        counts.open += 1
        counts.most_open = max(counts.most_open, counts.open)
        if asked.stream:
            self._stream = Stream(scene, asked, len(body), self)
            return
        whole, loop = scene.whole(asked, len(body)), asyncio.get_running_loop()
        if scene.behaviour.seconds:
            self._timer = loop.call_later(scene.behaviour.seconds, self._send_whole, whole)
        else:
            self._send_whole(whole)

    def _send_whole(self, whole: bytes) -> None:
        self.write(whole)
        self.answered()

    def _told(self, url: bytes, body: bytes) -> bytes:
        scene = self._scene
        match url:
            case b"/control":
                scene.behave(msgspec.json.decode(body, type=Behaviour))
                return reply(b"{}")
            case b"/counts":
                return reply(msgspec.json.encode(scene.counts))
            case b"/last":
                return reply(scene.last)
            case b"/health":
                return reply(b"{}")
            case b"/v1/models":
                return reply(b'{"object":"list","data":[{"id":"fake-model","object":"model"}]}')
            case _:
                return reply(b'{"error":{"message":"no such path"}}', b"404 Not Found")


async def serve(port: int) -> None:
    scene = Scene()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(scene), "127.0.0.1", port, backlog=4096)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))
