"""The JSON of the HTTP answers: chat completions and the events of a run."""

import json
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType, field

from hermes.types.events import FinishReason, UsageReported
from hermes.types.value import Value

_encode = msgspec.json.Encoder().encode


def encode(value: str | msgspec.Struct) -> bytes:
    """JSON on one line. What UTF-8 cannot carry becomes "?"."""
    try:
        return _encode(value)
    except UnicodeEncodeError:
        # A file name that is not UTF-8 decodes to lone surrogates.
        plain = msgspec.to_builtins(value)
        return json.dumps(plain, ensure_ascii=False).encode(errors="replace")


class WireValue(Value, omit_defaults=False):
    """Defaults are written too: clients look for them."""


class Usage(WireValue):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0

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
    arguments: str


class ClientCall(WireValue):
    """A call of a client tool."""

    id: str
    function: FunctionCall
    type: Literal["function"] = "function"
    index: int | UnsetType = UNSET
    """Only in a stream."""


class Delta(WireValue):
    role: Literal["assistant"] | UnsetType = UNSET
    content: str | UnsetType = UNSET
    reasoning_content: str | UnsetType = UNSET
    tool_calls: tuple[ClientCall, ...] | UnsetType = UNSET


class ChunkChoice(WireValue):
    index: int = 0
    delta: Delta = Delta()
    finish_reason: FinishReason | None = None


class Chunk(WireValue):
    id: str
    created: int
    model: str
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    choices: tuple[ChunkChoice, ...] = (ChunkChoice(),)
    usage: Usage | UnsetType | None = UNSET


class ToolUpdate(WireValue):
    tool: str
    call: str = field(name="toolCallId")
    status: Literal["running", "completed", "failed"]
    label: str | UnsetType = UNSET
    arguments: str | UnsetType = UNSET
    duration: float | UnsetType = UNSET
    result: str | UnsetType = UNSET


class NoticeUpdate(WireValue):
    text: str


class ErrorBody(WireValue):
    message: str
    code: str
    type: str


def error_type(status: int) -> str:
    """OpenAI's name for the kind of error that has this HTTP status."""
    if status == 429:
        return "rate_limit_error"
    return "server_error" if status >= 500 else "invalid_request_error"


class ErrorChunk(WireValue):
    error: ErrorBody


class AssistantReply(WireValue):
    content: str | None
    role: Literal["assistant"] = "assistant"
    tool_calls: tuple[ClientCall, ...] | UnsetType = UNSET


class Choice(WireValue):
    message: AssistantReply
    index: int = 0
    finish_reason: FinishReason = "stop"


class Completion(WireValue):
    id: str
    created: int
    model: str
    choices: tuple[Choice, ...]
    usage: Usage
    object: Literal["chat.completion"] = "chat.completion"


class RunEvent(WireValue, tag_field="event"):
    """The tag is the SSE event's name too."""

    run_id: str


class MessageDelta(RunEvent, tag="message.delta"):
    delta: str


class ReasoningText(RunEvent, tag="reasoning.delta"):
    delta: str


class SegmentEnd(RunEvent, tag="hermes.segment.ended"):
    pass


class SegmentDiscard(RunEvent, tag="hermes.segment.discarded"):
    from_seq: int


class ToolStart(RunEvent, tag="tool.started"):
    tool: str
    tool_call_id: str
    label: str
    arguments: str


class ToolProgressText(RunEvent, tag="tool.progress"):
    tool_call_id: str
    text: str


class ToolEnd(RunEvent, tag="tool.completed"):
    tool: str
    tool_call_id: str
    duration: float
    error: bool
    result: str


class ApprovalRequest(RunEvent, tag="approval.request"):
    id: str
    prompt: str
    choices: tuple[str, ...]


class QuestionRequest(RunEvent, tag="question.asked"):
    id: str
    prompt: str
    choices: tuple[str, ...]


class CompactionUpdate(RunEvent, tag="hermes.context.compacted"):
    messages: int


class NoticeEvent(RunEvent, tag="notice"):
    text: str


class UsageUpdate(RunEvent, tag="usage"):
    usage: Usage


class RunCompleted(RunEvent, tag="run.completed"):
    output: str
    usage: Usage
    finish_reason: FinishReason = "stop"


class RunSuspended(RunEvent, tag="run.suspended", kw_only=True):
    tool_calls: tuple[ClientCall, ...] | UnsetType = UNSET
    """Calls of client tools that wait for their results. They are before the answer, whose place in
    a frame is found from the end."""
    output: str


class RunCancelled(RunEvent, tag="run.cancelled"):
    reason: str
    output: str


class RunFailed(RunEvent, tag="run.failed"):
    error: str
    code: str
