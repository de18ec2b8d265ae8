"""Builds the answer of a turn for a client that reads it in one piece. A long text is not kept
in memory."""

from msgspec.structs import replace

from hermes.streaming.fold import EventFold, View
from hermes.streaming.outline import AnswerOutline
from hermes.streaming.sse import ANSWER_PLACEHOLDER
from hermes.types.events import AgentEvent, TextDelta, TurnFinished

LONG_ANSWER_CHARACTERS = 65_536
"""A text with more characters than this is not kept in memory. Its events are read again while it
is sent."""
_CONTENT = b'"content":"' + ANSWER_PLACEHOLDER


class PlainAnswer:
    """Computes the answer from the events of a turn, up to the first `TurnFinished`."""

    def __init__(self) -> None:
        self.end = 0
        """Number of the first `TurnFinished` event; 0 until it arrives."""
        self._early: list[tuple[int, AgentEvent]] = []
        """The events so far. They are passed to the `AnswerOutline` if the text becomes long."""
        self._outline = AnswerOutline()
        self._folder = EventFold()
        self._characters = 0
        self._dropped = False
        """Whether a part of the text was not passed to the `EventFold`."""

    def feed(self, seq: int, event: AgentEvent) -> None:
        """Adds an event. Events after the first `TurnFinished` are ignored, because they answer
        a later request."""
        if self.end:
            return
        if isinstance(event, TurnFinished):
            self.end = seq
        if isinstance(event, TextDelta) and not self._dropped:
            self._characters += len(event.text)
            if self._characters > LONG_ANSWER_CHARACTERS:
                self._drop()
        if not self._dropped:
            self._early.append((seq, event))
            self._folder.feed(seq, event)
            return
        self._outline.feed(seq, event)
        if not isinstance(event, TextDelta):
            self._folder.feed(seq, event)

    def _drop(self) -> None:
        """Stops keeping the text, and passes the earlier events to the `AnswerOutline`."""
        self._dropped = True
        for seq, event in self._early:
            self._outline.feed(seq, event)
        self._early.clear()

    @property
    def is_long(self) -> bool:
        """Whether the answer is too long to be kept here. Its text must then be read from the
        stored events."""
        return self._dropped and bool(self._outline.segments())

    def view(self) -> View:
        """Returns the state of the turn. A long text is replaced by `ANSWER_PLACEHOLDER`."""
        view = self._folder.view()
        if not self._dropped:
            return view
        place = (ANSWER_PLACEHOLDER.decode(),) if self.is_long else ()
        return replace(view, segments=place, current="")

    def segments(self) -> list[tuple[int, int]]:
        """Returns, for each segment of the answer, the numbers of its first and last text event."""
        return self._outline.segments()


def around_answer(completion: bytes) -> tuple[bytes, bytes]:
    """Returns the bytes of a completion before and after `ANSWER_PLACEHOLDER`."""
    # Quotes in a string are escaped, so no other field can be mistaken for the content.
    before, _, after = completion.partition(_CONTENT)
    return before + _CONTENT.removesuffix(ANSWER_PLACEHOLDER), after
