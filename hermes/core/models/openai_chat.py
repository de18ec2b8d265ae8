"""The wire format of OpenAI's chat completions, which most other servers use, too."""

from base64 import b32encode
from collections.abc import Collection, Mapping
from functools import partial
from hashlib import sha256

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import replace

from hermes.core.models.chat_chunks import ChatEcho, Chunks
from hermes.core.models.message_cache import EncodedMessageCache
from hermes.core.models.reasoning import echo_body
from hermes.core.models.request_fields import (
    answer_limit,
    bearer,
    cache_name,
    call_arguments,
    data_url,
    extra_fields,
    file_name,
    system_text,
    user_parts,
    user_text,
)
from hermes.core.models.response_formats import (
    JSON_OBJECT,
    enforced,
    format_instruction,
    schema_fields,
)
from hermes.core.tools.schema import function, tools_json
from hermes.types.client_tools import ToolChoice
from hermes.types.identity import CallId
from hermes.types.messages import (
    AssistantMessage,
    Attachment,
    AttachmentKind,
    Message,
    ResponseFormat,
    Sampling,
    ToolMessage,
    UserMessage,
)
from hermes.types.models import AnswerBuilder, ModelRequest
from hermes.types.profile import ModelChoice
from hermes.types.tools import DeclaredTool


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
    """Builds requests to `{base_url}/chat/completions`."""

    name = "chat"
    attachments: frozenset[AttachmentKind] = frozenset({"image", "audio", "file"})

    def __init__(self) -> None:
        self._cache = EncodedMessageCache()

    def url(self, choice: ModelChoice) -> str:
        return f"{choice.base_url.rstrip('/')}/chat/completions"

    def list_url(self, choice: ModelChoice) -> str:
        return f"{choice.base_url.rstrip('/')}/models"

    def headers(self, choice: ModelChoice) -> Mapping[str, str]:
        return bearer(choice)

    def declare(self, tool: DeclaredTool) -> Mapping[str, object]:
        return function(tool)

    def ignored_options(self, choice: ModelChoice, sampling: Sampling) -> Collection[str]:
        return ()

    def body(self, request: ModelRequest) -> bytes:
        choice = request.choice
        parts = [b"{", extra_fields(choice), _HEAD, _encoder.encode(choice.model)]
        if request.tools:
            parts += b',"tools":', tools_json(request.tools), _tool_choice(request.tool_choice)
        # `Sampling` has `omit_defaults`, so options that are not set are left out.
        sampling = _encoder.encode(replace(request.sampling, max_tokens=answer_limit(request)))
        if sampling != b"{}":
            if field := choice.quirks.max_tokens_field:
                sampling = sampling.replace(b'"max_tokens":', b'"%b":' % field.encode())
            parts += b",", sampling[1:-1]
        form = enforced(request)
        if form is not None:
            parts += b',"response_format":', _format(form)
        system = system_text(request, format_instruction(request.response_format, form))
        said = [_said("system", system)] if system else []
        encode = partial(_encoded, request)
        said.append(self._cache.encoded(cache_name(request), request.messages, encode))
        parts += b',"messages":[', b",".join(said), b"]}"
        return b"".join(parts)

    def parser(self, answer: AnswerBuilder) -> Chunks:
        return Chunks(answer)


def _tool_choice(choice: ToolChoice) -> bytes:
    """Returns the JSON fields for the tool choice, or b"" for the default choice."""
    parts: list[bytes] = []
    if choice.mode == "named":
        named = {"type": "function", "function": {"name": choice.name}}
        parts += b',"tool_choice":', _encoder.encode(named)
    elif choice.mode != "auto":
        parts += b',"tool_choice":', _encoder.encode(choice.mode)
    if choice.parallel is not None:
        parts += b',"parallel_tool_calls":', _encoder.encode(choice.parallel)
    return b"".join(parts)


def _format(form: ResponseFormat) -> bytes:
    if form.kind == "json_object":
        return JSON_OBJECT
    return b'{"type":"json_schema","json_schema":%b}' % schema_fields(form)


def _said(role: str, text: str) -> bytes:
    # The JSON is written by hand, because that is faster and every call encodes the whole
    # conversation.
    return b'{"role":"%b","content":%b}' % (role.encode(), _encoder.encode(text))


def _encoded(request: ModelRequest, before: Message | None, message: Message) -> bytes:
    encoded = _message(request, message)
    return b"," + encoded if before else encoded


def _message(request: ModelRequest, message: Message) -> bytes:
    choice = request.choice
    match message:
        case UserMessage(attachments=()):
            return _said("user", user_text(message))
        case UserMessage():
            parts = b",".join(_part(request, one) for one in user_parts(message))
            return b'{"role":"user","content":[%b]}' % parts
        case AssistantMessage(text=text, calls=()):
            return _said("assistant", text)
        case AssistantMessage():
            return _encoder.encode(_calling(choice, message))
        case ToolMessage(call=call, text=text):
            return _encoder.encode(_Result(_id(choice, call), text))


def _part(request: ModelRequest, part: str | Attachment) -> bytes:
    if isinstance(part, str):
        return b'{"type":"text","text":%b}' % _encoder.encode(part)
    match part.kind:
        case "image":
            detail = b',"detail":%b' % _encoder.encode(part.detail) if part.detail else b""
            url = data_url(request, part)
            return b'{"type":"image_url","image_url":{"url":%b%b}}' % (url, detail)
        case "audio":
            kind = b"mp3" if part.media_type == "audio/mpeg" else b"wav"
            audio = b'"data":"%b","format":"%b"' % (request.media[part.path], kind)
            return b'{"type":"input_audio","input_audio":{%b}}' % audio
        case _:
            file = b'"filename":%b,"file_data":%b' % (file_name(part), data_url(request, part))
            return b'{"type":"file","file":{%b}}' % file


def _calling(choice: ModelChoice, message: AssistantMessage) -> _Assistant:
    made = [
        _Call(_id(choice, call.id), _Function(call.name, call_arguments(call)))
        for call in message.calls
    ]
    said = _Assistant(message.text or None, made)
    if body := echo_body(message, choice):
        echo = _echoes.decode(body)
        said.reasoning_content = echo.reasoning_content
        for index, call in enumerate(made):
            call.extra_content = echo.extra_content.get(index, UNSET)
    return said


def _id(choice: ModelChoice, call: CallId) -> str:
    if not (length := choice.quirks.call_id_length):
        return call
    return b32encode(sha256(call.encode()).digest())[:length].decode()
