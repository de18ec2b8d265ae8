"""Speaks to every server of OpenAI's chat completions, streaming."""

import time
from collections.abc import AsyncIterator, Mapping
from functools import lru_cache

import aiohttp
import anyio
import msgspec
from msgspec import Raw, Struct
from yarl import URL

from hermes.core.models.prefixes import Prefixes
from hermes.core.models.retry import retry_after
from hermes.core.tools.schema import tools_json
from hermes.types.errors import AuthFailed, Disconnected, HermesError, RateLimited, Rejected
from hermes.types.events import ReasoningDelta, SegmentEnded, TextDelta, UsageReported
from hermes.types.identity import CallId
from hermes.types.messages import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from hermes.types.profile import ModelChoice
from hermes.types.protocols import Emit, ModelRequest

GATHER = 0.1
"""Seconds between two looks at an answer that nobody reads along."""
LINGER = 2.0
"""Seconds given to a finished answer for its usage and for closing."""
LONGEST_LINE, LONGEST_QUOTE = 4 << 20, 300


class OpenAIChat:
    """Asks `{base_url}/chat/completions`. `silence` is the longest wait for a byte, in seconds."""

    def __init__(self, session: aiohttp.ClientSession, *, silence: float = 300.0) -> None:
        self._session = session
        self._prefixes = Prefixes(_wire)
        # No total: the caller knows the turn's deadline.
        self._timeout = aiohttp.ClientTimeout(total=None, sock_connect=10.0, sock_read=silence)

    async def complete(self, request: ModelRequest, emit: Emit) -> AssistantMessage:
        choice = request.choice
        answer = Answer(choice, emit)
        try:
            async with self._session.post(
                _url(choice.base_url),
                data=encode(request, self._prefixes),
                headers=_headers(choice.api_key),
                timeout=self._timeout,
                # A redirect would carry the key to another host.
                allow_redirects=False,
            ) as response:
                await _read(response, answer, live=request.live)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            # Once the model has finished, how the connection ends does not matter.
            if not answer.finished:
                raise _unreachable(choice, error) from error
        return answer.message(request.step)


async def _read(response: aiohttp.ClientResponse, answer: "Answer", *, live: bool) -> None:
    if response.status != 200:
        raise _refusal(answer.choice, response, await response.read())
    match response.content_type:
        case "application/json":
            answer.take(await response.read())
            return
        case "text/html":
            raise Rejected(f"{answer.choice.provider} answered with a web page: check its base_url")
    content = response.content
    async for data in content.iter_any() if live else _gathered(content):
        answer.feed(data)
        if answer.finished:
            break
    else:
        # Some servers forget the last newline.
        answer.feed(b"\n")
    # Reading to the end lets the connection be used again; not every server ends at once.
    with anyio.move_on_after(LINGER):
        async for data in content.iter_any():
            answer.feed(data)


