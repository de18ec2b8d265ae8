"""The newest events of a turn that another node runs and sends to this node."""

from bisect import bisect_right

from hermes.state.codec import Recorded
from hermes.types.events import AgentEvent
from hermes.types.identity import TurnId
from hermes.types.value import Value

HELD_SIZE = 262_144
"""Number of characters of text. If a `RemoteEvents` holds more than this number, it drops the
events that are also in the store."""
READ_RECORDED = 64
"""Maximum number of events that a reader gets at a time."""


class LiveEvents(Value, tag=True):
    """Events of a turn. The node that runs the turn sends them to a node with readers."""

    turn: TurnId
    kept: int
    """All events up to this number are in the store."""
    first: int
    """The number of the first event in `recorded`."""
    recorded: tuple[Recorded, ...] = ()
    over: bool = False
    """Whether the turn no longer runs on the node that sends these events."""


class RemoteEvents:
    """Holds a series of events without a gap. Earlier events are in the store."""

    def __init__(self) -> None:
        self.base = 0
        """All events up to this number are in the store. The later events are in this object."""
        self.last = 0
        """The number of the newest event; 0 if events are missing, in which case all events are
        requested again."""
        self.looks = 0
        """A counter that increases when there may be new events in the store. If the value has
        changed since a reader's last read, the reader must read the store."""
        self._recorded: list[Recorded] = []
        self._size = 0

    def add(self, batch: LiveEvents) -> None:
        """Adds events that have arrived. Events of an earlier claim on the turn are ignored."""
        if batch.kept < self.base:
            return
        if batch.over:
            self.looks += 1
        if not batch.recorded:
            return
        if not self.last or batch.first != self.last + 1:
            if batch.first > batch.kept + 1:
                self.last = 0
                return
            self.base, self._recorded, self._size = batch.first - 1, [], 0
        self._recorded += batch.recorded
        self._size += sum(map(_size, batch.recorded))
        self.last = batch.recorded[-1].seq
        if self._size > HELD_SIZE:
            self._drop(batch.kept)

    def read(self, after: int) -> list[tuple[int, AgentEvent]]:
        """Returns the events with numbers above `after`. If there are many such events, only the
        first of them are returned."""
        start = bisect_right(self._recorded, after, key=lambda one: one.seq)
        left = ((one.seq, one.after(after)) for one in self._recorded[start:][:READ_RECORDED])
        return [(seq, event) for seq, event in left if event is not None]

    def _drop(self, kept: int) -> None:
        """Drops the events that are also in the store."""
        # Pieces of text that follow each other are held here as one event. If the store has only
        # some of the pieces, the whole event is kept.
        start = bisect_right(self._recorded, kept, key=lambda one: one.seq)
        if start:
            self.base = self._recorded[start - 1].seq
            self._recorded = self._recorded[start:]
            self._size = sum(map(_size, self._recorded))


def _size(recorded: Recorded) -> int:
    return sum(recorded.lengths) or 100
