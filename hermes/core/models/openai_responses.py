"""Speaks to every server of OpenAI's responses, streaming; nothing is stored there."""

import re
from collections.abc import Mapping
from functools import lru_cache, partial

import aiohttp
import msgspec
from msgspec import Struct
from yarl import URL

from hermes.core.models.prefixes import Prefixes
from hermes.core.models.request_fields import (
    arguments_of,
    longest_of,
    name_of,
    speech_of,
    system_of,
)
from hermes.core.models.response_events import ResponseEvents
from hermes.core.models.stream import HEADERS, Post, Upstream
from hermes.core.models.thoughts import echoed, woven
from hermes.core.tools.schema import tools_json
from hermes.types.messages import AssistantMessage, Message, ToolMessage, UserMessage
from hermes.types.profile import ModelChoice
from hermes.types.protocols import Emit, ModelRequest

# They have no thoughts, and refuse to be asked for them.
_THOUGHTLESS = re.compile(r"^(gpt-[34]|chatgpt-)")


class OpenAIResponses:
    """Asks `{base_url}/responses`. `silence` is the longest wait for a byte, in seconds."""

    def __init__(self, session: aiohttp.ClientSession, *, silence: float = 300.0) -> None:
        self._upstream = Upstream(session, silence)
        self._prefixes = Prefixes()

    async def complete(self, request: ModelRequest, emit: Emit) -> AssistantMessage:
        choice, body = request.choice, encode(request, self._prefixes)
        post = Post(_url(choice.base_url), _headers(choice.api_key), body)
        return await self._upstream.complete(request, post, ResponseEvents, emit)


class _Said(Struct, tag_field="type", tag="message"):
    role: str
    content: str


class _Call(Struct, tag_field="type", tag="function_call"):
    call_id: str
    name: str
    arguments: str


class _Output(Struct, tag_field="type", tag="function_call_output"):
    call_id: str
    output: str


class _Options(Struct, omit_defaults=True):
    model: str
    stream: bool
    store: bool
    instructions: str = ""
    include: tuple[str, ...] = ()
    max_output_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    reasoning: dict[str, str] = {}


_encoder = msgspec.json.Encoder()


def encode(request: ModelRequest, prefixes: Prefixes | None = None) -> bytes:
    """The body of the request; that of a longer conversation begins like that of a shorter one."""
    parts = [_encoder.encode(_options(request))[:-1]]
    if request.tools:
        parts += b',"tools":', tools_json(tuple(request.tools), "responses")
    prefixes = prefixes or Prefixes()
    wording = partial(_worded, request.choice)
    items = prefixes.joined(name_of(request), request.messages, wording)
    parts += b',"input":[', items, b"]}"
    return b"".join(parts)


def _options(request: ModelRequest) -> _Options:
    model, sampling = request.choice.model, request.sampling
    effort = sampling.reasoning_effort
    return _Options(
        model,
        stream=True,
        store=False,
        instructions=system_of(request),
        include=() if _THOUGHTLESS.search(model) else ("reasoning.encrypted_content",),
        max_output_tokens=longest_of(request),
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        reasoning={"effort": effort} if effort else {},
    )


def _worded(choice: ModelChoice, before: Message | None, message: Message) -> bytes:
    items = b",".join(_items(choice, message))
    return b"," + items if before else items


def _items(choice: ModelChoice, message: Message) -> list[bytes]:
    match message:
        case UserMessage():
            return [_encoder.encode(_Said("user", speech_of(message)))]
        case ToolMessage(call=call, text=text):
            return [_encoder.encode(_Output(call, text))]
        case AssistantMessage(text=text, calls=calls):
            said = [_encoder.encode(_Said("assistant", text))] if text.strip() or not calls else []
            made = [_encoder.encode(_Call(one.id, one.name, arguments_of(one))) for one in calls]
            return woven([*said, *made], echoed(message, choice))


@lru_cache(maxsize=64)
def _url(base_url: str) -> URL:
    return URL(f"{base_url.rstrip('/')}/responses")


@lru_cache(maxsize=64)
def _headers(key: str) -> Mapping[str, str]:
    return {**HEADERS, "Authorization": f"Bearer {key}"} if key else HEADERS