async def _gathered(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """What has come, a few times a second: to wake for each word costs more than to read it."""
    while not content.at_eof():
        with anyio.move_on_after(GATHER):
            await content.wait_eof()
        if data := content.read_nowait():
            yield data


class _Function(Struct):
    name: str
    arguments: str


class _Call(Struct):
    id: str
    function: _Function
    type: str = "function"


class _Assistant(Struct, tag_field="role", tag="assistant"):
    content: str | None
    tool_calls: list[_Call]


class _Result(Struct, tag_field="role", tag="tool"):
    tool_call_id: str
    content: str


_HEAD = b'{"stream":true,"stream_options":{"include_usage":true},"model":'
_encoder = msgspec.json.Encoder()
_json_object = msgspec.json.Decoder(dict[str, Raw])


def encode(request: ModelRequest, prefixes: Prefixes | None = None) -> bytes:
    """The body of the request."""
    prefixes = prefixes or Prefixes(_wire)
    said = [_said("system", request.system)] if request.system else []
    said.append(prefixes.joined(request.conversation, request.messages))
    parts = [_HEAD, _encoder.encode(request.choice.model), b',"messages":[', b",".join(said), b"]"]
    if request.tools:
        parts += b',"tools":', tools_json(tuple(request.tools))
    # Only what was set is in it.
    sampling = _encoder.encode(request.sampling)
    if sampling != b"{}":
        # OpenAI's own reasoning models refuse the old name, most other servers don't know the new.
        if "//api.openai.com" in request.choice.base_url:
            sampling = sampling.replace(b'"max_tokens":', b'"max_completion_tokens":')
        parts += b",", sampling[1:-1]
    parts.append(b"}")
    return b"".join(parts)


def _said(role: str, text: str) -> bytes:
    # By hand: a long conversation is encoded anew for every call.
    return b'{"role":"%b","content":%b}' % (role.encode(), _encoder.encode(text))


def _wire(message: Message) -> bytes:
    match message:
        case UserMessage(text=text, sender=sender):
            return _said("user", f"[{sender}] {text}" if sender else text)
        case AssistantMessage(text=text, calls=calls):
            if not calls:
                return _said("assistant", text)
            made = [_Call(call.id, _Function(call.name, _sent(call))) for call in calls]
            return _encoder.encode(_Assistant(text or None, made))
        case ToolMessage(call=call, text=text):
            return _encoder.encode(_Result(call, text))


def _sent(call: ToolCall) -> str:
    # Servers refuse a history with broken JSON in it, though it was a model that wrote it.
    try:
        _json_object.decode(call.arguments)
    except msgspec.DecodeError:
        return _encoder.encode({"invalid_json": call.arguments}).decode()
    return call.arguments


@lru_cache(maxsize=64)
def _url(base_url: str) -> URL:
    return URL(f"{base_url.rstrip('/')}/chat/completions")


@lru_cache(maxsize=64)
def _headers(key: str) -> Mapping[str, str]:
    headers = {
        "Content-Type": "application/json",
        "Accept": "text/event-stream",
        # Compressing holds back the first words.
        "Accept-Encoding": "identity",
    }
    return {**headers, "Authorization": f"Bearer {key}"} if key else headers


class _FunctionPiece(Struct, frozen=True):
    name: str | None = None
    arguments: str | dict[str, Raw] | None = None


class _CallPiece(Struct):
    index: int | None = None
    id: str | None = None
    function: _FunctionPiece = _FunctionPiece()


class _Delta(Struct):
    content: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[_CallPiece] | None = None


class _Choice(Struct):
    delta: _Delta | None = None
    message: _Delta | None = None
    """The whole answer, of a server that does not stream."""
    finish_reason: str | None = None


class _Usage(Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Problem(Struct):
    message: str | None = None
    code: str | int | None = None
    type: str | None = None


class _Chunk(Struct):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: _Problem | str | None = None
    message: str | None = None
    """What is wrong, of servers that have no `error`; so is `detail`."""
    detail: object = None


_Kind = type[TextDelta] | type[ReasoningDelta]
_EMPTY = (b"", b"[DONE]")
_chunks = msgspec.json.Decoder(_Chunk)
_refusals = msgspec.json.Decoder(_Chunk | list[_Chunk])


class Answer:
    """An answer as it arrives: tells what is new, and keeps the whole."""

    def __init__(self, choice: ModelChoice, emit: Emit) -> None:
        self.choice = choice
        self.finished = False
        """The model said that it had finished; without it the answer was cut."""
        self._emit = emit
        self._rest = b""
        self._heard: dict[_Kind, list[str]] = {TextDelta: [], ReasoningDelta: []}
        self._calls: list[_PartialCall] = []
        self._usage: _Usage | None = None
        self._fresh: list[str] = []
        self._kind: _Kind = TextDelta

    def feed(self, data: bytes) -> None:
        """Takes bytes of the stream, cut anywhere; what they say is told at once, as one."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if line.startswith(b"data:") and (payload := line[5:].strip()) not in _EMPTY:
                self.take(payload)
        self._flush()
        if len(self._rest) > LONGEST_LINE:
            raise Rejected(f"{self.choice.provider} sent a line without end: check its base_url")

    def take(self, payload: bytes) -> None:
        """Takes one chunk, or a whole answer that was not streamed."""
        try:
            chunk = _chunks.decode(payload)
        except msgspec.DecodeError as error:
            raise Disconnected(
                f"{self.choice.provider} sent something else than a chat completion: {error}"
            ) from error
        if chunk.error is not None and not self.finished:
            raise _error(self.choice, _status(chunk.error), _sentence(chunk.error))
        if chunk.usage is not None:
            self._usage = chunk.usage
        for choice in chunk.choices or ():
            whole = choice.message if choice.delta is None else None
            if (delta := choice.delta or whole) is not None:
                self._hear(delta)
            # OpenRouter ends an answer that failed behind it with `error`.
            if whole is not None or choice.finish_reason not in (None, "", "error"):
                self.finished = True

    def message(self, step: str) -> AssistantMessage:
        """The whole answer, once the stream has ended; raises when it was cut."""
        if not self.finished:
            raise Disconnected(f"{self.choice.provider} broke off in the middle of its answer")
        self._flush()
        if (usage := self._usage) is not None:
            asked, said = usage.prompt_tokens or 0, usage.completion_tokens or 0
            self._emit(UsageReported(prompt_tokens=asked, completion_tokens=said))
        self._emit(SegmentEnded())
        named = (call for call in self._calls if call.name)
        return AssistantMessage(
            text="".join(self._heard[TextDelta]),
            reasoning="".join(self._heard[ReasoningDelta]),
            calls=tuple(call.whole(f"{step}_{index}") for index, call in enumerate(named)),
        )

    def _hear(self, delta: _Delta) -> None:
        if thought := delta.reasoning_content or delta.reasoning:
            self._collect(ReasoningDelta, thought)
        if text := delta.content or delta.refusal:
            self._collect(TextDelta, text)
        for piece in delta.tool_calls or ():
            self._call(piece).add(piece)

    def _collect(self, kind: _Kind, text: str) -> None:
        if kind is not self._kind:
            self._flush()
            self._kind = kind
        self._fresh.append(text)

    def _flush(self) -> None:
        if self._fresh:
            text = "".join(self._fresh)
            self._fresh.clear()
            self._heard[self._kind].append(text)
            self._emit(self._kind(text=text))

    def _call(self, piece: _CallPiece) -> "_PartialCall":
        """The call that the piece goes on with, or a new one."""
        for call in reversed(self._calls):
            if call.continues(piece):
                return call
        self._calls.append(_PartialCall(piece.index, piece.id))
        return self._calls[-1]


class _PartialCall(Struct):
    index: int | None
    provider_id: str | None
    name: str = ""
    arguments: list[str] = []

    def continues(self, piece: _CallPiece) -> bool:
        named = bool(piece.function.name)
        if piece.index is None:
            return piece.id == self.provider_id if piece.id else not named
        if piece.index != self.index:
            return False
        # Gemini numbers every call 0; old vLLM made a new id for every piece.
        return not (named and piece.id and self.provider_id and piece.id != self.provider_id)

    def add(self, piece: _CallPiece) -> None:
        self.name = self.name or piece.function.name or ""
        match piece.function.arguments:
            case str(text):
                self.arguments.append(text)
            case dict(fields):
                self.arguments.append(_encoder.encode(fields).decode())

    def whole(self, call: str) -> ToolCall:
        arguments = "".join(self.arguments) or "{}"
        return ToolCall(id=CallId(call), name=self.name, arguments=arguments)


def _error(
    choice: ModelChoice, status: int, said: str, retry_after: float | None = None
) -> HermesError:
    who = choice.provider
    if choice.api_key:
        said = said.replace(choice.api_key, "…")
    quote = f": {said[:LONGEST_QUOTE]}" if said else ""
    match status:
        case 401:
            # Not quoted: providers repeat parts of the key.
            return AuthFailed(f"{who} refused the API key (401): set a valid key for {who!r}")
        case 403:
            return AuthFailed(
                f"{who} does not allow this with our API key (403){quote}; "
                f"set a key for {who!r} that may use {choice.model!r}"
            )
        case 429:
            return RateLimited(f"{who} asks for a pause (429){quote}", retry_after)
        case 408 | 409 | 425:
            return Disconnected(f"{who} could not answer now ({status}){quote}")
        case _ if status >= 500:
            return Disconnected(f"{who} has a problem of its own ({status}){quote}")
        case _:
            return Rejected(f"{who} refused the request ({status}){quote or ': check base_url'}")


def _refusal(choice: ModelChoice, response: aiohttp.ClientResponse, body: bytes) -> HermesError:
    try:
        decoded = _refusals.decode(body)
    except msgspec.DecodeError:
        decoded = []
    first = next(iter(decoded), _Chunk()) if isinstance(decoded, list) else decoded
    problem = first.error or first.message or first.detail
    # OpenAI says 429 also for an account without money, which no pause will fill.
    spent = isinstance(problem, _Problem) and problem.code == "insufficient_quota"
    status = 402 if spent else response.status
    return _error(choice, status, _sentence(problem), retry_after(response.headers, time.time()))


def _unreachable(choice: ModelChoice, error: Exception) -> Disconnected:
    if isinstance(error, TimeoutError):
        return Disconnected(f"{choice.provider} did not answer in time; try again")
    return Disconnected(f"{choice.provider} is out of reach at {choice.base_url!r}: {error}")


def _sentence(problem: object) -> str:
    text = problem.message if isinstance(problem, _Problem) else problem
    return " ".join(str(text or "").split())


def _status(problem: _Problem | str) -> int:
    """What an error inside a stream would have been as a status."""
    if isinstance(problem, str):
        return 500
    code = str(problem.code)
    if code.isdigit():
        return int(code)
    words = f"{code} {problem.type}".lower()
    known = {"rate_limit": 429, "quota": 429, "invalid": 400, "context_length": 400, "auth": 401}
    return next((status for word, status in known.items() if word in words), 500)
