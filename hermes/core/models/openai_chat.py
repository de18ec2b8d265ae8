"""The wire format of OpenAI's chat completions, which most other servers speak too."""

from base64 import b32encode
from collections.abc import Collection, Mapping
from functools import partial
from hashlib import sha256

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import replace

from hermes.core.models.chat_chunks import ChatEcho, Chunks
from hermes.core.models.prefixes import Prefixes
from hermes.core.models.request_fields import (
    answer_limit,
    bearer,
    cache_name,
    call_arguments,
    extra_fields,
    system_text,
    user_text,
)
from hermes.core.models.response_formats import (
    JSON_OBJECT,
    enforced,
    form_in_words,
    schema_fields,
)
from hermes.core.models.thoughts import echoed
from hermes.core.tools.schema import function, tools_json
from hermes.types.identity import CallId
from hermes.types.messages import (
    AssistantMessage,
    Message,
    ResponseFormat,
    Sampling,
    ToolMessage,
    UserMessage,
)
from hermes.types.models import AnswerBuilder, ModelRequest
from hermes.types.profile import ModelChoice
from hermes.types.tools import AnyTool


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


_HEAD = b'"stream":true,"stream_options":{"include_usage":true},"model":'
_encoder = msgspec.json.Encoder()
_echoes = msgspec.json.Decoder(ChatEcho)


class OpenAIChat:
    """Requests to `{base_url}/chat/completions`."""

    name = "chat"

    def __init__(self) -> None:
        self._prefixes = Prefixes()

    def url(self, choice: ModelChoice) -> str:
        return f"{choice.base_url.rstrip('/')}/chat/completions"

    def list_url(self, choice: ModelChoice) -> str:
        return f"{choice.base_url.rstrip('/')}/models"

    def headers(self, choice: ModelChoice) -> Mapping[str, str]:
        return bearer(choice)

    def declare(self, tool: AnyTool) -> Mapping[str, object]:
        return function(tool)

    def left_out(self, choice: ModelChoice, sampling: Sampling) -> Collection[str]:
        return ()

    def body(self, request: ModelRequest) -> bytes:
        choice = request.choice
        parts = [b"{", extra_fields(choice), _HEAD, _encoder.encode(choice.model)]
        if request.tools:
            parts += b',"tools":', tools_json(tuple(request.tools))
        # Options that are not set are left out.
        sampling = _encoder.encode(replace(request.sampling, max_tokens=answer_limit(request)))
        if sampling != b"{}":
            if field := choice.quirks.max_tokens_field:
                sampling = sampling.replace(b'"max_tokens":', b'"%b":' % field.encode())
            parts += b",", sampling[1:-1]
        form = enforced(request)
        if form is not None:
            parts += b',"response_format":', _format(form)
        system = system_text(request, form_in_words(request.response_format, form))
        said = [_said("system", system)] if system else []
        encode = partial(_encoded, choice)
        said.append(self._prefixes.joined(cache_name(request), request.messages, encode))
        parts += b',"messages":[', b",".join(said), b"]}"
        return b"".join(parts)

    def parser(self, answer: AnswerBuilder) -> Chunks:
        return Chunks(answer)


def _format(form: ResponseFormat) -> bytes:
    if form.kind == "json_object":
        return JSON_OBJECT
    return b'{"type":"json_schema","json_schema":%b}' % schema_fields(form)


def _said(role: str, text: str) -> bytes:
    # By hand: a long conversation is encoded anew for every call.
    return b'{"role":"%b","content":%b}' % (role.encode(), _encoder.encode(text))


def _encoded(choice: ModelChoice, before: Message | None, message: Message) -> bytes:
    encoded = _message(choice, message)
    return b"," + encoded if before else encoded


def _message(choice: ModelChoice, message: Message) -> bytes:
    match message:
        case UserMessage():
            return _said("user", user_text(message))
        case AssistantMessage(text=text, calls=()):
            return _said("assistant", text)
        case AssistantMessage():
            return _encoder.encode(_calling(choice, message))
        case ToolMessage(call=call, text=text):
            return _encoder.encode(_Result(_id(choice, call), text))


def _calling(choice: ModelChoice, message: AssistantMessage) -> _Assistant:
    made = [
        _Call(_id(choice, call.id), _Function(call.name, call_arguments(call)))
        for call in message.calls
    ]
    said = _Assistant(message.text or None, made)
    if body := echoed(message, choice):
        echo = _echoes.decode(body)
        said.reasoning_content = echo.reasoning_content
        for index, call in enumerate(made):
            call.extra_content = echo.extra_content.get(index, UNSET)
    return said


def _id(choice: ModelChoice, call: CallId) -> str:
    if not (length := choice.quirks.call_id_length):
        return call
    return b32encode(sha256(call.encode()).digest())[:length].decode()
