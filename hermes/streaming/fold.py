"""Computes the state of a turn from its events."""

from typing import assert_never

import msgspec

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

SEGMENT_SEPARATOR = "\n\n"
"""The text between two segments of an answer. The text of each model call is one segment."""


class ToolLine(Value):
    """One tool call, for display."""

    call: CallId
    name: str
    label: str = ""
    progress: str = ""
    """The last progress text of the call."""
    seconds: float | None = None
    """How long the call took; None while it runs."""
    failed: bool = False


class View(Value):
    segments: tuple[str, ...] = ()
    """Finished segments that contain text, in order."""
    current: str = ""
    """The text of the unfinished segment."""
    tools: tuple[ToolLine, ...] = ()
    questions: tuple[QuestionAsked, ...] = ()
    """Questions that are not answered yet."""
    notices: tuple[Notice, ...] = ()
    usage: UsageReported | None = None
    """Total usage of all model calls of the turn."""
    outcome: TurnFinished | None = None


class EventFold:
    """Computes the state of a turn from its events. `feed` adds an event in constant time, and
    `view()` returns the state."""

    def __init__(self, view: View | None = None) -> None:
        view = view or View()
        self._segments = [(-1, text) for text in view.segments]
        self._current = [view.current] if view.current else []
        self._start = -1
        self._tools = {line.call: line for line in view.tools}
        self._questions = {question.call: question for question in view.questions}
        self._notices = list(view.notices)
        self._usage = view.usage
        self._outcome = view.outcome

    def feed(self, seq: int, event: AgentEvent) -> None:
        match event:
            case TextDelta(text=text):
                self._add_text(seq, text)
            case SegmentEnded():
                self._end_segment()
            case SegmentDiscarded(from_seq=from_seq):
                self._discard(from_seq)
            case ToolStarted() | ToolProgress() | ToolFinished():
                self._update_tool(event)
            case QuestionAsked(call=call):
                self._questions[call] = event
            case UsageReported():
                self._usage = event if self._usage is None else self._usage + event
            case Notice():
                self._notices.append(event)
            case TurnFinished():
                self._end_segment()
                self._outcome = event
            case ReasoningDelta() | ContextCompacted():
                pass
            case _:
                assert_never(event)

    def view(self) -> View:
        if len(self._current) > 1:
            self._current = ["".join(self._current)]
        return View(
            segments=tuple(text for _, text in self._segments),
            current="".join(self._current),
            tools=tuple(self._tools.values()),
            questions=tuple(self._questions.values()),
            notices=tuple(self._notices),
            usage=self._usage,
            outcome=self._outcome,
        )

    def _add_text(self, seq: int, text: str) -> None:
        if not self._current:
            self._start = seq
            self._resume()
        self._current.append(text)

    def _resume(self) -> None:
        if self._outcome is not None and self._outcome.outcome == "suspended":
            self._outcome = None

    def _end_segment(self) -> None:
        text = "".join(self._current)
        self._current = []
        if text.strip():
            self._segments.append((self._start, text))

    def _discard(self, from_seq: int) -> None:
        self._current = []
        # The segment to discard may already be finished. This happens if the process crashed after
        # the end of the segment and before its commit.
        while self._segments and self._segments[-1][0] >= from_seq:
            self._segments.pop()

    def _update_tool(self, event: ToolStarted | ToolProgress | ToolFinished) -> None:
        self._resume()
        line = self._tools.get(event.call)
        match event:
            case ToolStarted():
                self._questions.pop(event.call, None)
                line = ToolLine(call=event.call, name=event.name, label=event.label)
            case ToolProgress():
                line = line and msgspec.structs.replace(line, progress=event.text)
            case ToolFinished(seconds=seconds, failed=failed):
                self._questions.pop(event.call, None)
                line = line or ToolLine(call=event.call, name=event.name)
                line = msgspec.structs.replace(line, seconds=seconds, failed=failed)
            case _:
                assert_never(event)
        if line is not None:
            self._tools[event.call] = line


def answer(view: View) -> str:
    """Returns the text of the answer so far."""
    current = (view.current,) if view.current.strip() else ()
    return SEGMENT_SEPARATOR.join(view.segments + current)
