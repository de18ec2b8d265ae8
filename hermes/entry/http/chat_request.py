"""The body of a chat completion request."""

import hashlib
import re

import msgspec
from msgspec import UNSET, Raw, UnsetType

from hermes.entry.http.chat_messages import RequestMessage
from hermes.entry.http.client_tools import NamedTool, RequestTool
from hermes.entry.http.errors import bad_request
from hermes.entry.http.request_limits import has_too_many_messages, too_many_messages
from hermes.entry.http.response_format import RequestedFormat
from hermes.types.messages import Sampling


class StreamOptions(msgspec.Struct):
    include_usage: bool = False
    """Whether to add a last chunk with the number of tokens."""
    include_obfuscation: bool | None = None
    """Ignored. The gateway adds no random padding to the chunks."""


class ChatCompletionRequest(msgspec.Struct):
    messages: list[RequestMessage]
    """The conversation. In a session, only the messages after the last assistant message are
    used."""
    model: str = ""
    """The name of the agent that answers, or a `provider/model`; empty for the default agent."""
    stream: bool | None = None
    """Whether to stream the answer as server-sent events."""
    stream_options: StreamOptions | None = None
    """Options of a stream."""
    temperature: float | None = None
    """The sampling temperature, which is passed on to the model."""
    top_p: float | None = None
    """The probability mass for nucleus sampling, which is passed on to the model."""
    max_tokens: int | None = None
    """The longest answer, in tokens."""
    max_completion_tokens: int | None = None
    """The newer name of `max_tokens`. If both are given, this field is used."""
    stop: str | list[str] | None = None
    """Texts at which the model stops."""
    seed: int | None = None
    """The random seed, which is passed on to the model."""
    presence_penalty: float | None = None
    """The presence penalty, which is passed on to the model."""
    frequency_penalty: float | None = None
    """The frequency penalty, which is passed on to the model."""
    reasoning_effort: str | None = None
    """How long the model thinks, such as `low` or `high`; passed on to the model."""
    n: int | None = None
    """The number of answers; only 1 is supported."""
    tools: list[RequestTool] | None = None
    """Tools of the client, which the model may call in addition to the agent's own tools."""
    tool_choice: str | NamedTool | None = None
    """The tool choice: `auto`, `none`, `required`, or the one function that the model must call
    first."""
    parallel_tool_calls: bool | None = None
    """Whether the model may call several tools at once."""
    response_format: RequestedFormat | None = None
    """The form of the final answer; plain text if the field is left out."""
    # The fields below have no effect. The response names them, like all unknown fields.
    functions: Raw | UnsetType = UNSET
    """Ignored; use `tools`."""

    def sampling(self) -> Sampling:
        stop = (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ())
        return Sampling(
            temperature=self.temperature,
            top_p=self.top_p,
            max_tokens=self.max_completion_tokens or self.max_tokens,
            stop=stop,
            seed=self.seed,
            presence_penalty=self.presence_penalty,
            frequency_penalty=self.frequency_penalty,
            reasoning_effort=self.reasoning_effort,
        )

    def ignored(self) -> list[str]:
        """Returns the names of the fields that the request sets but that have no effect."""
        names = [name for name in _IGNORED if _given(getattr(self, name))]
        if self.stream_options and self.stream_options.include_obfuscation:
            names.append("stream_options.include_obfuscation")
        if self.response_format and _given(self.response_format.schema):
            names.append("response_format.schema")
        if any(_given(m.function_call) or m.role == "function" for m in self.messages):
            names.append("messages.function_call")
        if any(_given(m.audio) for m in self.messages):
            names.append("messages.audio")
        if any(m.name and m.role != "user" for m in self.messages):
            names.append("messages.name")
        return names


class _KnownFieldsOnly(ChatCompletionRequest, forbid_unknown_fields=True):
    """The same request, but decoding fails if it has a field that `ChatCompletionRequest` does not
    declare."""


MISSING_FIELD = re.compile("Object missing required field `(.+)`")
"""Matches the message of msgspec's error for a missing field."""
_IGNORED = ("functions",)
_MEANINGLESS = {
    b"null", b"false", b"0", b'""', b"[]", b"{}", b'"auto"', b'"default"', b'["text"]',
}  # fmt: skip
_strict_decoder = msgspec.json.Decoder(_KnownFieldsOnly)
_decoder = msgspec.json.Decoder(ChatCompletionRequest)
_fields_decoder = msgspec.json.Decoder(dict[str, Raw])


def _given(value: Raw | UnsetType) -> bool:
    return not isinstance(value, UnsetType) and bytes(value) not in _MEANINGLESS


def unknown_fields(request: ChatCompletionRequest, body: bytes) -> list[str]:
    """Returns the names of the request's unknown fields."""
    if isinstance(request, _KnownFieldsOnly):
        return []
    known = ChatCompletionRequest.__struct_fields__
    fields = _fields_decoder.decode(body)
    return [name for name, value in fields.items() if name not in known and _given(value)]


def parse_chat(body: bytes) -> ChatCompletionRequest:
    try:
        if has_too_many_messages(body):
            raise too_many_messages()
        request = _decoded(body)
    except msgspec.ValidationError as error:
        problem, _, where = str(error).partition(" - at `$")
        place = where.rstrip("`")
        if missing := MISSING_FIELD.match(problem):
            # msgspec reports the place of the object from which the field is missing.
            place = f"{place}.{missing[1]}"
        raise bad_request(f"{problem}.", param=place.lstrip(".") or None) from error
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise bad_request(f"The body is not valid JSON: {error}.", "invalid_json") from error
    if not request.messages:
        raise bad_request("Missing or invalid 'messages' field.", param="messages")
    if request.n not in (None, 1):
        raise bad_request("Only one choice (n = 1) is supported.", "unsupported_parameter", "n")
    return request


def _decoded(body: bytes) -> ChatCompletionRequest:
    try:
        return _strict_decoder.decode(body)
    except msgspec.ValidationError:
        # A request with an unknown field is decoded a second time here. Most requests have no
        # unknown field.
        return _decoder.decode(body)


def fingerprint(session: str, body: bytes) -> str:
    """Returns a fingerprint of a request. Requests with different sessions or bodies have
    different fingerprints."""
    return hashlib.sha256(session.encode() + b"\0" + body).hexdigest()
