"""Sends the live events of turns to the nodes that have readers for them.

If a node has readers of a turn that runs elsewhere, it asks all nodes for the turn's events. It
repeats the request while it has readers. The node that runs the turn answers with the events that
are not stored yet, and then with new events, ten times a second. If messages are lost, readers get
the events from the store.
"""

import logging
from contextlib import ExitStack

import anyio
import msgspec

from hermes.control.event_hub import EventHub, EventLog
from hermes.control.remote_events import LiveEvents, RemoteEvents
from hermes.state.codec import encode
from hermes.state.turns import EVENTS_PER_CLAIM
from hermes.types.bus import Bus
from hermes.types.identity import OwnerId, TurnId
from hermes.types.value import Value

log = logging.getLogger(__name__)

RENEW_SECONDS = 1.0
"""Seconds after which a node with readers repeats its request for the events (`FollowRequest`)."""
FORGET_READER_SECONDS = 5.0
"""If a node has not repeated its request (`FollowRequest`) for this number of seconds, no more
events are sent to it."""
LIVE_BATCH_SECONDS = 0.1


class FollowRequest(Value, tag=True):
    """A node sends this request if its clients read the events of a turn that another node runs."""

    turn: TurnId
    node: OwnerId
    last: int
    """The number of the newest event that the node has; 0 if the node has no event and needs all
    events that are not in the store."""


_decoder: msgspec.json.Decoder[FollowRequest | LiveEvents] = msgspec.json.Decoder(
    FollowRequest | LiveEvents
)


class RemoteReader:
    """Another node that has readers for a turn of this node."""

    def __init__(self, hub: EventHub, turn: TurnId, node: OwnerId) -> None:
        self.node = node
        self._reading = ExitStack()
        # This makes the other node count as a reader of the turn.
        self.log = self._reading.enter_context(hub.following(turn))
        self.sent = 0
        """The number of the newest event that was sent."""
        self.sent_before = 0
        """The number of the last event that was sent before the latest request of the other node.
        When that node sends its next request, the events up to this number should have arrived
        there."""
        self.forget_at = 0.0

    def renew(self, last: int) -> None:
        """Handles a request of the other node. `last` is the number of the newest event that has
        arrived there. Later events that were lost are sent again."""
        if not self.sent or last < self.sent_before:
            self.sent = last if self.log.kept <= last <= self.log.seq else self.log.kept
        self.sent_before = self.sent
        self.forget_at = anyio.current_time() + FORGET_READER_SECONDS

    def leave(self) -> None:
        self._reading.close()

    def batch(self) -> LiveEvents | None:
        """Returns the events to send now; None if there are no such events."""
        log = self.log
        if log.finished:
            return LiveEvents(turn=log.turn, kept=log.kept, first=0, over=True)
        # If the turn was suspended and resumed here, the number of its next event is not the next
        # number but a much higher one. The numbers in between belong to no event and are skipped.
        self.sent = max(self.sent, log.epoch * EVENTS_PER_CLAIM)
        recorded = log.recorded(self.sent)
        if not recorded:
            return None
        first, self.sent = self.sent + 1, recorded[-1].seq
        return LiveEvents(turn=log.turn, kept=log.kept, first=first, recorded=tuple(recorded))


class LiveRelay:
    """Sends and receives the requests and the live events of one node."""

    def __init__(self, bus: Bus, owner: OwnerId, hub: EventHub) -> None:
        self._bus = bus
        self._owner = owner
        self._hub = hub
        self._new_reader = anyio.Event()
        self._requested = anyio.Event()
        self._remote: dict[tuple[TurnId, OwnerId], RemoteReader] = {}

    def notice_reader(self) -> None:
        """Notes that a turn which does not run here has a new reader."""
        self._new_reader.set()

    async def run(self) -> None:
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._receive)
                group.start_soon(self._send_requests)
                group.start_soon(self._send_events)
        finally:
            for reader in self._remote.values():
                reader.leave()

    async def _send_requests(self) -> None:
        while True:
            logs = self._hub.read_from_elsewhere()
            if logs:
                await self._bus.send([_encoded(self._request(one)) for one in logs])
            with anyio.move_on_after(RENEW_SECONDS if logs else None):
                await self._new_reader.wait()
            self._new_reader = anyio.Event()

    def _request(self, log: EventLog) -> FollowRequest:
        last = log.remote.last if log.remote else 0
        return FollowRequest(turn=log.turn, node=self._owner, last=last)

    async def _receive(self) -> None:
        async for text in self._bus.received():
            try:
                message = _decoder.decode(text)
            except msgspec.DecodeError:
                log.debug("a message of another version is ignored")
                continue
            if isinstance(message, FollowRequest):
                self._note(message)
            else:
                self._add(message)

    def _add(self, batch: LiveEvents) -> None:
        """Adds the events of a turn that runs elsewhere, for its readers here."""
        found = self._hub.get(batch.turn)
        if found is None or found.running or found.finished:
            return
        found.remote = found.remote or RemoteEvents()
        found.remote.add(batch)
        if not found.remote.last:
            self._new_reader.set()
        found.notice_remote()

    def _note(self, request: FollowRequest) -> None:
        """Counts the other node as a reader of the turn, if the turn runs here."""
        found = self._hub.get(request.turn)
        if found is None or not found.running:
            return
        key = request.turn, request.node
        reader = self._remote.get(key)
        if reader is None:
            reader = self._remote[key] = RemoteReader(self._hub, request.turn, request.node)
            self._requested.set()
        reader.renew(request.last)

    async def _send_events(self) -> None:
        while True:
            if not self._remote:
                self._requested = anyio.Event()
                await self._requested.wait()
            await anyio.sleep(LIVE_BATCH_SECONDS)
            batches: dict[OwnerId, list[str]] = {}
            for key, reader in list(self._remote.items()):
                batch = reader.batch()
                if batch is not None:
                    batches.setdefault(reader.node, []).append(_encoded(batch))
                if reader.log.finished or anyio.current_time() > reader.forget_at:
                    del self._remote[key]
                    reader.leave()
            for node, texts in batches.items():
                await self._bus.send(texts, node)


def _encoded(message: FollowRequest | LiveEvents) -> str:
    return encode(message).decode()
