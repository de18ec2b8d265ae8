"""Renders a turn for stdout: live text, the answer alone, or one JSON object per event."""

from collections.abc import Mapping
from typing import NamedTuple, assert_never

import msgspec

from hermes.streaming.approval_prompt import approval_text, barred
from hermes.streaming.final import end_remark, question_text
from hermes.streaming.wire import encode
from hermes.text.console import printable, printable_json, printable_line
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

CUT = "— the connection to the model was cut; it starts again —"

QUESTION_TOOL = "clarify"
"""The tool that asks a question. Its calls get no line, because the question itself is shown."""

LABEL_WIDTH = 100
"""Maximum number of characters in the label of a tool call."""
ARGUMENT_WIDTH = 40
"""Maximum number of characters of one argument in the label."""
RESULT_WIDTH = 80
"""Maximum number of characters of a call's result, which is shown after the label."""
DIFF_INDENT = "  "
"""Spaces before each line of a diff."""

_DIM, _RED, _YELLOW, _RESET = "\x1b[2m", "\x1b[31m", "\x1b[33m", "\x1b[0m"
_GREEN = "\x1b[32m"


class StdoutStream:
    """Returns the text to write for each event. The whole output ends with one newline or is
    empty."""

    def __init__(self, color: bool, tools: bool = True, answers: bool = True) -> None:
        """`answers` says whether the person can type the answer to a question here."""
        self._answers = answers
        self._color = color
        self._tools = tools
        self._labels: dict[CallId, str] = {}
        self._open_call: CallId | None = None
        self._waiting = ""
        self._held = ""
        self._mid_line = False
        self._said = False
        self._speaking = False

    def feed(self, event: AgentEvent) -> str:
        match event:
            case TextDelta(text=text):
                return self._text(printable(text))
            case ToolStarted() | ToolFinished():
                return self._tool(event) if self._tools else ""
            case SegmentDiscarded():
                self._said = False
                return self._line(CUT, _YELLOW)
            case QuestionAsked(call=call):
                self._labels.pop(call, None)
                return self._line(asked_text(event, answers=self._answers), _YELLOW)
            case Notice(text=text):
                return self._line(f"[{text}]", _DIM)
            case TurnFinished():
                self._labels.pop(self._open_call or CallId(""), None)
                unfinished = unfinished_labels(event, self._labels)
                left = (self._line(one, _RED) for one in unfinished)
                words = end_remark(event)
                return "".join(left) + (self._line(words, _RED) if words else self._fresh())
            case SegmentEnded():
                self._speaking, self._held = False, ""
            case ReasoningDelta() | ToolProgress() | ContextCompacted() | UsageReported():
                pass
            case _:
                assert_never(event)
        return ""

    def _text(self, text: str) -> str:
        text = self._held + text
        begin = ""
        if not self._speaking:
            text = text.lstrip("\n")
            if not text.strip():
                self._held = text
                return ""
            begin = self._fresh() + ("\n" if self._said else "")
            self._said = self._speaking = True
        shown = text.rstrip("\n")
        # Newlines are held back until more text follows, so that the output ends with exactly one
        # newline.
        self._held = text[len(shown) :]
        self._mid_line = self._mid_line or bool(shown)
        return begin + shown

    def _tool(self, event: ToolStarted | ToolFinished) -> str:
        match event:
            case ToolStarted(call=call, name=name):
                self._labels[call] = line = f"· {tool_label(event)}"
                if self._open_call is not None or name == QUESTION_TOOL:
                    return ""
                begin = self._fresh()
                self._open_call, self._mid_line = call, True
                return begin + self._painted(line, _DIM)
            case ToolFinished(call=call):
                known = self._labels.pop(call, f"· {tool_label(event)}")
                rest = outcome_text(event)
                color = _RED if event.failed else _DIM
                changes = "".join(f"{self._changed(line)}\n" for line in diff_lines(event))
                if self._open_call is None:
                    return self._line(known + rest, color) + changes
                if self._open_call != call:
                    self._waiting += self._painted(known + rest, color) + "\n" + changes
                    return ""
                self._waiting = changes + self._waiting
                return self._painted(rest, color) + self._fresh()
            case _:
                assert_never(event)

    def _line(self, text: str, color: str) -> str:
        return self._fresh() + self._painted(printable(text), color) + "\n"

    def _fresh(self) -> str:
        """Begins a new line, and returns the tool lines that waited for a new line."""
        begin = ("\n" if self._mid_line else "") + self._waiting
        self._mid_line = self._speaking = False
        self._open_call, self._waiting, self._held = None, "", ""
        return begin

    def _changed(self, line: str) -> str:
        """Returns a line of a diff, in its color."""
        color = {"+": _GREEN, "-": _RED}.get(line.removeprefix(DIFF_INDENT)[:1], _DIM)
        return self._painted(line, color)

    def _painted(self, text: str, color: str) -> str:
        return f"{color}{text}{_RESET}" if self._color else text


