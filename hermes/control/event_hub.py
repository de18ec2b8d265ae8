"""The events of running turns, in memory: one numbered log per turn, with any number of readers.

A turn never waits for a reader. A reader has a cursor, and gets new events as soon as they are in
the log. The log is a cache: after the process has ended, the events up to the last checkpoint can
be read from the store.
"""

import asyncio
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from hermes.control.remote_events import RemoteEvents
from hermes.state.codec import TEXT_PIECE, Recorded, record
from hermes.state.turns import EVENTS_PER_CLAIM
from hermes.types.events import (
    NO_USAGE,
    AgentEvent,
    Notice,
    ReasoningDelta,
    SegmentDiscarded,
    SegmentEnded,
    TextDelta,
    UsageReported,
)
from hermes.types.identity import TurnId

READ_EVENTS = 1024
"""Maximum number of events that are read for a reader at a time. Neighbouring texts among them are
then joined."""
READ_JOINED = 64
"""Maximum number of events that a reader gets at a time, counted after neighbouring texts are
joined."""
HELD_CHARACTERS = 65_536
"""If the log of a turn has more characters of text than this when the turn ends, the log is
released from memory. Its readers then read the events from the store."""

# `isinstance(event, TextDelta | ReasoningDelta)` would create the union again for every event.
_DELTAS = (TextDelta, ReasoningDelta)
_SEGMENT_ENDS = (SegmentEnded, SegmentDiscarded)


class _Run:
    """Consecutive text events of one kind (answer or reasoning), which `end` joins to one event."""

    def __init__(self) -> None:
        self.kind: type[TextDelta | ReasoningDelta] = TextDelta
        self.texts: list[str] = []
        self.size = 0

    def add(self, event: TextDelta | ReasoningDelta) -> None:
        self.kind = type(event)
        self.texts.append(event.text)
        self.size += len(event.text)

    def end(self, seq: int) -> tuple[int, AgentEvent]:
        text, self.texts, self.size = "".join(self.texts), [], 0
        return seq, self.kind(text=text)


class EventLog:
    """The events of a turn since this process claimed the turn. The first event has the number
    `epoch * EVENTS_PER_CLAIM + 1`, where the epoch is the number of the claim."""

    def __init__(self, turn: TurnId) -> None:
        self.turn = turn
        self.readers = 0
        self.finished = False
        """Whether no more events will come, because the turn is closed or no longer runs in this
        process."""
        self._base = 0
        self._events: list[AgentEvent] = []
        self._released = 0
        """Number of events that were released from memory and must be read from the store."""
        self._kept = 0
        self._segment = 0
        self.left_at = 0.0
        """The time at which the last reader left, on the event loop's clock."""
        self.remote: RemoteEvents | None = None
        """The newest events of the turn, if another node runs it and sends them."""
        self._waiters: set[asyncio.Future[None]] = set()
        self._enders: set[asyncio.Future[None]] = set()

    def begin(self, epoch: int) -> None:
        self._base = epoch * EVENTS_PER_CLAIM
        self._events = []
        self._released = self._kept = self._segment = 0
        self.finished = False
        self.remote = None

    @property
    def epoch(self) -> int:
        """The epoch: the number of the claim that the events belong to. 0 before the turn has begun
        in this process."""
        return self._base // EVENTS_PER_CLAIM

    def covers(self, after: int) -> bool:
        """Returns whether the log contains every event with a number above `after`."""
        return not self._released and (self.epoch == 1 or 0 < self._base <= after)

    @property
    def version(self) -> tuple[int, int]:
        """A value that changes whenever the result of `covers` may change."""
        return self._base, self._released

    @property
    def running(self) -> bool:
        """Whether the turn runs in this process now."""
        return self._base > 0 and not self.finished

    @property
    def seq(self) -> int:
        """Number of the newest event."""
        return self._base + self._released + len(self._events)

    def emit(self, event: AgentEvent) -> None:
        if isinstance(event, SegmentDiscarded) and not event.from_seq:
            event = SegmentDiscarded(from_seq=self._base + self._segment + 1)
        if isinstance(event, _DELTAS) and len(event.text) > TEXT_PIECE:
            self._events += _pieces(event)
        else:
            self._events.append(event)
        if isinstance(event, _SEGMENT_ENDS):
            self._segment = len(self._events)
        self._wake()

    def end(self, last: Sequence[AgentEvent] = ()) -> None:
        """Closes the log. `last` contains the final events, which were passed to `unkept` and are
        already committed."""
        self._events += last
        self.finished = True
        self._wake()

    def release(self) -> None:
        """If the texts of a closed turn are long, releases its events from memory. The events can
        still be read from the store."""
        texts = (one.text for one in self._events if isinstance(one, _DELTAS))
        if sum(map(len, texts)) > HELD_CHARACTERS:
            self._released, self._events = len(self._events), []

    def usage(self) -> UsageReported:
        """Returns the usage of the model calls since the last checkpoint."""
        new = self._events[self._kept :]
        reported = (event for event in new if isinstance(event, UsageReported))
        return sum(reported, NO_USAGE)

    def remarks(self) -> list[Notice]:
        """Returns the notices that are sent to a chat after the answer."""
        return [event for event in self._events if isinstance(event, Notice) and event.lasting]

    def open_text(self) -> str:
        """Returns the text of the unfinished segment of the answer."""
        tail = self._events[self._segment :]
        return "".join(event.text for event in tail if isinstance(event, TextDelta))

    def unkept(self, last: Sequence[AgentEvent] = ()) -> tuple[int, list[Recorded]]:
        """Returns the events that are not stored yet: those since the last checkpoint, followed by
        `last`."""
        first = self._base + self._kept + 1
        return first, record(first, [*self._events[self._kept :], *last])

    @property
    def kept(self) -> int:
        """The number of the last stored event. All earlier events are stored, too."""
        return self._base + self._kept

    def recorded(self, after: int) -> list[Recorded]:
        """Returns the events with numbers above `after`, in the form in which they are stored. If
        there are many such events, only the first of them are returned."""
        start = after - self._base
        return record(after + 1, self._events[start : start + READ_EVENTS])

    def keep(self, seq: int) -> None:
        """Records that all events up to the number `seq` are stored with a checkpoint."""
        self._kept = seq - self._base

    def read(self, after: int, upto: int | None = None) -> list[tuple[int, AgentEvent]]:
        """Returns the events with numbers above `after` and up to `upto`, with neighbouring texts
        joined. If there are many such events, only the first of them are returned."""
        start = max(after - self._base, 0)
        stop = len(self._events) if upto is None else max(upto - self._base, 0)
        stop = min(stop, len(self._events), start + READ_EVENTS)
        merged: list[tuple[int, AgentEvent]] = []
        run = _Run()
        for seq, event in enumerate(self._events[start:stop], self._base + start + 1):
            if run.texts and type(event) is not run.kind:
                merged.append(run.end(seq - 1))
            if len(merged) >= READ_JOINED:
                return merged
            if not isinstance(event, _DELTAS):
                merged.append((seq, event))
                continue
            run.add(event)
            if run.size >= TEXT_PIECE:
                return [*merged, run.end(seq)]
        if run.texts:
            merged.append(run.end(self._base + stop))
        return merged

    async def changed(self, within: float = math.inf) -> None:
        """Returns at the next event, or after `within` seconds."""
        await _wait(self._waiters, within)

    async def ended(self, within: float = math.inf) -> None:
        """Returns when the log is finished, or after `within` seconds."""
        if not self.finished:
            await _wait(self._enders, within)

    def notice_remote(self) -> None:
        """Wakes the readers, because events of another node have arrived or the store has new
        events."""
        self._wake()

    def _wake(self) -> None:
        if self.finished:
            self._waiters |= self._enders
        if self._waiters:
            for waiter in self._waiters:
                _settle(waiter)
            self._waiters.clear()


