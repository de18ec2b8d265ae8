"""The wire format of OpenAI's Responses API, with storage at the provider turned off."""

from collections.abc import Collection, Mapping
from functools import partial

import msgspec
from msgspec import Struct

from hermes.core.models.message_cache import EncodedMessageCache
from hermes.core.models.reasoning import echo_body, insert_reasoning
from hermes.core.models.request_fields import (
    answer_limit,
    bearer,
    cache_name,
    call_arguments,
    data_url,
    extra_fields,
    file_name,
    given_options,
    system_text,
    user_parts,
    user_text,
)
from hermes.core.models.response_events import ResponseEvents
from hermes.core.models.response_formats import (
    JSON_OBJECT,
    enforced,
    format_instruction,
    schema_fields,
)
from hermes.core.tools.schema import named_schema, tools_json
from hermes.types.client_tools import ClientTool, ToolChoice
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


_PASSED_ON = {"max_tokens", "temperature", "top_p", "reasoning_effort"}
_encoder = msgspec.json.Encoder()


class OpenAIResponses:
    """Builds requests to `{base_url}/responses`."""

    name = "responses"
    attachments: frozenset[AttachmentKind] = frozenset({"image", "file"})

    def __init__(self) -> None:
        self._cache = EncodedMessageCache()

    def url(self, choice: ModelChoice) -> str:
        return f"{choice.base_url.rstrip('/')}/responses"

    def list_url(self, choice: ModelChoice) -> str:
        return f"{choice.base_url.rstrip('/')}/models"

    def headers(self, choice: ModelChoice) -> Mapping[str, str]:
        return bearer(choice)

    def declare(self, tool: DeclaredTool) -> Mapping[str, object]:
        # The agent's own tools are not strict, because a strict schema can't have optional fields.
        strict = isinstance(tool, ClientTool) and bool(tool.strict)
        return {"type": "function", **named_schema(tool), "strict": strict}

    def ignored_options(self, choice: ModelChoice, sampling: Sampling) -> Collection[str]:
        return given_options(sampling) - _PASSED_ON

    def body(self, request: ModelRequest) -> bytes:
        choice = request.choice
        form = enforced(request)
        options = _options(request, format_instruction(request.response_format, form))
        parts = [b"{", extra_fields(choice), _encoder.encode(options)[1:-1]]
        if form is not None:
            parts += b',"text":{"format":', _format(form), b"}"
        if request.tools:
            parts += b',"tools":', tools_json(request.tools, self.declare)
            parts.append(_tool_choice(request.tool_choice))
        encode = partial(_encoded, request)
        items = self._cache.encoded(cache_name(request), request.messages, encode)
        parts += b',"input":[', items, b"]}"
        return b"".join(parts)

    def parser(self, answer: AnswerBuilder) -> ResponseEvents:
        return ResponseEvents(answer)


def _tool_choice(choice: ToolChoice) -> bytes:
    """Returns the JSON fields for the tool choice, or b"" for the default choice."""
    parts: list[bytes] = []
    if choice.mode == "named":
        parts += b',"tool_choice":', _encoder.encode({"type": "function", "name": choice.name})
    elif choice.mode != "auto":
        parts += b',"tool_choice":', _encoder.encode(choice.mode)
    if choice.parallel is not None:
        parts += b',"parallel_tool_calls":', _encoder.encode(choice.parallel)
    return b"".join(parts)


def _format(form: ResponseFormat) -> bytes:
    if form.kind == "json_object":
        return JSON_OBJECT
    return b'{"type":"json_schema",%b' % schema_fields(form)[1:]


def _options(request: ModelRequest, form: str) -> _Options:
    choice, sampling = request.choice, request.sampling
    effort = sampling.reasoning_effort
    thinks = choice.quirks.reasoning != "none"
    return _Options(
        choice.model,
        stream=True,
        store=False,
        instructions=system_text(request, form),
        include=("reasoning.encrypted_content",) if thinks else (),
        max_output_tokens=answer_limit(request),
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        reasoning={"effort": effort} if effort else {},
    )


def _encoded(request: ModelRequest, before: Message | None, message: Message) -> bytes:
    items = b",".join(_items(request, message))
    return b"," + items if before else items


def _items(request: ModelRequest, message: Message) -> list[bytes]:
    match message:
        case UserMessage(attachments=()):
            return [_encoder.encode(_Said("user", user_text(message)))]
        case UserMessage():
            parts = b",".join(_part(request, one) for one in user_parts(message))
            return [b'{"type":"message","role":"user","content":[%b]}' % parts]
        case ToolMessage(call=call, text=text):
            return [_encoder.encode(_Output(call, text))]
        case AssistantMessage(text=text, calls=calls):
            said = [_encoder.encode(_Said("assistant", text))] if text.strip() or not calls else []
            made = [_encoder.encode(_Call(one.id, one.name, call_arguments(one))) for one in calls]
            return insert_reasoning([*said, *made], echo_body(message, request.choice))


def _part(request: ModelRequest, part: str | Attachment) -> bytes:
    if isinstance(part, str):
        return b'{"type":"input_text","text":%b}' % _encoder.encode(part)
    url = data_url(request, part)
    if part.kind == "image":
        detail = _encoder.encode(part.detail or "auto")
        return b'{"type":"input_image","detail":%b,"image_url":%b}' % (detail, url)
    return b'{"type":"input_file","filename":%b,"file_data":%b}' % (file_name(part), url)
