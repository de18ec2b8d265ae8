"""The events of a turn. Every output (a terminal, a chat or an HTTP response) is drawn from these
events."""

from typing import Literal

from hermes.types.identity import CallId, TurnId
from hermes.types.messages import ToolCall
from hermes.types.value import Value


class TextDelta(Value, tag=True):
    """The next piece of the answer."""

    text: str
    """The text of the piece."""


class ReasoningDelta(Value, tag=True):
    """The next piece of the model's reasoning."""

    text: str
    """The text of the piece."""


class SegmentEnded(Value, tag=True):
    """The model has ended a piece of text. Tool calls or the end of the turn follow."""


class SegmentDiscarded(Value, tag=True):
    """The text of all earlier events whose number is `from_seq` or higher is no longer valid,
    because the answer was cut off. A new attempt follows."""

    from_seq: int
    """The lowest number whose text is no longer valid. There may be no event with exactly this
    number."""


class ToolStarted(Value, tag=True):
    """A call of a tool has started."""

    call: CallId
    """The id of the call."""
    name: str
    """The name of the tool."""
    label: str = ""
    """One line that describes the call for people, such as its path or its command."""
    arguments: str = ""
    """The model's JSON arguments, with long texts cut and secrets redacted."""


class ToolProgress(Value, tag=True):
    """A running tool reports its progress."""

    call: CallId
    """The id of the call."""
    text: str
    """The latest output of the tool."""


class ToolFinished(Value, tag=True):
    """A call of a tool has ended."""

    call: CallId
    """The id of the call."""
    name: str
    """The name of the tool."""
    seconds: float = 0.0
    """Duration of the call in seconds."""
    failed: bool = False
    """Whether the call failed."""
    result: str = ""
    """The beginning of the result, with secrets redacted."""
    diff: str = ""
    """The change that the call made to a text file: the beginning of a unified diff, with secrets
    redacted. It is empty if there is no change to show."""


class QuestionAsked(Value, tag=True):
    """The turn waits for a person to answer a question or to approve a call."""

    id: str
    """The id of the question."""
    call: CallId
    """The id of the tool call that asks."""
    kind: Literal["question", "approval"]
    """Whether the agent asks for an answer or for an approval."""
    prompt: str
    """The question."""
    choices: tuple[str, ...] = ()
    """Answers to choose from; empty for a free answer."""
    detail: str = ""
    """The exact action that an approval permits, with secrets redacted."""
    reason: str = ""
    """Why the action needs approval."""
    expires_at: float = 0.0
    """The time at which the question expires, in seconds since 1970."""


class ContextCompacted(Value, tag=True):
    """A summary has replaced the middle of the conversation in the model's context. The store keeps
    all messages."""

    messages: int
    """Number of messages that the summary replaces."""


class UsageReported(Value, tag=True):
    """The tokens and the cost of one model call."""

    prompt_tokens: int
    """Tokens of the whole prompt, including those from a cache."""
    completion_tokens: int
    """Tokens that the model wrote."""
    cached_tokens: int = 0
    """Tokens of the prompt that were read from the provider's cache."""
    cost: float | None = None
    """Cost of the call in dollars; None if the price is not known."""

    def __add__(self, other: "UsageReported") -> "UsageReported":
        known = self.cost is not None and other.cost is not None
        return UsageReported(
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            cost=(self.cost or 0.0) + (other.cost or 0.0) if known else None,
        )


NO_USAGE = UsageReported(prompt_tokens=0, completion_tokens=0, cost=0.0)


class Notice(Value, tag=True):
    """A remark of the gateway. It is never part of the answer or the transcript."""

    text: str
    """The text of the remark."""
    lasting: bool = False
    """Whether the notice is also sent after the answer, for people who do not watch the stream."""


FinishReason = Literal["stop", "length", "content_filter", "tool_calls"]
"""Why the model stopped, in the words of OpenAI's chat completions."""


class TurnFinished(Value, tag=True):
    """The turn has ended, or it waits for a person or for client tools."""

    outcome: Literal["completed", "suspended", "stopped", "failed"]
    """How the turn ended; a `suspended` turn waits for a person or for client tools."""
    text: str = ""
    """Why the turn stopped or failed, as a text for people."""
    code: str = ""
    """Why the turn failed, as a code for programs: `rate_limited`, `auth_failed`, `deadline` …"""
    status: int = 500
    """The HTTP status of the response to an API request whose turn failed with this `code`."""
    retry_after: float | None = None
    """Seconds after which a new attempt makes sense; None if unknown."""
    finish_reason: FinishReason = "stop"
    """Why the model ended the answer; `tool_calls` if a suspended turn waits for `calls`."""
    calls: tuple[ToolCall, ...] = ()
    """Calls of client tools that a suspended turn waits for."""


AgentEvent = (
    TextDelta
    | ReasoningDelta
    | SegmentEnded
    | SegmentDiscarded
    | ToolStarted
    | ToolProgress
    | ToolFinished
    | QuestionAsked
    | ContextCompacted
    | UsageReported
    | Notice
    | TurnFinished
)


class Envelope(Value):
    """An event of a turn and its number. Numbers increase within a turn, with gaps."""

    turn: TurnId
    seq: int
    """The number of the event. If several pieces of text were joined into one event, this is the
    number of the last piece."""
    event: AgentEvent
