"""Draws one turn in a terminal while it runs."""

import time
from collections.abc import Callable, Sequence
from typing import Literal, assert_never

from msgspec.structs import replace
from rich.console import Group, RenderableType
from rich.text import Text

from hermes.entry.terminal.activity import Activity, spent
from hermes.entry.terminal.live_output import LiveOutput
from hermes.entry.terminal.markdown import Margin, render
from hermes.entry.terminal.protocols import MARK
from hermes.streaming.approval_prompt import APPROVAL_BAR, choice_lines
from hermes.streaming.final import end_remark
from hermes.streaming.stdout import (
    CUT,
    DIFF_INDENT,
    diff_lines,
    outcome_text,
    tool_label,
    unfinished_labels,
)
from hermes.text.console import printable
from hermes.text.incremental import IncrementalMarkdown, Piece, pieces
from hermes.text.quantity import counted
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
"""Minimum number of seconds between two drawings."""
IDLE = 0.1
"""Seconds after which the spinner is drawn again."""
SHARE = 4
"""Length of the pause after a drawing, as a multiple of the time that the drawing took."""
STOP = "Esc stops"

DIFF_STYLES = {"+": "green", "-": "red"}
"""Styles of the lines of a diff, by their first character."""
DROP = "/stop drops the question"

BlockKind = Literal["words", "remark"]


class LiveScreen:
    """Shows one turn: complete parts are written once, the growing part is redrawn."""

    def __init__(self, output: LiveOutput, clock: Callable[[], float] = time.monotonic) -> None:
        self._output = output
        self._clock = clock
        self._began = self._next_frame = clock()
        self._activity = Activity(self._began)
        self._text = IncrementalMarkdown()
        self._spoken = False
        """Whether permanent lines already contain the beginning of the current text."""
        self._settled: list[RenderableType] = []
        """Permanent lines that are not written yet."""
        self._above: BlockKind | None = None
        """The kind of the last permanent line: a part of the answer (`words`) or a remark. None if
        there is no permanent line yet."""
        self._labels: dict[CallId, str] = {}
        """The line that describes each running call."""
        self._targets: dict[CallId, str] = {}
        """Maps each running call to a short line about the call, with only its first argument."""
        self._usage: UsageReported | None = None

    def show_question(self, text: str) -> None:
        lines = printable(text).split("\n")
        asked = Text.assemble((MARK, "bold cyan"), f"\n{' ' * len(MARK)}".join(lines))
        self._output.put(Text(), asked)

    def show(self, event: AgentEvent) -> None:
        self._activity.feed(event, self._clock())
        match event:
            case TextDelta(text=text):
                self._text.feed(printable(text))
            case SegmentEnded():
                self._end_text()
            case SegmentDiscarded():
                self._discard()
            case ToolStarted(call=call):
                self._labels[call] = tool_label(event)
                self._targets[call] = tool_label(replace(event, arguments=""))
            case ToolFinished() | ContextCompacted() | Notice():
                self._remark(*self._lines(event))
            case QuestionAsked(call=call):
                self._labels.pop(call, None)
                self._remark(*(_question(event) if event.kind == "question" else _approval(event)))
            case UsageReported():
                self._usage = event if self._usage is None else self._usage + event
            case TurnFinished():
                self._finish(event)
            case ReasoningDelta() | ToolProgress():
                pass
            case _:
                assert_never(event)

    def show_reply(self, text: str) -> None:
        """Shows a reply of the gateway itself, as Markdown."""
        self._end_text()
        self._settled += self._words(pieces(printable(text)))
        self._output.put(*self._settled)
        self._settled = []

    def note(self, text: str) -> None:
        """Shows a notice above the part of the answer that still grows."""
        self._output.note(f"· {printable(text)}")
        self._next_frame = self._clock()

    def remark(self, text: str) -> None:
        """Shows the reason why there is no answer, or why it is incomplete."""
        self._remark(_dim(text))
        self._output.put(*self._settled)
        self._settled = []

    def draw(self) -> float:
        """Updates the output. Returns the seconds until the next call."""
        now = self._clock()
        if now < self._next_frame:
            return self._next_frame - now
        self._settle(self._text.settled())
        tail = self._words(self._text.open())
        lines = [line for line in (self._activity.line(now), self._output.status(STOP)) if line]
        if lines and (tail or self._above == "words"):
            tail.append(Text())
        tail += [Text(line, "dim", no_wrap=True, overflow="ellipsis") for line in lines]
        if typed := self._output.typed:
            # The line is not cut at its end, because the person types there.
            tail.append(Text(f"{MARK}{printable(typed)}", overflow="fold"))
        self._output.draw(self._settled, tail)
        self._settled = []
        self._next_frame = now + max(REDRAW_SECONDS, SHARE * (self._clock() - now))
        return IDLE

    def _finish(self, end: TurnFinished) -> None:
        self._end_text()
        if unfinished := unfinished_labels(end, self._labels):
            self._remark(*(Text(f"✗ {one}", "red") for one in unfinished))
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
        self._output.put(*self._settled)
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
        """Returns the rendered pieces, with the blank lines between them."""
        shown: list[RenderableType] = []
        for piece in found:
            first = not (self._spoken or shown)
            if self._above is not None if first else piece.gap:
                shown.append(Text())
            shown.append(render(piece))
        return shown

    def _lines(self, event: ToolFinished | ContextCompacted | Notice) -> Sequence[Text]:
        match event:
            case ToolFinished(call=call):
                label = self._labels.pop(call, tool_label(event))
                if event.diff and call in self._targets:
                    # The arguments are left out, because the diff says more.
                    label = self._targets[call]
                return [_tool(event, label), *map(_changed, diff_lines(event))]
            case ContextCompacted(messages=messages):
                were = "was" if messages == 1 else "were"
                return [_dim(f"{counted(messages, 'earlier message')} {were} summarised")]
            case Notice(text=text):
                return [_dim(text)]
            case _:
                assert_never(event)

    def _remark(self, *lines: RenderableType) -> None:
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


def _changed(line: str) -> Text:
    """Formats a line of a diff."""
    style = DIFF_STYLES.get(line.removeprefix(DIFF_INDENT)[:1], "dim")
    return Text(line, style, no_wrap=True, overflow="ellipsis")


def _question(event: QuestionAsked) -> list[Text]:
    if not event.choices:
        return [Text(f"? {printable(event.prompt)}", "bold yellow"), Text(f"  {DROP}", "dim")]
    choices = [
        Text(f"  {number}. {printable(choice)}") for number, choice in enumerate(event.choices, 1)
    ]
    hint = Text(f"  a number picks one, or answer in your own words; {DROP}", "dim")
    return [Text(f"? {printable(event.prompt)}", "bold yellow"), *choices, hint]


def _approval(event: QuestionAsked) -> list[RenderableType]:
    """Returns the approval with a bar before each of its lines, also before wrapped lines."""
    inside: list[RenderableType] = []
    for piece in pieces(printable(event.prompt)):
        inside += [Text(), render(piece)] if piece.gap and inside else [render(piece)]
    choices, *hints = choice_lines(event)
    inside += [Text(), Text(choices, "bold"), *(Text(hint, "dim") for hint in hints)]
    bar = Text(APPROVAL_BAR, "bold yellow")
    return [Margin(Group(*inside), bar, bar)]