class SplitOutput(NamedTuple):
    """The text that an event adds to the answer, and the text that it adds to stderr."""

    answer: str = ""
    aside: str = ""


class SplitStream:
    """Separates the answer from all other output. The text of the answer is returned one segment at
    a time, when the segment has ended."""

    def __init__(self, answers: bool = True) -> None:
        """`answers` says whether the person can type the answer to a question here."""
        self._answers = answers
        self._labels: dict[CallId, str] = {}
        self._text = ""
        self._said = False

    def feed(self, event: AgentEvent) -> SplitOutput:
        match event:
            case TextDelta(text=text):
                self._text += printable(text)
            case SegmentEnded():
                return SplitOutput(self._settled())
            case SegmentDiscarded():
                self._text = ""
                return _aside(CUT)
            case ToolStarted(call=call):
                self._labels[call] = tool_label(event)
            case ToolFinished(call=call):
                line = f"· {self._labels.pop(call, tool_label(event))}{outcome_text(event)}"
                return _aside(line, *diff_lines(event))
            case QuestionAsked(call=call):
                self._labels.pop(call, None)
                return _aside(asked_text(event, answers=self._answers))
            case Notice(text=text):
                return _aside(f"[{text}]")
            case TurnFinished():
                left = (f"· {one}" for one in unfinished_labels(event, self._labels))
                return SplitOutput(self._settled(), _aside(*left, end_remark(event)).aside)
            case ReasoningDelta() | ToolProgress() | ContextCompacted() | UsageReported():
                pass
            case _:
                assert_never(event)
        return SplitOutput()

    def _settled(self) -> str:
        text, self._text = self._text.strip("\n"), ""
        if not text.strip():
            return ""
        begin, self._said = "\n" if self._said else "", True
        return f"{begin}{text}\n"


def _aside(*lines: str) -> SplitOutput:
    return SplitOutput(aside="".join(f"{printable(line)}\n" for line in lines if line))


class Session(Value, tag=True):
    """The first JSON line, which names the conversation so that it can be resumed."""

    name: str
    """The conversation's name, which `hermes chat --resume` accepts."""


class JsonLines:
    """Renders each event as a JSON object on one line."""

    def feed(self, event: AgentEvent | Session) -> str:
        return printable_json(encode(event).decode()) + "\n"


def asked_text(event: QuestionAsked, *, answers: bool) -> str:
    """Returns the question. `answers` says whether the person can type the answer here."""
    if event.kind == "question":
        return question_text(event)
    return approval_text(event) if answers else barred(event.prompt)


def unfinished_labels(end: TurnFinished, running: Mapping[CallId, str]) -> list[str]:
    """Returns a line for each call that the end of the turn cut off. If the turn is suspended, its
    calls wait for the person, so there is no line."""
    if end.outcome == "suspended":
        return []
    return [f"{label} (not finished)" for label in running.values()]


def tool_label(event: ToolStarted | ToolFinished) -> str:
    """Returns a line for a call. For a call that starts, the line is a text such as `terminal make
    all timeout=5`. For a finished call, the line is the name of the tool."""
    if isinstance(event, ToolFinished):
        return _one_line(event.name, LABEL_WIDTH)
    parts = [event.name, event.label]
    for name, value in _arguments(event).items():
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        # The argument that the label already shows is skipped.
        if not text.lstrip('["').startswith(event.label.removesuffix("…") or "\0"):
            parts.append(f"{name}={_one_line(text, ARGUMENT_WIDTH)}")
    return _one_line(" ".join(parts), LABEL_WIDTH)


def _arguments(event: ToolStarted) -> dict[str, object]:
    try:
        return msgspec.json.decode(event.arguments or "{}", type=dict[str, object])
    except msgspec.DecodeError:
        return {}


def outcome_text(event: ToolFinished) -> str:
    """Describes how a call ended, as text after its label: ` (failed, 0.1 s): No such file.`"""
    failed = "failed, " if event.failed else ""
    # If there is a diff, only the first line of the result is shown, because the other lines repeat
    # the diff.
    said = event.result.partition("\n")[0] if event.diff else event.result
    result = f": {_one_line(said, RESULT_WIDTH)}" if said else ""
    return f" ({failed}{event.seconds:.1f} s){result}"


def diff_lines(event: ToolFinished) -> list[str]:
    """Returns the indented lines of the call's diff, without characters that control a terminal."""
    lines = event.diff.split("\n") if event.diff else []
    clean = (printable_line(line.removesuffix("\r")).expandtabs(4) for line in lines)
    return [DIFF_INDENT + line for line in clean]


def _one_line(text: str, width: int) -> str:
    line = printable(" ".join(text.split()))
    return line if len(line) <= width else line[: width - 1] + "…"
