"""Scripts and plans for fake models, the tags in their answers, and a strict parser of requests.

Directives in a user's text plan the answer of the server in `hermes.testing.model`:

- `tool:<name>{json}` calls the tool, and then quotes its result. Several `tool:` directives are
  parallel calls.
- `steps:<n>` repeats the calls in n steps. STEP in the arguments is replaced by the step's number.
- `tokens:<n>` says n words, and `reasoning:<n>` thinks n words before them.
- `delay:<seconds>` waits between two words, and `ttft:<seconds>` waits before the first word.
- `hang` never answers.
- `status:<code>` fails with this status, and `retry-after:<seconds>` adds the header `Retry-After`.
- `fail-first:<n>` makes the first n calls with exactly this text fail with status 500.
- `cut:<n>` cuts the connection after n words.
- `cut-first:<n>` cuts the connection after n words, but only in the first call with this text.
- `finish:<reason>` ends with this finish_reason, such as `length` or `content_filter`.
"""

import json
import re
from base64 import b64decode
from collections.abc import Awaitable, Callable, Iterable, Mapping
from itertools import cycle, islice
from typing import Annotated, Literal

import anyio
import msgspec
from msgspec import Meta, Struct

from hermes.types.errors import HermesError
from hermes.types.events import SegmentEnded, TextDelta
from hermes.types.identity import CallId
from hermes.types.messages import AssistantMessage, CutReason, ToolCall, ToolMessage
from hermes.types.models import ModelRequest
from hermes.types.protocols import Emit

_TAG = re.compile(r"\[([0-9a-f]{4}:\d+)(?:\.(\d+))?\]")
_TOOL = re.compile(r"(?<!\S)tool:([\w-]+)")
_NUMBER = re.compile(
    r"(?<!\S)(steps|tokens|reasoning|delay|ttft|status|retry-after|fail-first|cut-first|cut)"
    r":(\d+(?:\.\d+)?)(?!\S)"
)
_FINISH = re.compile(r"(?<!\S)finish:(\w+)(?!\S)")
_HANG = re.compile(r"(?<!\S)hang(?!\S)")

Answer = Callable[[ModelRequest, Emit], Awaitable[AssistantMessage]]


class ScriptedModel:
    """A model that gives the scripted answers in order, and records its `requests`."""

    def __init__(self, answers: Iterable[Answer]) -> None:
        self._answers = iter(answers)
        self.requests: list[ModelRequest] = []

    async def complete(self, request: ModelRequest, emit: Emit) -> AssistantMessage:
        self.requests.append(request)
        answer = next(self._answers, None)
        assert answer is not None, f"the script ends before call {len(self.requests)}"
        return await answer(request, emit)


def first_results(model: ScriptedModel) -> list[str]:
    """Returns the texts of the tool results in the history that the first request to the model
    contains."""
    return [one.text for one in model.requests[0].messages if isinstance(one, ToolMessage)]


def says(text: str, cut: CutReason = "") -> Answer:
    """Returns an answer with `text`, one event for each word. `cut` is the reason why the answer
    ends early."""

    async def answer(_request: ModelRequest, emit: Emit) -> AssistantMessage:
        for number, word in enumerate(text.split(" ")):
            emit(TextDelta(text=f" {word}" if number else word))
        emit(SegmentEnded())
        return AssistantMessage(text=text, cut=cut)

    return answer


def calls(*wanted: tuple[str, Mapping[str, object]], text: str = "", cut: CutReason = "") -> Answer:
    """Returns an answer that calls tools: `calls(("read_file", {"path": "a"}))`, optionally after
    `text`.

    `cut` is the reason why the answer ends before its calls are complete.
    """

    async def answer(request: ModelRequest, emit: Emit) -> AssistantMessage:
        if text:
            emit(TextDelta(text=text))
        emit(SegmentEnded())
        made = tuple(
            ToolCall(
                id=CallId(f"{request.step}_{index}"),
                name=name,
                arguments=msgspec.json.encode(arguments).decode(),
                cut=bool(cut),
            )
            for index, (name, arguments) in enumerate(wanted)
        )
        return AssistantMessage(text=text, calls=made, cut=cut)

    return answer


