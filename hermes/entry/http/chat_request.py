"""The body of a chat completion request, and what it asks of us."""

import hashlib

import msgspec
from msgspec import UNSET, Raw, UnsetType

from hermes.entry.http.content_parts import (
    NOTHING_ATTACHED,
    Attached,
    ContentPart,
    MessageContent,
    text_of,
    user_message,
)
from hermes.entry.http.errors import bad_request
from hermes.types.messages import AssistantMessage, Message, Sampling, UserMessage


class RequestMessage(msgspec.Struct):
    role: str
    content: MessageContent = None
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
            text_of(message.content, index)
            for index, message in enumerate(self.messages)
            if message.role in ("system", "developer")
        ]
        return "\n".join(texts)

    def attached_contents(self, *, new: bool) -> dict[int, list[ContentPart]]:
        """The user's contents that may have attachments; if `new`, only what a session lacks."""
        found = {
            index: message.content
            for index, message in enumerate(self.messages)
            if message.role == "user" and isinstance(message.content, list)
        }
        if not found or not new:
            return found
        last = max(
            index
            for index, message in enumerate(self.messages)
            if index == 0 or (message.role == "assistant" and text_of(message.content, index))
        )
        return {index: content for index, content in found.items() if index >= last}

    def conversation(self, attached: Attached = NOTHING_ATTACHED) -> list[Message]:
        """What people and the assistant said; what tools of the client said is left out."""
        found: list[Message] = []
        for index, message in enumerate(self.messages):
            match message.role:
                case "user":
                    found.append(user_message(message.content, index, attached))
                case "assistant":
                    if text := text_of(message.content, index):
                        found.append(AssistantMessage(text=text))
                case "system" | "developer" | "tool" | "function":
                    pass
                case other:
                    param = f"messages[{index}].role"
                    raise bad_request(f"There is no role {other!r}.", "invalid_role", param)
        if not any(isinstance(message, UserMessage) for message in found):
            raise bad_request("No user message found in messages.", param="messages")
        return found

    def news(self, attached: Attached = NOTHING_ATTACHED) -> list[Message]:
        """What a stored conversation does not have yet: all after the last assistant message."""
        found = self.conversation(attached)
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
    return request


def fingerprint(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()
