"""The JSON types of the HTTP API: chat completions and run events."""

import json
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType, field

from hermes.types.events import FinishReason, UsageReported
from hermes.types.value import Value

_encode = msgspec.json.Encoder().encode


def encode(value: str | msgspec.Struct) -> bytes:
    """Encodes a value as JSON on one line. Characters that UTF-8 can't encode become "?"."""
    try:
        return _encode(value)
    except UnicodeEncodeError:
        # UTF-8 can't encode lone surrogates, which occur in file names that are not valid UTF-8.
        plain = msgspec.to_builtins(value)
        return json.dumps(plain, ensure_ascii=False).encode(errors="replace")


class WireValue(Value, omit_defaults=False):
    """A value whose defaults are encoded too, because clients expect all fields."""


class Usage(WireValue):
    prompt_tokens: int = 0
    """Tokens that the model read."""
    completion_tokens: int = 0
    """Tokens that the model wrote."""
    total_tokens: int = 0
    """The sum of `prompt_tokens` and `completion_tokens`."""

    @classmethod
    def of(cls, usage: UsageReported | None) -> "Usage":
        if usage is None:
            return cls()
        return cls(
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            total_tokens=usage.prompt_tokens + usage.completion_tokens,
        )


class FunctionCall(WireValue):
    name: str
    """The client tool to run."""
    arguments: str
    """The arguments of the call, as JSON."""


class ClientCall(WireValue):
    """A call of a client tool."""

    id: str
    """The id of the call. The message with the result must repeat it as `tool_call_id`."""
    function: FunctionCall
    """The tool and the arguments of the call."""
    type: Literal["function"] = "function"
    """Always `function`."""
    index: int | UnsetType = UNSET
    """The position of the call in the answer; only set in a stream."""


class Delta(WireValue):
    role: Literal["assistant"] | UnsetType = UNSET
    """Always `assistant`; only set in the first chunk."""
    content: str | UnsetType = UNSET
    """The next piece of the answer."""
    reasoning_content: str | UnsetType = UNSET
    """The next piece of the model's reasoning."""
    tool_calls: tuple[ClientCall, ...] | UnsetType = UNSET
    """Calls of client tools, all in one chunk."""


class ChunkChoice(WireValue):
    index: int = 0
    """Always 0."""
    delta: Delta = Delta()
    """The part of the answer in this chunk."""
    finish_reason: FinishReason | None = None
    """Why the model ended the answer; null until the last chunk."""


class Chunk(WireValue):
    id: str
    """`chatcmpl-` and the id of the run."""
    created: int
    """The time of the request, in seconds since 1970."""
    model: str
    """The `model` of the request."""
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    """Always `chat.completion.chunk`."""
    choices: tuple[ChunkChoice, ...] = (ChunkChoice(),)
    """The list of choices. It contains one choice, but is empty in the chunk with the usage."""
    usage: Usage | UnsetType | None = UNSET
    """The number of tokens. Only the last chunk has it, and only if the request sets
    `stream_options.include_usage`."""


class ToolUpdate(WireValue):
    """A call of one of the agent's own tools has started or ended."""

    tool: str
    """The name of the tool."""
    call: str = field(name="toolCallId")
    """The id of the call."""
    status: Literal["running", "completed", "failed"]
    """`running` when the call starts; `completed` or `failed` at its end."""
    label: str | UnsetType = UNSET
    """A description of the call in one line, for people; only set when the call starts."""
    arguments: str | UnsetType = UNSET
    """The arguments as JSON, with long texts cut and secrets redacted. Only the first update of a
    call has them."""
    duration: float | UnsetType = UNSET
    """Seconds that the call took; only set when the call has ended."""
    result: str | UnsetType = UNSET
    """The beginning of the result, with secrets redacted; only set when the call has ended."""


class NoticeUpdate(WireValue):
    """A remark of the gateway that is not part of the answer."""

    text: str
    """The text of the remark."""


class ErrorBody(WireValue):
    message: str
    """Describes the problem, for people."""
    code: str
    """Names the error for programs."""
    type: str
    """OpenAI's name for this kind of error."""


def error_type(status: int) -> str:
    """Returns OpenAI's error type for an HTTP status."""
    if status == 429:
        return "rate_limit_error"
    return "server_error" if status >= 500 else "invalid_request_error"


class ErrorChunk(WireValue):
    error: ErrorBody
    """The error that ends the stream."""


class AssistantReply(WireValue):
    content: str | None
    """The answer; null if there are only tool calls."""
    role: Literal["assistant"] = "assistant"
    """Always `assistant`."""
    tool_calls: tuple[ClientCall, ...] | UnsetType = UNSET
    """Calls of client tools. The client must send their results."""


class Choice(WireValue):
    message: AssistantReply
    """The answer."""
    index: int = 0
    """Always 0."""
    finish_reason: FinishReason = "stop"
    """Why the model ended the answer."""


