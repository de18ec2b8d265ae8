"""A turn in a terminal: tokens as they come, or one JSON object per event."""

from typing import assert_never

from hermes.streaming.final import question_text, remark
from hermes.streaming.wire import encode
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

CUT = "— the connection to the model was cut; it starts again —"

_DIM, _RED, _YELLOW, _RESET = "\x1b[2m", "\x1b[31m", "\x1b[33m", "\x1b[0m"
_CONTROLS = {code: None for code in (*range(32), *range(127, 160)) if chr(code) not in "\t\n"}


class StdoutStream:
    """What to write for each event; in all it ends with one newline, or is empty."""

    def __init__(self, color: bool, tools: bool = True) -> None:
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
            case QuestionAsked():
                return self._line(question_text(event), _YELLOW)
            case Notice(text=text):
                return self._line(f"[{text}]", _DIM)
            case TurnFinished():
                words = remark(event)
                return self._line(words, _RED) if words else self._fresh()
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
        # Held until more comes, so that the end is one newline whatever the model says.
        self._held = text[len(shown) :]
        self._mid_line = self._mid_line or bool(shown)
        return begin + shown

    def _tool(self, event: ToolStarted | ToolFinished) -> str:
        match event:
            case ToolStarted(call=call, name=name, label=label):
                self._labels[call] = line = f"· {tool_label(name, label)}"
                if self._open_call is not None:
                    return ""
                begin = self._fresh()
                self._open_call, self._mid_line = call, True
                return begin + self._painted(line, _DIM)
            case ToolFinished(call=call):
                known = self._labels.pop(call, f"· {tool_label(event.name)}")
                failed = "failed, " if event.failed else ""
                rest = f" ({failed}{event.seconds:.1f} s)"
                color = _RED if event.failed else _DIM
                if self._open_call is None:
                    return self._line(known + rest, color)
                if self._open_call != call:
                    self._waiting += self._painted(known + rest, color) + "\n"
                    return ""
                return self._painted(rest, color) + self._fresh()
            case _:
                assert_never(event)

    def _line(self, text: str, color: str) -> str:
        return self._fresh() + self._painted(printable(text), color) + "\n"

    def _fresh(self) -> str:
        """Begins a line, and writes the tool lines that waited for one."""
        begin = ("\n" if self._mid_line else "") + self._waiting
        self._mid_line = self._speaking = False
        self._open_call, self._waiting, self._held = None, "", ""
        return begin

    def _painted(self, text: str, color: str) -> str:
        return f"{color}{text}{_RESET}" if self._color else text


class JsonLines:
    """One JSON object per event, each on a line."""

    def feed(self, event: AgentEvent) -> str:
        return encode(event).decode() + "\n"


def printable(text: str) -> str:
    """The text without what would steer the terminal."""
    return text.translate(_CONTROLS)


def tool_label(name: str, label: str = "") -> str:
    """A tool and what it works on, in one line."""
    return printable(" ".join(f"{name} {label}".split()))
