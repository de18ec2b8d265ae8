"""Stores messages that are not answered at once: they wait for the running turn, steer it or stop
it, or they wait for their further parts."""

from hermes.control.event_content import files_of
from hermes.control.incoming import Incoming, IntakeResult, store_row
from hermes.control.message_parts import PART_SECONDS
from hermes.control.turn_transactions import TurnTransactions
from hermes.state import deliveries, inbox, message_parts, steering, turns
from hermes.state.message_parts import COMPLETE, FirstPart
from hermes.state.turns import TurnRow
from hermes.types.identity import FolderId
from hermes.types.messages import Accepted, Content, Duplicate, Said
from hermes.types.profile import BusyMode
from hermes.types.store import Work

STEERED = "Noted: I read this before my next step. If I finish before that, I answer it afterwards."


class WaitingMessages:
    def __init__(self, transactions: TurnTransactions) -> None:
        self._transactions = transactions

    def take(self, message: Incoming, turn: TurnRow, when: str, now: float) -> Work[IntakeResult]:
        """Stores a message that arrives while the turn is open. If the message is queued, the text
        `when` tells the person when the message will be answered."""
        if joined := (yield from self.join(message, now)):
            return joined
        match self._mode(message, turn):
            case "queue":
                return (yield from self.queue(message, when, now))
            case "steer":
                return (yield from self._steer(message, turn, now))
            case "interrupt":
                return (yield from self._interrupt(message, turn, now))

    def queue(self, message: Incoming, when: str | None, now: float) -> Work[IntakeResult]:
        """Queues the message, and notifies its chat. `when` is the text in the notice that says
        when the message will be answered. If `when` is None, the chat gets no notice."""
        stored = yield from self.store(message)
        if isinstance(stored, Duplicate):
            return IntakeResult(receipt=stored)
        due = yield from self._wait_for_parts(stored, message, now)
        # The turn will have the id of the message, so an API client can already wait for the events
        # of the turn.
        receipt = Accepted(id=stored, turn=stored)
        target = message.event.origin.reply_to
        if when is None or target is None:
            return IntakeResult(receipt=receipt, due=due)
        position = yield from inbox.count_pending(str(message.key))
        text = f"Queued ({position}): I answer this {when}. /stop ends what is running."
        yield from deliveries.owe(target, Content(text=text), message.key.agent, None, now)
        return IntakeResult(receipt=receipt, owed=target, due=due)

    def join(self, message: Incoming, now: float) -> Work[IntakeResult | None]:
        """If the message continues a waiting message, adds it to that message as a part. Returns
        None for any other message."""
        event = message.event
        if message.mode is not None or not isinstance(event.body, Said):
            return None
        first = yield from message_parts.first_part(str(message.key), event, now)
        return None if first is None else (yield from self._add_part(message, first, now))

    def _add_part(self, message: Incoming, first: FirstPart, now: float) -> Work[IntakeResult]:
        stored = yield from store_row(message, self._transactions.owner, "bound")
        if isinstance(stored, Duplicate):
            return IntakeResult(receipt=stored)
        yield from inbox.bind(stored, first.id)
        if folder := self._folder(message):
            yield from message_parts.use_folder(first.id, folder)
        due = yield from self._wait_for_parts(first.id, message, now)
        receipt = Accepted(id=stored, turn=first.id)
        if due is not None:
            return IntakeResult(receipt=receipt, due=due)
        yield from message_parts.wait(first.id, COMPLETE, 0.0)
        if (yield from turns.open_in(str(message.key))):
            return IntakeResult(receipt=receipt)
        claim = yield from self._transactions.open_next(str(message.key), now)
        return IntakeResult(receipt=receipt, claim=claim)

    def _steer(self, message: Incoming, turn: TurnRow, now: float) -> Work[IntakeResult]:
        stored = yield from self.store(message)
        if isinstance(stored, Duplicate):
            return IntakeResult(receipt=stored)
        yield from steering.aim(stored, turn.id)
        due = yield from self._wait_for_parts(stored, message, now)
        target = message.event.origin.reply_to
        if target is not None:
            notice = Content(text=STEERED)
            yield from deliveries.owe(target, notice, message.key.agent, None, now)
        receipt = Accepted(id=stored, turn=stored)
        return IntakeResult(receipt=receipt, owed=target, steer=turn.id, due=due)

    def _interrupt(self, message: Incoming, turn: TurnRow, now: float) -> Work[IntakeResult]:
        queued = yield from self.queue(message, None, now)
        if isinstance(queued.receipt, Duplicate):
            return queued
        yield from turns.request_stop(turn.id, message.person)
        return IntakeResult(receipt=queued.receipt, stop=turn.id, due=queued.due)

    def store(self, message: Incoming) -> Work[str | Duplicate]:
        """Stores a message that waits. Returns the id of its row."""
        folder = self._folder(message)
        return (yield from store_row(message, self._transactions.owner, folder=folder))

    def _wait_for_parts(self, id: str, message: Incoming, now: float) -> Work[float | None]:
        """If further parts may follow the message, makes the message wait for them. `id` is the id
        of the message's row. Returns the time at which the message stops waiting; None if it does
        not wait."""
        awaits = message_parts.awaited(message.event)
        if awaits is None:
            return None
        yield from message_parts.wait(id, awaits, now + PART_SECONDS)
        return now + PART_SECONDS

    def _folder(self, message: Incoming) -> FolderId | None:
        return self._transactions.placement.folder if files_of(message.event) else None

    def _mode(self, message: Incoming, turn: TurnRow) -> BusyMode:
        event, mode = message.event, message.mode
        if mode is None:
            # An API client or a terminal waits for the answer to its own message, so a message from
            # either of them is queued.
            in_chat = event.origin.reply_to is not None
            profile = self._transactions.agent(message.key.agent).profile
            mode = profile.busy_mode_in(event.source) if in_chat else "queue"
        # A message with files can't enter the running turn, because the files may be missing on the
        # node that runs the turn. A message of another person can't enter the turn either, because
        # it would be answered with the role of the person who started the turn.
        far = self._transactions.placement.checked and files_of(event)
        foreign = message.person != turn.person
        return "queue" if mode == "steer" and (far or foreign) else mode