def fails(error: HermesError, after: str = "") -> Answer:
    """Returns an answer that says `after` and then raises `error`."""

    async def answer(_request: ModelRequest, emit: Emit) -> AssistantMessage:
        if after:
            emit(TextDelta(text=after))
        raise error

    return answer


def hangs() -> Answer:
    """Returns an answer that never comes. The call ends only when it is cancelled."""

    async def answer(_request: ModelRequest, _emit: Emit) -> AssistantMessage:
        await anyio.sleep_forever()
        raise AssertionError("unreachable")

    return answer


def calls_in(text: str) -> set[str]:
    """Returns the ids of the model calls from which the words of the text come. All words of a
    correct answer come from one call."""
    return {tag[1] for tag in _TAG.finditer(text)}


def mixes_calls(text: str) -> bool:
    return len(calls_in(text)) > 1


def is_complete(text: str) -> bool:
    """Returns whether the text is one complete answer: no word is lost or repeated, and all words
    come from the same call."""
    first, last = _TAG.search(text), next((tag for tag in _TAG.finditer(text) if tag[2]), None)
    if first is None or last is None or mixes_calls(text):
        return False
    return len(text[first.start() : last.end()].split()) == int(last[2]) and not _TAG.search(
        text, last.end()
    )


def tagged(call: str, words: list[str], tokens: int | None) -> list[str]:
    """Returns the words of an answer, with the tag of the call at the start, in the middle and at
    the end."""
    # The answer may quote an earlier answer with its tags. These tags are changed, so that
    # `calls_in` finds only the tag of this call.
    words = _TAG.sub(r"(\1)", " ".join(words)).split()
    said: list[str] = []
    for word in words if tokens is None else islice(cycle(words), tokens):
        if len(said) % 5 == 0:
            said.append(f"[{call}]")
        said.append(word)
    said = said if tokens is None else said[: tokens - 1]
    return [*said, f"[{call}.{len(said) + 1}]"]


class PlannedCall(Struct, frozen=True):
    name: str
    arguments: str = "{}"
    """JSON arguments, or the invalid text that a confused model writes instead."""


