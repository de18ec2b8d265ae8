"""The body of a chat completion request, and what it asks of us."""

import hashlib

import msgspec
from msgspec import UNSET, Raw, UnsetType

from hermes.entry.http.chat_messages import RequestMessage, has_legacy_calls
from hermes.entry.http.client_tools import NamedTool, RequestTool
from hermes.entry.http.errors import bad_request
from hermes.types.messages import Sampling


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
    tools: list[RequestTool] | None = None
    tool_choice: str | NamedTool | None = None
    parallel_tool_calls: bool | None = None
    # What we can't honour, to be named in the answer.
    functions: Raw | UnsetType = UNSET
    response_format: Raw | UnsetType = UNSET
    n: Raw | UnsetType = UNSET
    logprobs: Raw | UnsetType = UNSET
    top_logprobs: Raw | UnsetType = UNSET
    logit_bias: Raw | UnsetType = UNSET
    modalities: Raw | UnsetType = UNSET
    audio: Raw | UnsetType = UNSET

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
        if has_legacy_calls(self.messages):
            names.append("messages.function_call")
        return names


_IGNORED = (
    "functions", "response_format", "n", "logprobs", "top_logprobs",
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
