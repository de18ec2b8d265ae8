"""Reads the events of a turn from any position: first the stored events, then the new events as
they happen."""

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from hermes.control.event_hub import EventHub, EventLog
from hermes.control.event_pages import EventPages
from hermes.control.remote_events import RemoteEvents
from hermes.types.events import AgentEvent, Envelope, TurnFinished
from hermes.types.identity import TurnId

STORE_SECONDS = 1.0
"""Seconds between two reads of the store, for a turn that does not run here."""


class Following:
    """A cursor in the events of one turn. It never slows the turn down.

    A turn that runs here is read from its log in memory. Everything else is read from the store:
    the events of an earlier claim on the turn, and the events of a turn that another process runs.
    If the other process sends events that it has not stored yet, these events are read from the log
    in memory too.
    """

    def __init__(self, pages: EventPages, log: EventLog, after: int, *, expected: bool) -> None:
        self.ended = False
        """Whether there are no more events: the turn is closed or suspended, or this process has
        stopped running it."""
        self.expected = expected
        """Whether the turn ran here, or was about to run here, when this cursor was made."""
        self._pages = pages
        self._log = log
        self._after = after
        self._version = log.version
        self._replayed = log.covers(after) if log.epoch else expected
        self._looked_at = time.monotonic()
        self._over = False
        self._looks = 0
        self._stored = 0
        """All stored events up to this number have been read."""

    @property
    def begun(self) -> bool:
        """Whether the turn runs here, or has run here."""
        return self._log.epoch > 0

    async def begins(self) -> None:
        """Waits until the turn runs in this process. Returns at once if the turn has already run in
        this process since this cursor was made."""
        while not self.begun:
            await self._log.changed()

    async def next(self, within: float = math.inf) -> Sequence[Envelope]:
        """Returns the new events, and waits for them for at most `within` seconds. The result is
        empty if no event came in that time. It is also empty if this process has stopped running
        the turn before the end of the turn."""
        give_up = time.monotonic() + within
        while not self.ended:
            if events := await self._new():
                last, end = events[-1]
                self._after = last
                # An end event is not always the last event, because a suspended turn has one too.
                # If the turn was resumed after its suspension, more pages follow.
                last_page = self._replayed and not self._log.running
                self.ended = isinstance(end, TurnFinished) and last_page
                return self._envelopes(events)
            if self._over or (self._log.finished and self._log.seq >= self._after):
                self.ended = True
            elif time.monotonic() < give_up:
                await self._wait(within)
            else:
                break
        return ()

    async def gather(self, seconds: float) -> None:
        """Waits this many seconds, or until the turn is over, so that several events can
        accumulate."""
        if self._log.running:
            await self._log.ended(seconds)

    async def next_at_rest(self) -> Sequence[Envelope]:
        """Waits until the turn no longer runs, and then returns the new events together. Before
        that, the reader is not woken."""
        if self._replayed and not self.begun:
            # The turn is about to run here. Its first events must not wake the reader.
            await self._log.ended(STORE_SECONDS)
        while self._replayed and self._log.running:
            await self._log.ended()
        return await self.next()

    async def rest(self) -> list[Envelope]:
        """Waits until the turn is closed or suspended, and then returns all new events up to this
        point together. Before that, the reader is not woken.

        If the turn was suspended and has been resumed in the meantime, the events after the
        suspension are not included.
        """
        found: list[Envelope] = []
        reached = False
        while not reached and not self.ended:
            page = await self.next_at_rest()
            reached = any(isinstance(one.event, TurnFinished) for one in page)
            found += page
        return found

    async def earlier(self, after: int, upto: int) -> list[Envelope]:
        """Returns a page of the events with numbers above `after` and up to `upto`. The cursor does
        not move.

        This reader must have received the events with these two numbers.
        """
        log, kept = self._log, None
        if not log.covers(after):
            kept = await self._pages.read(log.turn, after)
        found = kept.events if kept and kept.events else log.read(after, upto)
        return self._envelopes([(seq, event) for seq, event in found if seq <= upto])

    def _envelopes(self, events: Sequence[tuple[int, AgentEvent]]) -> list[Envelope]:
        turn = self._log.turn
        return [Envelope(turn=turn, seq=seq, event=event) for seq, event in events]

    async def _new(self) -> Sequence[tuple[int, AgentEvent]]:
        log = self._log
        while True:
            if self._version != log.version:
                # The log has changed: the turn was resumed here and has a new log, or the old log
                # was released from memory.
                self._version = log.version
                self._replayed = log.covers(self._after)
            remote = log.remote
            if remote is not None and self._must_look(remote):
                self._replayed = False
            if self._replayed:
                return log.read(self._after) or (remote.read(self._after) if remote else ())
            if remote is not None:
                # Both values may change while the store is read, so they are saved before the read.
                self._looks, self._stored = remote.looks, remote.base
            kept = await self._pages.read(log.turn, self._after)
            self._looked_at = time.monotonic()
            self._replayed = not kept.more
            self._over = kept.over and not log.running
            if kept.events:
                return kept.events

    def _must_look(self, remote: RemoteEvents) -> bool:
        """Returns whether the reader must read the store before it reads the events that another
        node has sent (`remote`). This is necessary if the store has events that precede the sent
        events."""
        return remote.looks != self._looks or remote.base > max(self._after, self._stored)

    async def _wait(self, within: float) -> None:
        if self._log.running:
            await self._log.changed(within)
            return
        # The turn has not begun, or another process runs it and stores or sends its events.
        await self._log.changed(min(within, STORE_SECONDS))
        self._replayed = time.monotonic() - self._looked_at < STORE_SECONDS


@contextmanager
def following(
    hub: EventHub, pages: EventPages, turn: TurnId, after: int, *, expected: bool
) -> Iterator[Following]:
    """Yields a cursor that begins after event number `after`. Until the block ends, the cursor
    counts as a reader of the turn.

    If `expected` is true, the turn is about to run in this process. The cursor then waits for the
    events in memory, and does not read the store first.
    """
    with hub.following(turn) as log:
        yield Following(pages, log, after, expected=expected)
