"""The body of a chat completion request, and what it asks of us."""

import hashlib

import msgspec
from msgspec import UNSET, Raw, UnsetType

from hermes.entry.http.errors import ApiError, bad_request
from hermes.entry.http.request_limits import has_too_many_messages, too_many_messages
from hermes.entry.http.response_format import RequestedFormat
from hermes.types.messages import AssistantMessage, Message, Sampling, UserMessage

MOST_PARTS = 1000
LONGEST_NAME = 64
"""Characters of a participant's name."""


class ContentPart(msgspec.Struct):
    type: str = "text"
    text: str = ""


class RequestMessage(msgspec.Struct):
    role: str
    content: str | list[ContentPart] | None = None
    tool_calls: Raw | UnsetType = UNSET
    name: str | None = None
    refusal: str | None = None
    """What an assistant said in place of an answer."""
    function_call: Raw | UnsetType = UNSET
    audio: Raw | UnsetType = UNSET


class StreamOptions(msgspec.Struct):
    include_usage: bool = False
    include_obfuscation: bool | None = None


class ChatCompletionRequest(msgspec.Struct):
    messages: list[RequestMessage]
    model: str = ""
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    stop: str | list[str] | None = None
    seed: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    reasoning_effort: str | None = None
    n: int | None = None
    response_format: RequestedFormat | None = None
    # What we can't honour, to be named in the answer, like all fields that are not listed here.
    tools: Raw | UnsetType = UNSET
    tool_choice: Raw | UnsetType = UNSET
    functions: Raw | UnsetType = UNSET

    def instructions(self) -> str:
        """The system messages, for this turn only."""
        texts = [
            _text(message, index)
            for index, message in enumerate(self.messages)
            if message.role in ("system", "developer")
        ]
        return "\n".join(texts)

    def conversation(self) -> list[Message]:
        """What people and the assistant said; what tools of the client said is left out."""
        found: list[Message] = []
        for index, message in enumerate(self.messages):
            match message.role:
                case "user":
                    text, sender = _text(message, index), _sender(message, index)
                    found.append(UserMessage(text=text, sender=sender))
                case "assistant":
                    if text := _text(message, index) or message.refusal or "":
                        found.append(AssistantMessage(text=text))
                case "system" | "developer" | "tool" | "function":
                    pass
                case other:
                    param = f"messages[{index}].role"
                    raise bad_request(f"There is no role {other!r}.", "invalid_role", param)
        if not any(isinstance(message, UserMessage) for message in found):
            raise bad_request("No user message found in messages.", param="messages")
        return found

    def news(self) -> list[Message]:
        """What a stored conversation does not have yet: all after the last assistant message."""
        found = self.conversation()
        for index in range(len(found), 0, -1):
            if isinstance(found[index - 1], AssistantMessage):
                found = found[index:]
                break
        if not found:
            raise bad_request("The last message must be the user's.", param="messages")
        return found

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
        """Names of options that have no effect here."""
        names = [name for name in _IGNORED if _given(getattr(self, name))]
        if self.stream_options and self.stream_options.include_obfuscation:
            names.append("stream_options.include_obfuscation")
        if self.response_format and _given(self.response_format.schema):
            names.append("response_format.schema")
        if any(_given(m.tool_calls) or m.role in ("tool", "function") for m in self.messages):
            names.append("messages.tool_calls")
        if any(_given(m.function_call) for m in self.messages):
            names.append("messages.function_call")
        if any(_given(m.audio) for m in self.messages):
            names.append("messages.audio")
        if any(m.name and m.role != "user" for m in self.messages):
            names.append("messages.name")
        return names


class _KnownFieldsOnly(ChatCompletionRequest, forbid_unknown_fields=True):
    """The same request; decoding fails if it has a field that is not listed above."""


_IGNORED = ("tools", "tool_choice", "functions")
_MEANINGLESS = {
    b"null", b"false", b"0", b'""', b"[]", b"{}", b'"auto"', b'"default"', b'["text"]',
}  # fmt: skip
_strict_decoder = msgspec.json.Decoder(_KnownFieldsOnly)
_decoder = msgspec.json.Decoder(ChatCompletionRequest)
_fields_decoder = msgspec.json.Decoder(dict[str, Raw])


def _given(value: Raw | UnsetType) -> bool:
    return not isinstance(value, UnsetType) and bytes(value) not in _MEANINGLESS


def unknown_fields(request: ChatCompletionRequest, body: bytes) -> list[str]:
    """Names of the request's fields that we don't know, as its body has them."""
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
        param = where.rstrip("`").lstrip(".") or None
        raise bad_request(f"{problem}.", param=param) from error
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
        # Most requests have no unknown field, so that they are decoded once.
        return _decoder.decode(body)


def fingerprint(session: str, body: bytes) -> str:
    """Identifies what a request asks for: another session or body has another fingerprint."""
    return hashlib.sha256(session.encode() + b"\0" + body).hexdigest()


def _sender(message: RequestMessage, index: int) -> str | None:
    """The participant's name, which the model is shown."""
    name = message.name
    if name and (len(name) > LONGEST_NAME or not name.isprintable()):
        limit = f"at most {LONGEST_NAME} printable characters"
        raise bad_request(f"A name has {limit}.", param=f"messages[{index}].name")
    return name or None


def _text(message: RequestMessage, index: int) -> str:
    match message.content:
        case None:
            return ""
        case str(text):
            return text
        case parts:
            param = f"messages[{index}].content"
            if len(parts) > MOST_PARTS:
                raise bad_request(f"More than {MOST_PARTS} content parts.", param=param)
            for part in parts:
                if part.type not in ("text", "input_text", "output_text"):
                    raise ApiError(
                        400,
                        f"Content of type {part.type!r} is not supported; send text.",
                        "unsupported_content_type",
                        param=param,
                    )
            return "\n".join(part.text for part in parts)
