"""Speaks to every server of Anthropic's messages, streaming, and marks what it should cache."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial

import aiohttp
import msgspec
from msgspec import Raw, Struct
from yarl import URL

from hermes.core.models.message_events import MessageEvents
from hermes.core.models.prefixes import Prefixes, joined
from hermes.core.models.request_fields import arguments_of, longest_of, name_of, speech_of
from hermes.core.models.stream import HEADERS, Post, Upstream
from hermes.core.models.thoughts import echoed, woven
from hermes.core.tools.schema import tools_json
from hermes.types.messages import AssistantMessage, Message, ToolMessage, UserMessage
from hermes.types.profile import ModelChoice
from hermes.types.protocols import Emit, ModelRequest

VERSION = "2023-06-01"
LONGEST = 8192
"""Tokens of an answer where nobody says how many: the protocol wants a number."""
EFFORTS = {
    "minimal": 1024,
    "low": 2048,
    "medium": 8192,
    "high": 16384,
    "xhigh": 32768,
    "max": 65536,
}
"""Tokens of thought for a reasoning effort, where a model takes a number."""
SILENT = "(no text)"
"""Said in place of nothing, which the protocol refuses."""

_MARK = b',"cache_control":{"type":"ephemeral"}'
# They choose by effort how much they think, and refuse a number, a temperature and a top_p.
_ADAPTIVE = re.compile(r"claude-[a-z]+-(4[-.][7-9]|[5-9]|\d\d)")


class AnthropicMessages:
    """Asks `{base_url}/v1/messages`. `silence` is the longest wait for a byte, in seconds."""

    def __init__(self, session: aiohttp.ClientSession, *, silence: float = 300.0) -> None:
        self._upstream = Upstream(session, silence)
        self._prefixes = Prefixes()

    async def complete(self, request: ModelRequest, emit: Emit) -> AssistantMessage:
        choice, body = request.choice, encode(request, self._prefixes)
        post = Post(_url(choice.base_url), _headers(choice.api_key), body)
        return await self._upstream.complete(request, post, MessageEvents, emit)


class _Text(Struct, tag_field="type", tag="text"):
    text: str


class _Use(Struct, tag_field="type", tag="tool_use"):
    id: str
    name: str
    input: Raw


class _Result(Struct, tag_field="type", tag="tool_result", omit_defaults=True):
    tool_use_id: str
    content: str = ""
    is_error: bool = False


class _Options(Struct, omit_defaults=True):
    max_tokens: int
    temperature: float | None = None
    top_p: float | None = None
    stop_sequences: tuple[str, ...] = ()
    thinking: dict[str, str | int] = {}
    output_config: dict[str, str] = {}


_encoder = msgspec.json.Encoder()


def encode(request: ModelRequest, prefixes: Prefixes | None = None) -> bytes:
    """The body of the request.

    Besides the marks of what to cache, that of a longer conversation begins like that of a shorter
    one.
    """
    parts = [b'{"stream":true,"model":', _encoder.encode(request.choice.model)]
    parts += b",", _encoder.encode(_options(request))[1:-1]
    if request.tools:
        parts += b',"tools":', tools_json(tuple(request.tools), "anthropic")[:-2], _MARK, b"}]"
    if request.system or request.ephemeral:
        parts += b',"system":[', _system(request), b"]"
    parts += b',"messages":[', _messages(request, prefixes or Prefixes()), b"]}]}"
    return b"".join(parts)


def _system(request: ModelRequest) -> bytes:
    blocks = []
    if request.system:
        blocks.append(_marked(_encoder.encode(_Text(request.system))))
    if request.ephemeral:
        blocks.append(_encoder.encode(_Text(request.ephemeral)))
    return b",".join(blocks)


def _options(request: ModelRequest) -> _Options:
    sampling = request.sampling
    options = _Options(
        longest_of(request) or LONGEST,
        stop_sequences=tuple(stop for stop in sampling.stop if stop.strip()),
    )
    effort = sampling.reasoning_effort or ""
    if _ADAPTIVE.search(request.choice.model):
        if effort in EFFORTS:
            options.thinking = {"type": "adaptive", "display": "summarized"}
            options.output_config = {"effort": "low" if effort == "minimal" else effort}
        return options
    # Thoughts count as part of the answer, and an answer has to follow.
    budget = min(EFFORTS.get(effort, 0), options.max_tokens // 2)
    if budget >= EFFORTS["minimal"]:
        options.thinking = {"type": "enabled", "budget_tokens": budget}
    elif sampling.temperature is not None:
        options.temperature = min(sampling.temperature, 1.0)
    else:
        # Models refuse it beside a temperature.
        options.top_p = sampling.top_p
    return options


def _messages(request: ModelRequest, prefixes: Prefixes) -> bytes:
    """All messages but the last brackets, marked where the model spoke last and where it is to."""
    said, wording = request.messages, partial(_worded, request.choice)
    parts: list[bytes] = []
    start = 0
    for end in _ends(said):
        if start:
            parts.append(_marked(joined(said[start - 1], said[start:end], wording)))
        else:
            # All of it comes again in the next call, without the mark.
            parts.append(_marked(prefixes.joined(name_of(request), said[:end], wording)))
        start = end
    parts.append(joined(said[start - 1] if start else None, said[start:], wording))
    return b"".join(parts)


def _ends(said: Sequence[Message]) -> list[int]:
    """After which messages the model spoke last, and is to speak."""
    found: list[int] = []
    goes_on = True
    for index in range(len(said), 0, -1):
        ours = not isinstance(said[index - 1], AssistantMessage)
        if ours and goes_on:
            found.insert(0, index)
        if len(found) == 2:
            break
        goes_on = not ours
    return found


def _marked(blocks: bytes) -> bytes:
    return blocks[:-1] + _MARK + b"}"


def _worded(choice: ModelChoice, before: Message | None, message: Message) -> bytes:
    """The blocks of a message: in that of the one before it where both are of one side."""
    blocks = b",".join(_blocks(choice, message))
    role = _role(message)
    if before is None:
        # A conversation begins with a person.
        first = _FIRST if role == b"assistant" else b""
        return b'%b{"role":"%b","content":[%b' % (first, role, blocks)
    if role == _role(before):
        return b"," + blocks
    return b']},{"role":"%b","content":[%b' % (role, blocks)


def _role(message: Message) -> bytes:
    return b"assistant" if isinstance(message, AssistantMessage) else b"user"


def _blocks(choice: ModelChoice, message: Message) -> list[bytes]:
    match message:
        case UserMessage():
            return [_text(speech_of(message))]
        case ToolMessage(call=call, text=text, failed=failed):
            return [_encoder.encode(_Result(call, text, failed))]
        case AssistantMessage(text=text, calls=calls):
            said = [_text(text)] if text.strip() or not calls else []
            used = [_Use(call.id, call.name, Raw(arguments_of(call).encode())) for call in calls]
            return woven([*said, *map(_encoder.encode, used)], echoed(message, choice))


def _text(text: str) -> bytes:
    return _encoder.encode(_Text(text if text.strip() else SILENT))


_FIRST = b'{"role":"user","content":[%b]},' % _text(SILENT)


@lru_cache(maxsize=64)
def _url(base_url: str) -> URL:
    place = base_url.rstrip("/")
    return URL(f"{place}/messages" if place.endswith("/v1") else f"{place}/v1/messages")


@lru_cache(maxsize=64)
def _headers(key: str) -> Mapping[str, str]:
    headers = {**HEADERS, "anthropic-version": VERSION}
    return {**headers, "x-api-key": key} if key else headers
