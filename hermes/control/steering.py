"""Adds messages of people to a running turn (steering), so that the model reads them before its
next step."""

from hermes.control.event_content import new_messages
from hermes.control.message_parts import whole_message
from hermes.control.turn_transactions import Claim
from hermes.state import session_lock, steering, transcript, turns
from hermes.state.codec import record
from hermes.state.turns import EVENTS_PER_CLAIM
from hermes.types.events import AgentEvent, TextDelta, TurnFinished
from hermes.types.identity import TurnId
from hermes.types.messages import UserMessage
from hermes.types.store import Work

ENTERED = "This was added to the running turn."


def enter_turn(claim: Claim, step: int, now: float) -> Work[list[tuple[int, UserMessage]]]:
    """Finds the waiting messages that steer this turn, binds them to the turn, and stores them
    after the messages of the step. Returns each message with the number of its row in the
    transcript.

    Each message is bound and stored in one transaction, so it enters the turn exactly once.
    """
    row = claim.row
    yield from session_lock.lock(row.session)
    yield from turns.hold(row.id, row.epoch)
    index = yield from transcript.next_index(row.id, step)
    found: list[tuple[int, UserMessage]] = []
    for id in (yield from steering.aimed_at(row.id, row.session, now)):
        event = yield from whole_message(id)
        if event is None:
            # This unreadable message is skipped here. It is closed as failed later, when a turn
            # would be opened for it.
            continue
        yield from steering.enter(id, row.id)
        if event.origin.reply_to is None:
            yield from _tell_reader(TurnId(id))
        for message in new_messages(event):
            assert isinstance(message, UserMessage), "a person has sent the message"
            number = yield from transcript.append(claim.writer, step, index, message, now)
            found.append((number, message))
            index += 1
    return found


def _tell_reader(message: TurnId) -> Work[None]:
    """Stores final events under the id of a message that has become part of a running turn. The
    sender (an API client or a terminal) waits for events with this id, although the message gets no
    turn of its own."""
    told: list[AgentEvent] = [TextDelta(text=ENTERED), TurnFinished(outcome="completed")]
    first = EVENTS_PER_CLAIM + 1
    yield from turns.keep_events(message, first, record(first, told))
