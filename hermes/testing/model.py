"""A fake model server that speaks OpenAI's chat completions strictly and follows a script."""

import asyncio
import re
import secrets
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, cast

import anyio
import anyio.lowlevel
import click
import httptools
import msgspec
from msgspec import Struct

from hermes.testing.examples import example_of
from hermes.testing.scripted import ChatRequest, Plan, PlannedCall, plan_of, refusal, tagged

KEPT_BODIES = 64
LONGEST_ECHO = 200
"""Maximum number of words that an answer repeats from a user's message or from a tool result."""

_STREAM = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)
_Fields = dict[str, object]
_json = msgspec.json.Encoder().encode


class Stats(Struct):
    """The statistics since the start of the server. `GET /_stats` returns them."""

    tag: str
    calls: int = 0
    answered: int = 0
    failed: int = 0
    cut: int = 0
    gone: int = 0
    """Number of answers during which the client disconnected."""
    open: int = 0
    most_open: int = 0
    refused: dict[str, int] = {}
    """Maps each reason for a refusal to the number of requests that were refused for this reason.
    Most tests expect an empty mapping."""


class Control(Struct, forbid_unknown_fields=True):
    """The body of `POST /_ctl`, which changes the behaviour of the server. Fields that are left out
    stay unchanged."""

    default: Plan | None = None
    script: list[Plan] | None = None
    key: str | None = None


class Reply(Struct):
    frames: list[bytes]
    ttft: float = 0.0
    delay: float = 0.0
    hang: bool = False
    cut: bool = False
    closes: bool = False
    speech: bool = False
    """Whether the statistics count the reply as an answer of the model."""


class FakeModel:
    """The fake server. `async with FakeModel() as model` runs it; clients connect to
    `model.base_url`.

    The plans in `script` answer the first requests, whatever these requests contain. The plans in
    `turn` answer every later turn, one plan for each step.
    """

    def __init__(
        self,
        default: Plan | None = None,
        script: Sequence[Plan] = (),
        *,
        turn: Sequence[Plan] = (),
        key: str | None = None,
        port: int = 0,
    ) -> None:
        self.default = default or Plan()
        self.script = deque(script)
        self.turn = turn
        self.key = key
        self.listen: Callable[[bytes], None] = lambda data: None
        """A function that is called with all incoming bytes, including headers."""
        self.stats = Stats(tag=secrets.token_hex(2))
        self.connections: set[Connection] = set()
        self._bodies: deque[bytes] = deque(maxlen=KEPT_BODIES)
        self._port = port
        self._heard: Counter[str] = Counter()
        self._decoder = msgspec.json.Decoder(ChatRequest)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._port}/v1"

    @property
    def requests(self) -> list[ChatRequest]:
        """The latest requests that were not refused, oldest first."""
        return [self._decoder.decode(body) for body in self._bodies]

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: Connection(self), "127.0.0.1", self._port, backlog=4096
        )
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._server.close()
        for connection in tuple(self.connections):
            connection.abort()
        # The aborted connections are closed in the next iteration of the event loop, so this method
        # waits for one iteration.
        await anyio.lowlevel.checkpoint()

    def reply(self, method: bytes, path: bytes, key: str, body: bytes) -> Reply:
        match method, path:
            case b"POST", b"/v1/chat/completions":
                return self._authorized(key) or self._chat(body)
            case b"GET", b"/v1/models":
                listed = b'{"object":"list","data":[{"id":"fake","object":"model"}]}'
                return self._authorized(key) or _whole(200, listed)
            case b"POST", b"/_ctl":
                return self._control(body)
            case b"GET", b"/_stats":
                return _whole(200, _json(self.stats))
            case b"GET", b"/_last":
                return _whole(200, self._bodies[-1] if self._bodies else b"null")
            case b"GET", b"/_requests":
                return _whole(200, b"[%b]" % b",".join(self._bodies))
        return _problem(404, f"no such path: {path!r}")

    def _authorized(self, key: str) -> Reply | None:
        if self.key is None or key == f"Bearer {self.key}":
            return None
        self._refuse("the key is wrong")
        return _problem(401, f"Incorrect API key provided: {key[-4:]}")

    def _refuse(self, reason: str) -> None:
        self.stats.refused[reason] = self.stats.refused.get(reason, 0) + 1

    def _control(self, body: bytes) -> Reply:
        try:
            wanted = msgspec.json.decode(body, type=Control)
        except msgspec.DecodeError as error:
            return _problem(400, str(error))
        self.default = wanted.default or self.default
        self.script = self.script if wanted.script is None else deque(wanted.script)
        self.key = self.key if wanted.key is None else wanted.key or None
        return _whole(200, b"{}")

    def _chat(self, body: bytes) -> Reply:
        self.stats.calls += 1
        try:
            request = self._decoder.decode(body)
            reason = self.refusal_of(request)
        except msgspec.DecodeError as error:
            reason = str(error)
        if reason is not None:
            self._refuse(reason)
            return _problem(400, reason)
        self._bodies.append(body)
        return self._planned(self.plan_for(request), request, len(body))

    def refusal_of(self, request: ChatRequest) -> str | None:
        """Returns the reason why the request is refused, or None if it is answered."""
        return refusal(request)

    def plan_for(self, request: ChatRequest) -> Plan:
        """Returns the plan for the answer to the request."""
        if self.script:
            return self.script.popleft()
        done = request.step
        if self.turn:
            return self.turn[done]
        plan = plan_of(request.said, self.default)
        calls = () if done >= plan.steps else tuple(_at_step(call, done) for call in plan.calls)
        return msgspec.structs.replace(plan, calls=calls)

    def _planned(self, plan: Plan, request: ChatRequest, size: int) -> Reply:
        if plan.fail_first or plan.cut_first is not None:
            self._heard[request.said] += 1
            times = self._heard[request.said]
            if times <= plan.fail_first:
                plan = msgspec.structs.replace(plan, status=500)
            if times == 1 and plan.cut_first is not None:
                plan = msgspec.structs.replace(plan, cut=plan.cut_first)
        if plan.status != 200:
            self.stats.failed += 1
            wait = b"" if plan.retry_after is None else b"retry-after: %g\r\n" % plan.retry_after
            return _problem(plan.status, plan.text or "the model was told to fail", wait)
        return _spoken(plan, request, self.stats, size)


