"""What happens in running turns, live: one numbered log per turn, any number of readers.

Whoever writes never waits; a reader holds a cursor and gets what is new, in one piece. The log is a
cache: what a checkpoint has kept can be read from the store after the process is gone.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import anyio

from hermes.state.codec import Recorded, record
from hermes.types.events import (
    AgentEvent,
    ReasoningDelta,
    SegmentDiscarded,
    SegmentEnded,
    TextDelta,
    TurnFinished,
)
from hermes.types.identity import TurnId

EPOCH = 1_000_000
"""Numbers of one claim on a turn: the next claim's are higher than any that a reader has seen."""


class Log:
    """The events of one claim on a turn, numbered from `epoch * EPOCH + 1`."""

    def __init__(self, turn: TurnId) -> None:
        self.turn = turn
        self.readers = 0
        self.finished = False
        """No more will come: the turn is closed, or this process has let it go."""
        self._base = 0
        self._events: list[AgentEvent] = []
        self._kept = 0
        self._segment = 0
        self._changed = anyio.Event()

    def begin(self, epoch: int) -> None:
        self._base = epoch * EPOCH
        self._events = []
        self._kept = self._segment = 0
        self.finished = False

    @property
    def running(self) -> bool:
        """The turn runs here, now."""
        return self._base > 0 and not self.finished

    @property
    def seq(self) -> int:
        """Number of the newest event."""
        return self._base + len(self._events)

    def emit(self, event: AgentEvent) -> None:
        if isinstance(event, SegmentDiscarded) and not event.from_seq:
            event = SegmentDiscarded(from_seq=self._base + self._segment + 1)
        self._events.append(event)
        if isinstance(event, SegmentEnded | SegmentDiscarded):
            self._segment = len(self._events)
        self._wake()

    def end(self, last: Sequence[AgentEvent] = ()) -> None:
        """The turn is closed with these; what `unkept` was told of them is now true."""
        self._events += last
        self.finished = True
        self._wake()

    def open_text(self) -> str:
        """What has been said of the segment that is not finished."""
        tail = self._events[self._segment :]
        return "".join(event.text for event in tail if isinstance(event, TextDelta))

    def unkept(self, last: Sequence[AgentEvent] = ()) -> tuple[int, list[Recorded]]:
        """The events since the last checkpoint, and those about to end the turn, to be kept."""
        first = self._base + self._kept + 1
        return first, record(first, [*self._events[self._kept :], *last])

    def keep(self, seq: int) -> None:
        """A checkpoint holds everything up to `seq`."""
        self._kept = seq - self._base

    def read(self, after: int) -> list[tuple[int, AgentEvent]]:
        """What came after a number; neighbouring pieces of text as one."""
        start = max(after - self._base, 0)
        if start == len(self._events):
            return []
        merged: list[tuple[int, AgentEvent]] = []
        texts: list[str] = []
        kind: type[TextDelta | ReasoningDelta] = TextDelta
        for seq, event in enumerate(self._events[start:], self._base + start + 1):
            if isinstance(event, TextDelta | ReasoningDelta):
                if texts and type(event) is not kind:
                    merged.append((seq - 1, kind(text="".join(texts))))
                    texts = []
                kind = type(event)
                texts.append(event.text)
                continue
            if texts:
                merged.append((seq - 1, kind(text="".join(texts))))
                texts = []
            merged.append((seq, event))
        if texts:
            merged.append((self.seq, kind(text="".join(texts))))
        return merged

    async def changed(self) -> None:
        """Returns at the next event."""
        await self._changed.wait()

    def _wake(self) -> None:
        if self._changed.statistics().tasks_waiting:
            self._changed.set()
            self._changed = anyio.Event()


class Hub:
    """The logs of the turns that run here, or are about to."""

    def __init__(self) -> None:
        self._logs: dict[TurnId, Log] = {}
        self.on_unread: Callable[[TurnId], None] = lambda turn: None
        """Told when a turn's last reader has gone before the end."""

    def get(self, turn: TurnId) -> Log | None:
        return self._logs.get(turn)

    def begin(self, turn: TurnId, epoch: int) -> Log:
        log = self._logs.setdefault(turn, Log(turn))
        log.begin(epoch)
        return log

    def end(self, log: Log) -> None:
        """The turn no longer runs here, whether it was closed or not."""
        if not log.finished:
            log.end()
        if not log.readers:
            self._logs.pop(log.turn, None)

    @asynccontextmanager
    async def following(self, turn: TurnId) -> AsyncIterator[Log]:
        """The turn's log while somebody reads it, also before the turn has begun."""
        log = self._logs.setdefault(turn, Log(turn))
        log.readers += 1
        try:
            yield log
        finally:
            log.readers -= 1
            if not log.readers:
                if log.finished:
                    self._logs.pop(turn, None)
                else:
                    self.on_unread(turn)


def finished(events: Sequence[tuple[int, AgentEvent]]) -> TurnFinished | None:
    """How the turn ended, if these events say so."""
    last = events[-1][1] if events else None
    return last if isinstance(last, TurnFinished) else None