class Plan(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The plan for the answer to one request."""

    text: str | None = None
    """The exact text of the answer; None if the answer repeats words of the request. If the plan
    has an error status, this is the text of the error."""
    calls: tuple[PlannedCall, ...] = ()
    steps: int = 1
    tokens: int | None = None
    reasoning: int = 0
    delay: float = 0.0
    ttft: float = 0.0
    hang: bool = False
    status: int = 200
    retry_after: float | None = None
    fail_first: int = 0
    cut: int | None = None
    cut_first: int | None = None
    finish: str = ""
    """The finish_reason of the answer; empty for `stop`, or `tool_calls` if the answer has
    calls."""


def plan_of(text: str, default: Plan) -> Plan:
    """Returns the plan that the directives in a user's text describe. Fields without a directive
    have the values of `default`."""
    calls, rest = _planned_calls(text)
    numbers = {name.replace("-", "_"): value for name, value in _NUMBER.findall(rest)}
    hang, finish = _HANG.search(rest) is not None, _FINISH.search(rest)
    if not (numbers or calls or hang or finish):
        return default
    plan = msgspec.structs.asdict(msgspec.convert(numbers, Plan, strict=False))
    wanted = {name: plan[name] for name in numbers}
    return msgspec.structs.replace(
        default,
        calls=calls or default.calls,
        hang=hang or default.hang,
        finish=finish[1] if finish else default.finish,
        **wanted,
    )


def _planned_calls(text: str) -> tuple[tuple[PlannedCall, ...], str]:
    """Returns the calls that the directives `tool:…` ask for, and the text without these
    directives."""
    calls: list[PlannedCall] = []
    rest, end = "", 0
    while (found := _TOOL.search(text, end)) is not None:
        rest += text[end : found.start()]
        start = end = found.end()
        if text.startswith("{", start):
            try:
                _, end = json.JSONDecoder().raw_decode(text, start)
            except ValueError:
                # A test can make the model write arguments that are not valid JSON. Such arguments
                # end at the next white space.
                end = start + len(text[start:].split(maxsplit=1)[0])
        calls.append(PlannedCall(found[1], text[start:end] or "{}"))
    return tuple(calls), rest + text[end:]


class _ImageUrl(Struct):
    url: Annotated[str, Meta(pattern=r"^data:image/(png|jpeg|gif|webp);base64,")]
    detail: Literal["auto", "low", "high", "original"] | None = None


class _InputAudio(Struct):
    data: str
    format: Literal["wav", "mp3"]


class _File(Struct):
    filename: Annotated[str, Meta(min_length=1)]
    file_data: Annotated[str, Meta(pattern=r"^data:application/pdf;base64,")]


class _Part(Struct):
    type: Literal["text", "image_url", "input_audio", "file"]
    text: str = ""
    image_url: _ImageUrl | None = None
    input_audio: _InputAudio | None = None
    file: _File | None = None

    @property
    def data(self) -> bytes | None:
        """Returns the content of the file in the part, or None for a part without a file. Raises
        ValueError if a file part has no content or its base64 is invalid."""
        match self:
            case _Part(type="text"):
                return None
            case _Part(type="image_url", image_url=_ImageUrl(url=url)):
                return b64decode(url.partition(",")[2], validate=True)
            case _Part(type="input_audio", input_audio=_InputAudio(data=text)):
                return b64decode(text, validate=True)
            case _Part(type="file", file=_File(file_data=url)):
                return b64decode(url.partition(",")[2], validate=True)
        raise ValueError(f"a part of type {self.type!r} has no content")


_Name = Annotated[str, Meta(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]


class _Function(Struct):
    name: _Name
    arguments: str


class _Call(Struct):
    id: Annotated[str, Meta(min_length=1)]
    function: _Function
    type: Literal["function"]


class ChatMessage(Struct):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[_Part] | None = None
    tool_calls: Annotated[list[_Call], Meta(min_length=1)] | None = None
    tool_call_id: str | None = None

    @property
    def text(self) -> str:
        if isinstance(self.content, list):
            return " ".join(part.text for part in self.content)
        return self.content or ""

    @property
    def files(self) -> list[bytes]:
        """The images and other files in the content."""
        parts = self.content if isinstance(self.content, list) else []
        return [data for part in parts if (data := part.data) is not None]


class _Declared(Struct):
    name: _Name
    parameters: dict[str, msgspec.Raw]
    description: str = ""


class _Tool(Struct):
    type: Literal["function"]
    function: _Declared


class _StreamOptions(Struct):
    include_usage: bool = False


class _ChosenName(Struct):
    name: _Name


class _ChosenFunction(Struct):
    type: Literal["function"]
    function: _ChosenName


class _JsonSchema(Struct, forbid_unknown_fields=True):
    name: _Name
    schema: dict[str, object]
    description: str | None = None
    strict: bool | None = None


class _ResponseFormat(Struct, forbid_unknown_fields=True):
    type: Literal["text", "json_object", "json_schema"]
    json_schema: _JsonSchema | None = None


class ChatRequest(Struct):
    """A request that real servers accept. Decoding refuses all other requests."""

    model: Annotated[str, Meta(min_length=1)]
    messages: Annotated[list[ChatMessage], Meta(min_length=1)]
    tools: Annotated[list[_Tool], Meta(min_length=1)] | None = None
    stream: bool = False
    stream_options: _StreamOptions | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    tool_choice: Literal["none", "auto", "required"] | _ChosenFunction | None = None
    parallel_tool_calls: bool | None = None
    response_format: _ResponseFormat | None = None

    @property
    def schema(self) -> Mapping[str, object] | None:
        """The JSON schema that the answer must conform to, from `response_format` or from a system
        message; None if there is no schema."""
        if self.response_format and self.response_format.json_schema:
            return self.response_format.json_schema.schema
        told = "\n".join(m.text for m in self.messages if m.role in ("system", "developer"))
        _, found, text = told.partition("JSON schema:\n")
        decoder = json.JSONDecoder()
        return decoder.raw_decode(text)[0] if found else None

    @property
    def wants_json(self) -> bool:
        kind = self.response_format.type if self.response_format else "text"
        return kind == "json_object"

    @property
    def said(self) -> str:
        """The text of the last user message."""
        return next((m.text for m in reversed(self.messages) if m.role == "user"), "")

    @property
    def wants_usage(self) -> bool:
        return self.stream_options is not None and self.stream_options.include_usage

    @property
    def steps(self) -> list[ChatMessage]:
        """The messages of the assistant and its tools since the last user message."""
        users = [at for at, message in enumerate(self.messages) if message.role == "user"]
        return [m for m in self.messages[users[-1] :] if m.role in ("assistant", "tool")]

    @property
    def step(self) -> int:
        """Number of answers of the assistant since the last user message."""
        return sum(message.role == "assistant" for message in self.steps)

    @property
    def results(self) -> list[str]:
        """The tool results since the last user message, in the order of their calls."""
        said = {m.tool_call_id: m.text for m in self.steps if m.role == "tool"}
        return [said[call.id] for m in self.steps for call in m.tool_calls or ()]

    @property
    def declared(self) -> set[str]:
        """The names of the tools that the model may call."""
        return {tool.function.name for tool in self.tools or ()}

    @property
    def images(self) -> list[str]:
        """The URLs of all images, oldest first."""
        parts = [part for m in self.messages if isinstance(m.content, list) for part in m.content]
        return [part.image_url.url for part in parts if part.image_url is not None]


def refusal(request: ChatRequest) -> str | None:
    """Returns the reason why a real server would refuse the conversation; None if the server would
    accept the conversation."""
    talk = [m for m in request.messages if m.role not in ("system", "developer")]
    if not talk or talk[0].role != "user":
        return "the conversation must start with a user message"
    if talk[-1].role == "assistant" and not talk[-1].tool_calls:
        return "the last message must not be from the assistant"
    told = " ".join(message.text for message in request.messages).casefold()
    if request.wants_json and "json" not in told:
        return "'messages' must contain the word 'json' to use the response format json_object"
    for message in talk:
        if message.content is None and not message.tool_calls:
            return f"a message of the {message.role} has no content"
        if (reason := _wrong_files(message)) is not None:
            return reason
        if not all(_is_json(call.function.arguments) for call in message.tool_calls or ()):
            return "the arguments of a tool call are not JSON"
    return _unpaired(request.messages)


def _wrong_files(message: ChatMessage) -> str | None:
    try:
        files = message.files
    except ValueError as error:
        return str(error)
    if files and message.role != "user":
        return f"a message of the {message.role} has a file"
    return None if all(files) else "a file is empty"


def _unpaired(messages: list[ChatMessage]) -> str | None:
    seen: set[str] = set()
    waiting: set[str] = set()
    for message in messages:
        if message.role == "tool":
            if message.tool_call_id not in waiting:
                return "a tool message answers no open tool call"
            waiting.remove(message.tool_call_id)
            continue
        if waiting:
            break
        for call in message.tool_calls or ():
            if call.id in seen:
                return "a tool call id is used twice"
            seen.add(call.id)
            waiting.add(call.id)
    return "a tool call has no answer directly after it" if waiting else None


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except msgspec.DecodeError:
        return False
    return True
