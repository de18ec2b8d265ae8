"""A turn as a person sees it in a terminal."""

import time
from collections.abc import Callable, Sequence
from typing import Literal, assert_never

from rich.console import RenderableType
from rich.text import Text

from hermes.entry.terminal.markdown import render
from hermes.entry.terminal.page import Page
from hermes.entry.terminal.status import Status, spent
from hermes.streaming.final import end_remark, question_text
from hermes.streaming.stdout import CUT, outcome_text, tool_label
from hermes.text.console import printable
from hermes.text.incremental import IncrementalMarkdown, Piece, pieces
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

REDRAW_SECONDS = 1 / 15
"""Seconds between two drawings, at the least."""
IDLE = 0.1
"""Seconds after which the spinner turns."""
SHARE = 4
"""Drawing takes at most one part in so many of the time."""

DROP = "/stop drops the question"

BlockKind = Literal["words", "remark"]


class Screen:
    """Shows one turn: what is finished stands for good, what grows is drawn again."""

    def __init__(self, page: Page, clock: Callable[[], float] = time.monotonic) -> None:
        self._page = page
        self._clock = clock
        self._began = self._next_frame = clock()
        self._status = Status(self._began)
        self._text = IncrementalMarkdown()
        self._spoken = False
        """Some of the text is settled."""
        self._settled: list[RenderableType] = []
        """Not drawn yet."""
        self._above: BlockKind | None = None
        """What stands last."""
        self._labels: dict[CallId, str] = {}
        self._usage: UsageReported | None = None

    def show(self, event: AgentEvent) -> None:
        self._status.feed(event, self._clock())
        match event:
            case TextDelta(text=text):
                self._text.feed(printable(text))
            case SegmentEnded():
                self._end_text()
            case SegmentDiscarded():
                self._discard()
            case ToolStarted(call=call):
                self._labels[call] = tool_label(event)
            case ToolFinished() | QuestionAsked() | ContextCompacted() | Notice():
                self._remark(*self._lines(event))
            case UsageReported():
                self._usage = event if self._usage is None else self._usage + event
            case TurnFinished():
                self._finish(event)
            case ReasoningDelta() | ToolProgress():
                pass
            case _:
                assert_never(event)

    def tell(self, text: str) -> None:
        """What the gateway says itself, outside any turn."""
        self._end_text()
        self._settled += self._words(pieces(printable(text)))
        self._page.put(*self._settled)
        self._settled = []

    def note(self, text: str) -> None:
        """What is said while the answer goes on, above what of it still grows."""
        self._page.note(f"· {printable(text)}")
        self._next_frame = self._clock()

    def remark(self, text: str) -> None:
        """The last word where there is no answer, or no more of it."""
        self._remark(_dim(text))
        self._page.put(*self._settled)
        self._settled = []

    def draw(self) -> float:
        """Brings the page up to date; in how many seconds it wants to be called again."""
        now = self._clock()
        if now < self._next_frame:
            return self._next_frame - now
        self._settle(self._text.settled())
        tail = self._words(self._text.open())
        if line := self._status.line(now):
            if tail or self._above == "words":
                tail.append(Text())
            tail.append(Text(line, "dim", no_wrap=True, overflow="ellipsis"))
        if typed := self._page.typed:
            tail.append(Text(f"› {printable(typed)}", no_wrap=True, overflow="ellipsis"))
        self._page.draw(self._settled, tail)
        self._settled = []
        self._next_frame = now + max(REDRAW_SECONDS, SHARE * (self._clock() - now))
        return IDLE

    def _finish(self, end: TurnFinished) -> None:
        self._end_text()
        if self._labels:
            self._remark(*(Text(f"✗ {one} (not finished)", "red") for one in self._labels.values()))
        match end.outcome:
            case "stopped":
                why = "" if end.text in ("", "by you") else f": {end.text}"
                self._remark(Text(printable(f"Stopped{why}."), "yellow"))
            case "failed":
                self._remark(Text(printable(end_remark(end)), "red"))
            case "completed":
                if words := end_remark(end):
                    self._remark(Text(words, "yellow"))
            case "suspended":
                pass
            case _:
                assert_never(end.outcome)
        if end.outcome != "suspended":
            self._remark(_dim(spent(self._usage, self._clock() - self._began)))
        self._page.put(*self._settled)
        self._settled = []

    def _end_text(self) -> None:
        self._settle(self._text.settled() + self._text.open())
        self._text, self._spoken = IncrementalMarkdown(), False

    def _discard(self) -> None:
        if self._spoken:
            self._end_text()
            self._remark(Text(CUT, "yellow"))
        self._text = IncrementalMarkdown()

    def _settle(self, found: Sequence[Piece]) -> None:
        if found:
            self._settled += self._words(found)
            self._above, self._spoken = "words", True

    def _words(self, found: Sequence[Piece]) -> list[RenderableType]:
        """The pieces with the blank lines before them."""
        shown: list[RenderableType] = []
        for piece in found:
            first = not (self._spoken or shown)
            if self._above is not None if first else piece.gap:
                shown.append(Text())
            shown.append(render(piece))
        return shown

    def _lines(
        self, event: ToolFinished | QuestionAsked | ContextCompacted | Notice
    ) -> Sequence[Text]:
        match event:
            case ToolFinished(call=call):
                return [_tool(event, self._labels.pop(call, tool_label(event)))]
            case QuestionAsked(call=call):
                self._labels.pop(call, None)
                return _question(event)
            case ContextCompacted(messages=messages):
                return [_dim(f"{messages} earlier messages were summarised")]
            case Notice(text=text):
                return [_dim(text)]
            case _:
                assert_never(event)

    def _remark(self, *lines: Text) -> None:
        self._end_text()
        if self._above == "words":
            self._settled.append(Text())
        self._settled += lines
        self._above = "remark"


def _dim(text: str) -> Text:
    return Text(f"· {printable(text)}", "dim")


def _tool(event: ToolFinished, label: str) -> Text:
    line = f"{label}{outcome_text(event)}"
    return Text(f"✗ {line}", "red") if event.failed else _dim(line)


def _question(event: QuestionAsked) -> list[Text]:
    if not event.choices:
        words = question_text(event) if event.kind == "approval" else event.prompt
        return [Text(f"? {printable(words)}", "bold yellow"), Text(f"  {DROP}", "dim")]
    choices = [
        Text(f"  {number}. {printable(choice)}") for number, choice in enumerate(event.choices, 1)
    ]
    hint = Text(f"  a number picks one, or answer in your own words; {DROP}", "dim")
    return [Text(f"? {printable(event.prompt)}", "bold yellow"), *choices, hint]