def _at_step(call: PlannedCall, step: int) -> PlannedCall:
    return msgspec.structs.replace(call, arguments=call.arguments.replace("STEP", str(step)))


def _spoken(plan: Plan, request: ChatRequest, stats: Stats, size: int) -> Reply:
    call = f"{stats.tag}:{stats.calls}"
    words = [] if plan.calls and plan.text is None else _words(plan, request, call)
    head: _Fields = {"id": f"chatcmpl-{call}", "created": int(time.time()), "model": request.model}
    usage = {"prompt_tokens": size // 4, "completion_tokens": len(words) + 9 * len(plan.calls)}
    usage["total_tokens"] = sum(usage.values())
    made = [
        {
            "index": index,
            "id": f"call_{stats.calls}_{index}",
            "type": "function",
            "function": planned,
        }
        for index, planned in enumerate(plan.calls)
    ]
    why = plan.finish or ("tool_calls" if made else "stop")
    if request.stream:
        frames = _stream(head, plan.reasoning, words, made)
        frames.append(_end(head, why, usage if request.wants_usage else None))
    else:
        message: _Fields = {"role": "assistant", "content": "".join(words) or None}
        message |= {"tool_calls": made} if made else {}
        choice = {"index": 0, "message": message, "finish_reason": why}
        whole = {**head, "object": "chat.completion", "choices": [choice], "usage": usage}
        (frame,) = _whole(200, _json(whole)).frames
        frames = [frame] if plan.cut is None else [frame[:-20], b""]
    ttft = plan.ttft if request.stream else plan.ttft + plan.delay * len(words)
    reply = Reply(frames, ttft=ttft, delay=plan.delay, hang=plan.hang, speech=True)
    if plan.cut is not None:
        reply.frames = frames[: min(plan.cut + 1, len(frames) - 1)]
        reply.cut = reply.closes = True
    return reply


def _words(plan: Plan, request: ChatRequest, call: str) -> list[str]:
    if plan.text is None and (request.schema or request.wants_json):
        schema = request.schema or {"properties": {"said": {"const": request.said}}}
        return [_json(example_of(schema)).decode()]
    if plan.text is not None:
        return re.findall(r"\s*\S+\s*$|\s*\S+", plan.text)
    echo = ["call", f"{call.partition(':')[2]}:", "you", "said:"]
    echo += request.said.split()[:LONGEST_ECHO]
    for message in request.steps:
        if message.role == "tool":
            echo += ["tool", "said:", *message.text.split()[:LONGEST_ECHO]]
    first, *rest = tagged(call, echo, plan.tokens)
    return [first, *(f" {word}" for word in rest)]


def _stream(
    head: _Fields, reasoning: int, words: list[str], made: list[dict[str, object]]
) -> list[bytes]:
    """Returns the frames of the response, one for each word. The arguments of a tool call are split
    into two frames. The first frame also contains the HTTP head."""
    start = b'%b,"object":"chat.completion.chunk","choices":[{"index":0,"delta":' % _json(head)[:-1]
    deltas: list[object] = [{"reasoning_content": "hm "} for _ in range(reasoning)]
    deltas += [{"content": word} for word in words]
    for call in made:
        name, arguments = msgspec.structs.astuple(cast(PlannedCall, call["function"]))
        half = len(arguments) // 2
        deltas.append({"tool_calls": [{**call, "function": {"name": name, "arguments": ""}}]})
        for piece in (arguments[:half], arguments[half:]):
            deltas.append(
                {"tool_calls": [{"index": call["index"], "function": {"arguments": piece}}]}
            )
    frames = [
        _frame(b'data: %b%b,"finish_reason":null}]}\n\n' % (start, _json(delta)))
        for delta in [{"role": "assistant", "content": ""}, *deltas]
    ]
    frames[0] = _STREAM + frames[0]
    return frames


def _end(head: _Fields, why: str, usage: dict[str, int] | None) -> bytes:
    chunk = {**head, "object": "chat.completion.chunk"}
    choice = {"index": 0, "delta": {}, "finish_reason": why}
    said = [_json({**chunk, "choices": [choice]}), b"[DONE]"]
    if usage is not None:
        said.insert(1, _json({**chunk, "choices": [], "usage": usage}))
    return _frame(b"".join(b"data: %b\n\n" % payload for payload in said)) + b"0\r\n\r\n"


def _frame(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def _whole(status: int, body: bytes, headers: bytes = b"") -> Reply:
    head = b"HTTP/1.1 %d -\r\ncontent-type: application/json\r\n%b" % (status, headers)
    return Reply([b"%bcontent-length: %d\r\n\r\n%b" % (head, len(body), body)])


def _problem(status: int, message: str, headers: bytes = b"") -> Reply:
    kind = "invalid_request_error" if status < 500 else "server_error"
    error = {"message": message, "type": kind, "param": None, "code": None}
    return _whole(status, _json({"error": error}), headers)


class Connection(asyncio.Protocol):
    """The connection of one client: parses its requests and paces the replies."""

    def __init__(self, model: FakeModel) -> None:
        self._model = model
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._timer: asyncio.TimerHandle | None = None
        self._reply: Reply | None = None
        self._path, self._key, self._body, self._complete = b"", "", b"", False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # The transports of a server can write, but typeshed does not say so.
        self._transport = cast(asyncio.Transport, transport)
        self._model.connections.add(self)

    def connection_lost(self, _error: Exception | None) -> None:
        self._model.connections.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        if self._reply is not None and self._reply.speech:
            self._model.stats.open -= 1
            self._model.stats.gone += 1

    def abort(self) -> None:
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._model.listen(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self._transport.close()
        if self._complete:
            self._begin()

    def on_url(self, url: bytes) -> None:
        self._path += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"authorization":
            self._key = value.decode("latin-1")

    def on_body(self, data: bytes) -> None:
        self._body += data

    def on_message_complete(self) -> None:
        self._complete = True

    def _begin(self) -> None:
        method = self._parser.get_method()
        reply = self._model.reply(method, self._path, self._key, self._body)
        reply.closes |= not self._parser.should_keep_alive()
        self._path, self._key, self._body, self._complete = b"", "", b"", False
        self._reply, self._frames = reply, deque(reply.frames)
        if reply.speech:
            stats = self._model.stats
            stats.open += 1
            stats.most_open = max(stats.open, stats.most_open)
        if not reply.hang:
            self._later(reply.ttft)

    def _later(self, seconds: float) -> None:
        if seconds:
            self._timer = self._loop.call_later(seconds, self._speak)
        else:
            self._speak()

    def _speak(self) -> None:
        assert self._reply is not None
        while self._frames:
            self._transport.write(self._frames.popleft())
            # There is no pause after the last frame: the client has the whole answer and may
            # already send its next request.
            if self._frames and self._reply.delay:
                self._later(self._reply.delay)
                return
        self._end()

    def _end(self) -> None:
        assert self._reply is not None
        reply, self._reply = self._reply, None
        if reply.speech:
            self._model.stats.open -= 1
            self._model.stats.cut += reply.cut
            self._model.stats.answered += not reply.cut
        if reply.closes:
            self._transport.close()


async def serve(model: FakeModel) -> None:
    """Prints the address, and serves until cancelled."""
    async with model:
        click.echo(f"listening on {model.base_url}")
        await anyio.sleep_forever()


@click.command(help=__doc__)
@click.option("--port", default=0, help="0 takes a free one")
@click.option("--tokens", type=int, help="words of every answer")
@click.option("--delay", default=0.0, help="seconds between words")
@click.option("--ttft", default=0.0, help="seconds before the first word")
@click.option("--script", type=click.Path(path_type=Path), help="a JSON list of plans")
def main(port: int, tokens: int | None, delay: float, ttft: float, script: Path | None) -> None:
    plans = msgspec.json.decode(script.read_bytes(), type=list[Plan]) if script else []
    default = Plan(tokens=tokens, delay=delay, ttft=ttft)
    model = FakeModel(default, plans, port=port)
    anyio.run(serve, model, backend_options={"use_uvloop": sys.platform != "win32"})


if __name__ == "__main__":
    main()
