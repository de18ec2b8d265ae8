"""Describes the agent's current activity in one line, and the cost of a turn at its end."""

from typing import assert_never

from msgspec.structs import replace

from hermes.streaming.stdout import tool_label
from hermes.text.console import printable
from hermes.types.events import (
    AgentEvent,
    ContextCompacted,
    Notice,
    QuestionAsked,
    ReasoningDelta,
    SegmentDiscarded,
    SegmentEnded,
    TextDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnFinished,
    UsageReported,
)
from hermes.types.identity import CallId
from hermes.types.value import Value

SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
TURNS = 10
"""Number of steps of the spinner per second."""
STALL = 1.5
"""Seconds without new text after which the spinner is shown again."""


class Task(Value):
    """A running model call or tool call."""

    label: str
    since: float
    progress: str = ""

    def text(self, now: float) -> str:
        seconds = int(now - self.since)
        progress = f": {self.progress}" if self.progress else ""
        return f"{self.label}{progress}" + (f" · {seconds} s" if seconds else "")


class Activity:
    """Follows the events of a turn. The caller passes the time, in seconds."""

    def __init__(self, now: float) -> None:
        self._model = Task(label="thinking", since=now)
        self._spoke_at: float | None = None
        """The time at which text last arrived; None if the model is not writing."""
        self._tools: dict[CallId, Task] = {}

    def feed(self, event: AgentEvent, now: float) -> None:
        match event:
            case TextDelta():
                self._wait("waiting for the model", now)
                self._spoke_at = now
            case ReasoningDelta() | SegmentEnded() | SegmentDiscarded() | ContextCompacted():
                self._wait("thinking", now)
            case Notice():
                self._wait("waiting", now)
            case ToolStarted() | ToolProgress() | ToolFinished():
                self._work(event, now)
            case QuestionAsked() | UsageReported() | TurnFinished():
                pass
            case _:
                assert_never(event)

    def line(self, now: float) -> str:
        """Returns a line with the running tasks. It is empty while new text shows that the model
        works."""
        if self._spoke_at is not None and now - self._spoke_at < STALL:
            return ""
        tasks = list(self._tools.values()) or [self._model]
        going_on = ", ".join(task.text(now) for task in tasks)
        return f"{SPINNER[int(now * TURNS) % len(SPINNER)]} {going_on}"

    def _wait(self, label: str, now: float) -> None:
        self._spoke_at = None
        if self._model.label != label:
            self._model = Task(label=label, since=now)

    def _work(self, event: ToolStarted | ToolProgress | ToolFinished, now: float) -> None:
        self._spoke_at = None
        match event:
            case ToolStarted(call=call):
                self._tools[call] = Task(label=tool_label(event), since=now)
            case ToolProgress(call=call, text=text):
                if task := self._tools.get(call):
                    self._tools[call] = replace(task, progress=printable(" ".join(text.split())))
            case ToolFinished(call=call):
                self._tools.pop(call, None)
                self._model = Task(label="thinking", since=now)
            case _:
                assert_never(event)


def spent(usage: UsageReported | None, seconds: float) -> str:
    """Returns the time and the tokens of a turn, and its cost if the price is known."""
    parts = [f"{seconds:.1f} s"]
    if usage is not None:
        cached = f" ({usage.cached_tokens:,} cached)" if usage.cached_tokens else ""
        parts.append(f"{usage.prompt_tokens:,} tokens in{cached}")
        parts.append(f"{usage.completion_tokens:,} out")
        if usage.cost:
            parts.append(f"${usage.cost:.4f}" if usage.cost < 0.1 else f"${usage.cost:.2f}")
    return " · ".join(parts)