class Completion(WireValue):
    id: str
    """`chatcmpl-` and the id of the run."""
    created: int
    """The time of the request, in seconds since 1970."""
    model: str
    """The `model` of the request."""
    choices: tuple[Choice, ...]
    """Always contains exactly one choice."""
    usage: Usage
    """The tokens of all model calls of the run."""
    object: Literal["chat.completion"] = "chat.completion"
    """Always `chat.completion`."""


ApprovalChoice = Literal["once", "session", "always", "deny"]


class RunEvent(WireValue, tag_field="event"):
    """An event of a run. Its tag is also the name of the server-sent event."""

    run_id: str
    """The id of the run."""


class MessageDelta(RunEvent, tag="message.delta"):
    """The next piece of the answer."""

    delta: str
    """The text of the piece."""


class ReasoningText(RunEvent, tag="reasoning.delta"):
    """The next piece of the model's reasoning."""

    delta: str
    """The text of the piece."""


class SegmentEnd(RunEvent, tag="hermes.segment.ended"):
    """The model has ended a piece of text; tool calls or the end of the run follow."""


class SegmentDiscard(RunEvent, tag="hermes.segment.discarded"):
    """The answer was interrupted. Drop the text of all earlier events whose id is `from_seq` or
    higher, because the model writes this part of the answer again."""

    from_seq: int
    """The lowest id whose text must be dropped. There may be no event with exactly this id."""


class ToolStart(RunEvent, tag="tool.started"):
    """A call of one of the agent's own tools has started."""

    tool: str
    """The name of the tool."""
    tool_call_id: str
    """The id of the call."""
    label: str
    """A description of the call in one line, for people."""
    arguments: str
    """The arguments as JSON, with long texts cut and secrets redacted."""


class ToolProgressText(RunEvent, tag="tool.progress"):
    """A running tool reports its progress."""

    tool_call_id: str
    """The id of the call."""
    text: str
    """The latest output of the tool."""


class ToolEnd(RunEvent, tag="tool.completed"):
    """A call of one of the agent's own tools has ended."""

    tool: str
    """The name of the tool."""
    tool_call_id: str
    """The id of the call."""
    duration: float
    """Seconds that the call took."""
    error: bool
    """Whether the call failed."""
    result: str
    """The beginning of the result, with secrets redacted."""


class ApprovalRequest(RunEvent, tag="approval.request"):
    """The run waits until a person approves or denies an action. Send the decision with
    `POST /v1/runs/{run_id}/approval`."""

    id: str
    """The id of the approval."""
    prompt: str
    """The question in Markdown: the action, where it happens, and the reason."""
    detail: str
    """The exact action that the approval permits, for example a command, with secrets redacted."""
    reason: str
    """Why the action needs approval."""
    choices: tuple[str, ...]
    """The possible decisions: `once`, `session`, `always` and `deny`, or some of them."""
    expires_at: int
    """The time after which the action counts as not approved, in seconds since 1970."""


class QuestionRequest(RunEvent, tag="question.asked"):
    """The run waits until a person answers a question."""

    id: str
    """The id of the question."""
    prompt: str
    """The question."""
    choices: tuple[str, ...]
    """Answers to choose from; empty for a free answer."""


class CompactionUpdate(RunEvent, tag="hermes.context.compacted"):
    """A summary has replaced the middle of a long conversation for the model."""

    messages: int
    """Number of messages that the summary replaces for the model."""


class NoticeEvent(RunEvent, tag="notice"):
    """A remark of the gateway that is not part of the answer."""

    text: str
    """The text of the remark."""


class UsageUpdate(RunEvent, tag="usage"):
    """A model call has ended."""

    usage: Usage
    """The tokens of the call."""


class RunCompleted(RunEvent, tag="run.completed"):
    """The run has ended with an answer."""

    output: str
    """The whole answer."""
    usage: Usage
    """The tokens of all model calls of the run."""
    finish_reason: FinishReason = "stop"
    """Why the model ended the answer."""


class RunSuspended(RunEvent, tag="run.suspended", kw_only=True):
    """The run waits for a person, or for the results of client tools."""

    # `output` must be the last field. A long answer replaces the last placeholder in the frame, and
    # the text of an earlier field could contain the placeholder, too.
    tool_calls: tuple[ClientCall, ...] | UnsetType = UNSET
    """Calls of client tools whose results are missing."""
    output: str
    """The text of the answer so far."""


class RunCancelled(RunEvent, tag="run.cancelled"):
    """The run was stopped."""

    reason: str
    """The person or the event that stopped the run."""
    output: str
    """The text of the answer so far."""


class RunFailed(RunEvent, tag="run.failed"):
    """The run has failed."""

    error: str
    """Why the run failed, for people."""
    code: str
    """Names the error for programs."""
