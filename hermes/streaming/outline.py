"""Writes the answer of a long turn without keeping its text in memory. The events are read twice:
first to find the text events of the answer, and then to write their texts."""

from hermes.streaming.fold import SEGMENT_SEPARATOR
from hermes.streaming.wire import encode
from hermes.types.events import (
    AgentEvent,
    SegmentDiscarded,
    SegmentEnded,
    TextDelta,
    TurnFinished,
    UsageReported,
)


class AnswerOutline:
    """Finds the events that contain the text of an answer, as an `EventFold` would show it."""

    def __init__(self) -> None:
        self.usage: UsageReported | None = None
        """Total usage of all model calls of the turn."""
        self._segments: list[tuple[int, int]] = []
        self._first = self._last = 0
        self._visible = False

    def feed(self, seq: int, event: AgentEvent) -> None:
        match event:
            case TextDelta(text=text):
                self._first = self._first or seq
                self._last = seq
                self._visible = self._visible or bool(text.strip())
            case SegmentEnded() | TurnFinished():
                if self._visible:
                    self._segments.append((self._first, self._last))
                self._open_segment()
            case SegmentDiscarded(from_seq=from_seq):
                self._open_segment()
                while self._segments and self._segments[-1][0] >= from_seq:
                    self._segments.pop()
            case UsageReported():
                self.usage = event if self.usage is None else self.usage + event
            case _:
                pass

    def segments(self) -> list[tuple[int, int]]:
        """Returns, for each segment of the answer, the numbers of its first and last text event."""
        return list(self._segments)

    def _open_segment(self) -> None:
        self._first = self._last = 0
        self._visible = False


class AnswerJson:
    """Encodes the text of an answer in pieces, as the content of a JSON string."""

    def __init__(self, segments: list[tuple[int, int]]) -> None:
        self._segments = segments
        self._place = 0
        self._begun = False

    def feed(self, seq: int, event: AgentEvent) -> bytes:
        """Returns the encoded text that the event adds to the answer."""
        while self._place < len(self._segments) and seq > self._segments[self._place][1]:
            self._place += 1
            self._begun = False
        if self._place == len(self._segments) or seq < self._segments[self._place][0]:
            return b""
        if not isinstance(event, TextDelta):
            return b""
        pause = SEGMENT_SEPARATOR if self._place and not self._begun else ""
        self._begun = True
        return encode(pause + event.text)[1:-1]
