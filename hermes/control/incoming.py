"""A message on its way into the inbox, and the result of storing it."""

from hermes.control.turn_transactions import Claim
from hermes.state import deliveries, inbox, turns
from hermes.state.codec import record
from hermes.types.commands import CommandReply
from hermes.types.events import AgentEvent, TextDelta, TurnFinished
from hermes.types.identity import FolderId, OwnerId, PersonId, SessionKey, Target, TurnId, new_id
from hermes.types.messages import Accepted, Content, Duplicate, MessageEvent, Receipt
from hermes.types.profile import BusyMode
from hermes.types.store import Work
from hermes.types.value import Value

SHOWN_ONCE = "This reply was shown only once, because it contains a secret."
"""The text that is stored instead of a secret reply."""


class Secret(Value):
    """A message that is sent to a chat but must never be stored."""

    target: Target
    text: str


class Incoming(Value):
    """A message that has arrived and is neither stored nor answered yet."""

    event: MessageEvent
    key: SessionKey
    person: PersonId
    row: str | None = None
    """The id of the inbox row that the message overwrites; None if the message gets a new row. A
    command such as /queue overwrites the row of the command with the text that follows the
    command."""
    mode: BusyMode | None = None
    """How the message is handled while a turn runs; None if the setting of the chat decides."""


class IntakeResult(Value):
    """The result of storing a message: the work to start after the commit."""

    receipt: Receipt
    claim: Claim | None = None
    """The turn to run."""
    stop: TurnId | None = None
    """The turn to interrupt."""
    steer: TurnId | None = None
    """The turn that reads the message before its next model call."""
    due: float | None = None
    """The time at which the message stops waiting for its further parts; None if it does not
    wait."""
    owed: Target | None = None
    """The chat for which a delivery was stored. The gateway wakes the outbox for this chat."""
    notified: Target | None = None
    """Another chat for which a delivery was stored."""
    ended: bool = False
    """Whether the message ended a conversation."""
    secret: Secret | None = None
    """A reply that is sent without being stored, for example a new pairing code."""


def store_row(
    message: Incoming, owner: OwnerId, state: str = "pending", folder: FolderId | None = None
) -> Work[str | Duplicate]:
    """Stores the message in the inbox. Returns the id of its row, or a Duplicate if the message was
    stored before."""
    event, key = message.event, message.key
    if message.row is not None:
        yield from inbox.rewrite(message.row, event, key, state, folder)
        return message.row
    id = new_id()
    duplicate = yield from inbox.insert(id, event, key, message.person, owner, state, folder)
    return duplicate or id


def tell(
    id: str, event: MessageEvent, key: SessionKey, done: CommandReply, now: float
) -> Work[IntakeResult]:
    """Answers the message at once with the reply of a command, without running a turn."""
    receipt = Accepted(id=id, reply=done.reply, failed=done.failed)
    if event.fingerprint:
        # The request may be repeated, so the reply is stored like the events of a turn.
        stored = SHOWN_ONCE if done.secret else done.reply
        told: list[AgentEvent] = [TextDelta(text=stored), TurnFinished(outcome="completed")]
        yield from turns.keep_events(TurnId(id), 1, record(1, told))
    target = event.origin.reply_to
    if target is not None and done.secret:
        return IntakeResult(receipt=receipt, secret=Secret(target=target, text=done.reply))
    if target is not None:
        yield from deliveries.owe(target, Content(text=done.reply), key.agent, None, now)
    return IntakeResult(
        receipt=receipt, stop=done.stop, owed=target, notified=done.notified, ended=done.ended
    )