def _pieces(event: TextDelta | ReasoningDelta) -> list[AgentEvent]:
    """Returns a long text as several events, so that it can be read and stored in pieces."""
    text, kind = event.text, type(event)
    starts = range(0, len(text), TEXT_PIECE)
    return [kind(text=text[start : start + TEXT_PIECE]) for start in starts]


async def _wait(waiters: "set[asyncio.Future[None]]", within: float) -> None:
    # A stream waits here before each word. So this function uses a bare future and a timer, which
    # cost little CPU time.
    loop = asyncio.get_running_loop()
    waiter: asyncio.Future[None] = loop.create_future()
    waiters.add(waiter)
    timer = loop.call_later(within, _settle, waiter) if within < math.inf else None
    try:
        await waiter
    finally:
        waiters.discard(waiter)
        if timer is not None:
            timer.cancel()


def _settle(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_result(None)


class EventHub:
    """Holds the event logs of the turns that run in this process, or have readers here."""

    def __init__(self) -> None:
        self._logs: dict[TurnId, EventLog] = {}
        self.on_unread: Callable[[TurnId], None] = lambda turn: None
        """A function that is called when a turn's last reader leaves before the end of the turn."""

    def get(self, turn: TurnId) -> EventLog | None:
        return self._logs.get(turn)

    def read_from_elsewhere(self) -> list[EventLog]:
        """Returns the logs that have readers here and whose turns do not run here."""
        logs = self._logs.values()
        return [log for log in logs if log.readers and not log.running and not log.finished]

    def expect(self, turn: TurnId, epoch: int) -> None:
        """Must be called when the turn is about to run again. Its readers then wait for the events
        of the new run, which has the number `epoch`."""
        if (log := self._logs.get(turn)) is not None and log.epoch:
            log.begin(epoch)

    def begin(self, turn: TurnId, epoch: int) -> EventLog:
        log = self._logs.setdefault(turn, EventLog(turn))
        log.begin(epoch)
        return log

    def end(self, log: EventLog) -> None:
        """Must be called when the turn no longer runs here, whether or not it was closed."""
        if not log.finished:
            log.end()
        if not log.readers:
            self._logs.pop(log.turn, None)

    @contextmanager
    def following(self, turn: TurnId) -> Iterator[EventLog]:
        """Yields the turn's log. The caller counts as a reader of the log until the block ends. The
        log can be read even before the turn begins."""
        log = self._logs.setdefault(turn, EventLog(turn))
        log.readers += 1
        try:
            yield log
        finally:
            log.readers -= 1
            if not log.readers:
                log.left_at = asyncio.get_running_loop().time()
                if not log.running:
                    self._logs.pop(turn, None)
                if not log.finished:
                    self.on_unread(turn)
