"""The body of a chat completion request, and what it asks of us."""

import hashlib

import msgspec
from msgspec import UNSET, Raw, UnsetType

from hermes.entry.http.errors import ApiError, bad_request
from hermes.types.messages import AssistantMessage, Message, Sampling, UserMessage

MOST_PARTS = 1000
REQUEST_MESSAGES = 2048
"""Messages in one request, as with OpenAI: very many would keep all other requests waiting."""


class ContentPart(msgspec.Struct):
    type: str = "text"
    text: str = ""


class RequestMessage(msgspec.Struct):
    role: str
    content: str | list[ContentPart] | None = None
    tool_calls: Raw | UnsetType = UNSET


class StreamOptions(msgspec.Struct):
    include_usage: bool = False


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
    # What we can't honour, to be named in the answer.
    tools: Raw | UnsetType = UNSET
    tool_choice: Raw | UnsetType = UNSET
    functions: Raw | UnsetType = UNSET
    response_format: Raw | UnsetType = UNSET
    n: Raw | UnsetType = UNSET
    logprobs: Raw | UnsetType = UNSET
    top_logprobs: Raw | UnsetType = UNSET
    logit_bias: Raw | UnsetType = UNSET
    modalities: Raw | UnsetType = UNSET
    audio: Raw | UnsetType = UNSET

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
                    found.append(UserMessage(text=_text(message, index)))
                case "assistant":
                    if text := _text(message, index):
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
        if any(_given(m.tool_calls) or m.role in ("tool", "function") for m in self.messages):
            names.append("messages.tool_calls")
        return names


_IGNORED = (
    "tools", "tool_choice", "functions", "response_format", "n", "logprobs", "top_logprobs",
    "logit_bias", "modalities", "audio",
)  # fmt: skip
_MEANINGLESS = {b"null", b"1", b"false", b"[]", b"{}"}
_decoder = msgspec.json.Decoder(ChatCompletionRequest)


def _given(value: Raw | UnsetType) -> bool:
    return not isinstance(value, UnsetType) and bytes(value) not in _MEANINGLESS


def parse_chat(body: bytes) -> ChatCompletionRequest:
    try:
        request = _decoder.decode(body)
    except msgspec.ValidationError as error:
        problem, _, where = str(error).partition(" - at `$")
        param = where.rstrip("`").lstrip(".") or None
        raise bad_request(f"{problem}.", param=param) from error
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise bad_request(f"The body is not valid JSON: {error}.", "invalid_json") from error
    if not request.messages:
        raise bad_request("Missing or invalid 'messages' field.", param="messages")
    if len(request.messages) > REQUEST_MESSAGES:
        raise bad_request(f"More than {REQUEST_MESSAGES} messages.", param="messages")
    return request


def fingerprint(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


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
