"""The wire format of Anthropic's Messages API, with markers for its prompt cache."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial

import msgspec
from msgspec import Raw, Struct

from hermes.core.models.anthropic_schema import enforced_schema
from hermes.core.models.message_cache import EncodedMessageCache, encode_all
from hermes.core.models.message_events import MessageEvents
from hermes.core.models.reasoning import echo_body, insert_reasoning
from hermes.core.models.request_fields import (
    cache_name,
    call_arguments,
    extra_fields,
    file_name,
    given_options,
    user_parts,
    user_text,
)
from hermes.core.models.response_formats import format_instruction
from hermes.core.tools.schema import parameters_of, tools_json
from hermes.types.client_tools import ToolChoice
from hermes.types.messages import (
    AssistantMessage,
    Attachment,
    AttachmentKind,
    Message,
    Sampling,
    ToolMessage,
    UserMessage,
)
from hermes.types.models import AnswerBuilder, ModelRequest
from hermes.types.profile import ModelChoice
from hermes.types.tools import DeclaredTool

API_VERSION = "2023-06-01"
ANSWER_TOKENS = 8192
"""Maximum number of tokens of an answer, if neither the request nor the settings limit it. The API
requires a limit."""
THINKING_TOKENS = {
    "minimal": 1024,
    "low": 2048,
    "medium": 8192,
    "high": 16384,
    "xhigh": 32768,
    "max": 65536,
}
"""Number of reasoning tokens for each reasoning effort, for models whose reasoning is limited by a
number of tokens."""
NO_TEXT = "(no text)"
"""Text that is sent instead of empty text, which the API refuses."""

_CACHE_MARKER = b',"cache_control":{"type":"ephemeral"}'


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
    output_config: dict[str, object] = {}


_CHOICES = {"auto": "auto", "none": "none", "required": "any", "named": "tool"}
_encoder = msgspec.json.Encoder()


class AnthropicMessages:
    """Builds requests to `{base_url}/v1/messages`.

    Apart from the cache markers, the body of a call begins with the body of the previous call of
    the same conversation. So the provider can reuse its prompt cache.
    """

    name = "anthropic"
    attachments: frozenset[AttachmentKind] = frozenset({"image", "file"})

    def __init__(self) -> None:
        self._cache = EncodedMessageCache()

    def url(self, choice: ModelChoice) -> str:
        return f"{_root(choice)}/messages"

    def list_url(self, choice: ModelChoice) -> str:
        return f"{_root(choice)}/models?limit=1000"

    def headers(self, choice: ModelChoice) -> Mapping[str, str]:
        key = {"x-api-key": choice.api_key} if choice.api_key else {}
        return {**key, "anthropic-version": API_VERSION}

    def declare(self, tool: DeclaredTool) -> Mapping[str, object]:
        schema = parameters_of(tool)
        return {"name": tool.name, "description": tool.description, "input_schema": schema}

    def ignored_options(self, choice: ModelChoice, sampling: Sampling) -> Collection[str]:
        options = _options(choice, sampling)
        passed_on = {
            "max_tokens": True,
            "stop": bool(options.stop_sequences),
            "temperature": options.temperature is not None,
            "top_p": options.top_p is not None,
            "reasoning_effort": bool(options.thinking),
        }
        return {name for name in given_options(sampling) if not passed_on.get(name, False)}

    def body(self, request: ModelRequest) -> bytes:
        choice = request.choice
        schema = enforced_schema(request)
        options = _options(choice, request.sampling)
        if schema is not None:
            options.output_config["format"] = {"type": "json_schema", "schema": schema}
        form = format_instruction(
            request.response_format, request.response_format if schema else None
        )
        parts = [b"{", extra_fields(choice), b'"stream":true,"model":']
        parts += _encoder.encode(choice.model), b",", _encoder.encode(options)[1:-1]
        if request.tools:
            tools = tools_json(request.tools, self.declare)
            parts += (
                b',"tools":',
                tools[:-2],
                _CACHE_MARKER,
                b"}]",
                _tool_choice(request.tool_choice),
            )
        if system := _system(request, form):
            parts += b',"system":[', system, b"]"
        parts += b',"messages":[', _messages(request, self._cache), b"]}]}"
        return b"".join(parts)

    def parser(self, answer: AnswerBuilder) -> MessageEvents:
        return MessageEvents(answer)


def _tool_choice(choice: ToolChoice) -> bytes:
    """Returns the JSON field for the tool choice, or b"" for the default choice."""
    chosen: dict[str, str | bool] = {"type": _CHOICES[choice.mode]}
    if choice.mode == "named":
        chosen["name"] = choice.name
    if choice.parallel is not None and choice.mode != "none":
        chosen["disable_parallel_tool_use"] = not choice.parallel
    return b',"tool_choice":' + _encoder.encode(chosen) if chosen != {"type": "auto"} else b""


def _root(choice: ModelChoice) -> str:
    """Returns the address with `/v1` at its end. The setting `base_url` may leave `/v1` out."""
    return f"{choice.base_url.rstrip('/').removesuffix('/v1')}/v1"


def _system(request: ModelRequest, form: str) -> bytes:
    blocks = []
    if request.system:
        blocks.append(_with_cache_marker(_encoder.encode(_Text(request.system))))
    blocks += [_encoder.encode(_Text(text)) for text in (request.ephemeral, form) if text]
    return b",".join(blocks)


def _options(choice: ModelChoice, sampling: Sampling) -> _Options:
    options = _Options(
        sampling.max_tokens or choice.max_tokens or ANSWER_TOKENS,
        stop_sequences=tuple(stop for stop in sampling.stop if stop.strip()),
    )
    effort = sampling.reasoning_effort or ""
    if choice.quirks.reasoning == "effort":
        if effort in THINKING_TOKENS:
            options.thinking = {"type": "adaptive", "display": "summarized"}
            options.output_config = {"effort": "low" if effort == "minimal" else effort}
        return options
    # Reasoning counts against the limit of the answer, so half of the limit is kept for the text.
    budget = min(THINKING_TOKENS.get(effort, 0), options.max_tokens // 2)
    if budget >= THINKING_TOKENS["minimal"]:
        options.thinking = {"type": "enabled", "budget_tokens": budget}
    elif sampling.temperature is not None:
        options.temperature = min(sampling.temperature, 1.0)
    else:
        # Models refuse requests that set both `top_p` and a temperature. So `top_p` is sent only if
        # no temperature is set.
        options.top_p = sampling.top_p
    return options


def _messages(request: ModelRequest, cache: EncodedMessageCache) -> bytes:
    """Encodes all messages, with a cache marker at each position that `_ends` returns. The closing
    brackets of the last message are left out; `body` adds them."""
    said, encode = request.messages, partial(_encoded, request)
    parts: list[bytes] = []
    start = 0
    for end in _ends(said):
        if start:
            parts.append(_with_cache_marker(encode_all(said[start - 1], said[start:end], encode)))
        else:
            # The marker is added after the part was cached, because the next call sends this part
            # without the marker.
            parts.append(_with_cache_marker(cache.encoded(cache_name(request), said[:end], encode)))
        start = end
    parts.append(encode_all(said[start - 1] if start else None, said[start:], encode))
    return b"".join(parts)


def _ends(said: Sequence[Message]) -> list[int]:
    """Returns the positions at which the last two groups of messages end. A group is a series of
    consecutive messages that are not from the model."""
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


def _with_cache_marker(blocks: bytes) -> bytes:
    return blocks[:-1] + _CACHE_MARKER + b"}"


def _encoded(request: ModelRequest, before: Message | None, message: Message) -> bytes:
    """Encodes a message. Consecutive messages with the same role are joined, because the API
    requires that the roles alternate."""
    blocks = b",".join(_blocks(request, message))
    role = _role(message)
    if before is None:
        # The API requires that the first message is from the user. So a short user message is put
        # before a first message from the assistant.
        first = _FIRST if role == b"assistant" else b""
        return b'%b{"role":"%b","content":[%b' % (first, role, blocks)
    if role == _role(before):
        return b"," + blocks
    return b']},{"role":"%b","content":[%b' % (role, blocks)


def _role(message: Message) -> bytes:
    return b"assistant" if isinstance(message, AssistantMessage) else b"user"


def _blocks(request: ModelRequest, message: Message) -> list[bytes]:
    match message:
        case UserMessage(attachments=()):
            return [_text(user_text(message))]
        case UserMessage():
            return [_block(request, part) for part in user_parts(message)]
        case ToolMessage(call=call, text=text, failed=failed):
            return [_encoder.encode(_Result(call, text, failed))]
        case AssistantMessage(text=text, calls=calls):
            said = [_text(text)] if text.strip() or not calls else []
            used = [_Use(call.id, call.name, Raw(call_arguments(call).encode())) for call in calls]
            return insert_reasoning(
                [*said, *map(_encoder.encode, used)], echo_body(message, request.choice)
            )


def _block(request: ModelRequest, part: str | Attachment) -> bytes:
    if isinstance(part, str):
        return _text(part)
    source = b'{"type":"base64","media_type":%b,"data":"%b"}' % (
        _encoder.encode(part.media_type),
        request.media[part.path],
    )
    if part.kind == "image":
        return b'{"type":"image","source":%b}' % source
    return b'{"type":"document","title":%b,"source":%b}' % (file_name(part), source)


def _text(text: str) -> bytes:
    return _encoder.encode(_Text(text if text.strip() else NO_TEXT))


_FIRST = b'{"role":"user","content":[%b]},' % _text(NO_TEXT)
