"""What happened in a turn, in order: the one stream that every renderer folds."""

from typing import Literal

from hermes.types.identity import CallId, TurnId
from hermes.types.messages import ToolCall
from hermes.types.value import Value


class TextDelta(Value, tag=True):
    text: str


class ReasoningDelta(Value, tag=True):
    text: str


class SegmentEnded(Value, tag=True):
    """The model stopped speaking; tools or the end follow."""


class SegmentDiscarded(Value, tag=True):
    """The text since `from_seq` was cut off and is said anew, in other words."""

    from_seq: int


class ToolStarted(Value, tag=True):
    call: CallId
    name: str
    label: str = ""
    """One line for people: the path, the command or the question of the call."""
    arguments: str = ""
    """The model's JSON arguments, with long texts cut and secrets masked."""


class ToolProgress(Value, tag=True):
    call: CallId
    text: str


class ToolFinished(Value, tag=True):
    call: CallId
    name: str
    seconds: float = 0.0
    failed: bool = False
    result: str = ""
    """The beginning of the result, with secrets masked."""


class QuestionAsked(Value, tag=True):
    """The turn waits for a person: a clarification or an approval."""

    id: str
    call: CallId
    kind: Literal["question", "approval"]
    prompt: str
    choices: tuple[str, ...] = ()


class ContextCompacted(Value, tag=True):
    """The middle of the conversation was summarised for the model; it is kept in the store."""

    messages: int
    """That the summary stands for."""


class UsageReported(Value, tag=True):
    prompt_tokens: int
    """All that was read, from a cache too."""
    completion_tokens: int
    cached_tokens: int = 0
    """Of the prompt, read from the provider's cache."""
    cost: float | None = None
    """Dollars; None where the price is not known."""

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
    """A remark of the gateway: never part of the answer or of the transcript."""

    text: str
    lasting: bool = False
    """Worth telling also to who only sees the end: it is sent behind the answer."""


FinishReason = Literal["stop", "length", "content_filter", "tool_calls"]
"""Why the model stopped, in the words of OpenAI's chat completions."""


class TurnFinished(Value, tag=True):
    outcome: Literal["completed", "suspended", "stopped", "failed"]
    text: str = ""
    """Why it stopped or failed, for people."""
    code: str = ""
    """Why it failed, for programs: `rate_limited`, `auth_failed`, `deadline` …"""
    status: int = 500
    """The HTTP status of an API request whose turn failed like this."""
    retry_after: float | None = None
    """Seconds after which a new attempt makes sense; None when that is not known."""
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
    """An event of a turn with its number. Numbers rise within a turn, with gaps."""

    turn: TurnId
    seq: int
    """The number of the event; of joined pieces of text, the number of the last piece."""
    event: AgentEvent
