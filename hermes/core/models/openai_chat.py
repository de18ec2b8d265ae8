"""Speaks to every server of OpenAI's chat completions, streaming."""

from base64 import b32encode
from collections.abc import Mapping
from functools import lru_cache, partial
from hashlib import sha256

import aiohttp
import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import replace
from yarl import URL

from hermes.core.models.chat_chunks import Chunks, Kept
from hermes.core.models.prefixes import Prefixes
from hermes.core.models.request_fields import (
    arguments_of,
    longest_of,
    name_of,
    speech_of,
    system_of,
)
from hermes.core.models.stream import HEADERS, Post, Upstream
from hermes.core.models.thoughts import echoed
from hermes.core.tools.schema import tools_json
from hermes.types.identity import CallId
from hermes.types.messages import AssistantMessage, Message, ToolMessage, UserMessage
from hermes.types.profile import ModelChoice
from hermes.types.protocols import Emit, ModelRequest


class OpenAIChat:
    """Asks `{base_url}/chat/completions`. `silence` is the longest wait for a byte, in seconds."""

    def __init__(self, session: aiohttp.ClientSession, *, silence: float = 300.0) -> None:
        self._upstream = Upstream(session, silence)
        self._prefixes = Prefixes()

    async def complete(self, request: ModelRequest, emit: Emit) -> AssistantMessage:
        choice, body = request.choice, encode(request, self._prefixes)
        post = Post(_url(choice.base_url), _headers(choice.api_key), body)
        return await self._upstream.complete(request, post, Chunks, emit)


class _Function(Struct):
    name: str
    arguments: str


class _Call(Struct):
    id: str
    function: _Function
    type: str = "function"
    extra_content: dict[str, Raw] | UnsetType = UNSET


class _Assistant(Struct, tag_field="role", tag="assistant"):
    content: str | None
    tool_calls: list[_Call]
    reasoning_content: str | UnsetType = UNSET


class _Result(Struct, tag_field="role", tag="tool"):
    tool_call_id: str
    content: str


_HEAD = b'{"stream":true,"stream_options":{"include_usage":true},"model":'
_encoder = msgspec.json.Encoder()
_kept = msgspec.json.Decoder(Kept)


def encode(request: ModelRequest, prefixes: Prefixes | None = None) -> bytes:
    """The body of the request; that of a longer conversation begins like that of a shorter one."""
    choice = request.choice
    parts = [_HEAD, _encoder.encode(choice.model)]
    if choice.provider == "openrouter":
        parts.append(b',"usage":{"include":true}')
    if request.tools:
        parts += b',"tools":', tools_json(tuple(request.tools))
    # Only what was set is in it.
    sampling = _encoder.encode(replace(request.sampling, max_tokens=longest_of(request)))
    if sampling != b"{}":
        # OpenAI's own reasoning models refuse the old name, most other servers don't know the new.
        if "//api.openai.com" in choice.base_url:
            sampling = sampling.replace(b'"max_tokens":', b'"max_completion_tokens":')
        parts += b",", sampling[1:-1]
    system = system_of(request)
    said = [_said("system", system)] if system else []
    prefixes = prefixes or Prefixes()
    said.append(prefixes.joined(name_of(request), request.messages, partial(_worded, choice)))
    parts += b',"messages":[', b",".join(said), b"]}"
    return b"".join(parts)


def _said(role: str, text: str) -> bytes:
    # By hand: a long conversation is encoded anew for every call.
    return b'{"role":"%b","content":%b}' % (role.encode(), _encoder.encode(text))


def _worded(choice: ModelChoice, before: Message | None, message: Message) -> bytes:
    worded = _message(choice, message)
    return b"," + worded if before else worded


def _message(choice: ModelChoice, message: Message) -> bytes:
    match message:
        case UserMessage():
            return _said("user", speech_of(message))
        case AssistantMessage(text=text, calls=()):
            return _said("assistant", text)
        case AssistantMessage():
            return _encoder.encode(_calling(choice, message))
        case ToolMessage(call=call, text=text):
            return _encoder.encode(_Result(_id(choice, call), text))


def _calling(choice: ModelChoice, message: AssistantMessage) -> _Assistant:
    made = [
        _Call(_id(choice, call.id), _Function(call.name, arguments_of(call)))
        for call in message.calls
    ]
    said = _Assistant(message.text or None, made)
    if body := echoed(message, choice):
        kept = _kept.decode(body)
        said.reasoning_content = kept.reasoning_content
        for index, call in enumerate(made):
            call.extra_content = kept.extra_content.get(index, UNSET)
    return said


def _id(choice: ModelChoice, call: CallId) -> str:
    if choice.provider != "mistral":
        return call
    # Mistral takes exactly nine letters and digits.
    return b32encode(sha256(call.encode()).digest())[:9].decode()


@lru_cache(maxsize=64)
def _url(base_url: str) -> URL:
    return URL(f"{base_url.rstrip('/')}/chat/completions")


@lru_cache(maxsize=64)
def _headers(key: str) -> Mapping[str, str]:
    return {**HEADERS, "Authorization": f"Bearer {key}"} if key else HEADERS
