"""Handles messages that their author has edited: replaces the text if the message still waits. If a
turn already answers the message, stops this turn and opens a new turn."""

from msgspec.structs import replace

from hermes.control.event_content import has_files, new_messages, with_text
from hermes.control.message_parts import joined
from hermes.control.steering_commands import TEXT_COMMANDS
from hermes.control.turn_transactions import TurnTransactions
from hermes.state import inbox, message_parts, steering, turns
from hermes.state.steering import StoredMessage
from hermes.text.commands import parse_command
from hermes.types.identity import PersonId, SessionKey, TurnId, new_id
from hermes.types.messages import Accepted, Edited, MessageEvent, Receipt, Refused, Said
from hermes.types.store import Work
from hermes.types.value import Value


class TakenEdit(Value):
    """The result of storing an edit."""

    receipt: Receipt
    stop: TurnId | None = None
    """The turn to interrupt after the commit, because its message was edited."""


def take_edit(
    transactions: TurnTransactions,
    event: MessageEvent,
    body: Edited,
    key: SessionKey,
    person: PersonId,
    now: float,
) -> Work[TakenEdit]:
    """Stores the edit of a message that is not answered yet. The edit of an answered message is
    refused."""
    turn = yield from turns.open_in(str(key))
    found = yield from steering.edited(str(key), body.message_id, turn.id if turn else None)
    if found is None:
        return TakenEdit(receipt=Refused(reason="the edited message does not wait for an answer"))
    body, said = replace(body, text=_message_text(body.text)), found.event.body
    # Platforms also report an edit when only the preview of a link has changed. Such an edit is
    # refused, because the text is the same.
    if not isinstance(said, Said) or body.text in ("", said.text):
        return TakenEdit(receipt=Refused(reason="the edit changes no text"))
    id = new_id()
    if found.waiting:
        duplicate = yield from inbox.insert(id, event, key, person, transactions.owner, "done")
        if duplicate:
            return TakenEdit(receipt=duplicate)
        yield from inbox.replace_event(found.id, with_text(found.event, body.text))
        return TakenEdit(receipt=Accepted(id=id))
    assert turn is not None, "a message that no longer waits belongs to the open turn"
    changed = yield from _changed_message(turn.id, event, found, body)
    folder = transactions.placement.folder if has_files(new_messages(changed)) else None
    duplicate = yield from inbox.insert(id, changed, key, person, transactions.owner, folder=folder)
    if duplicate:
        return TakenEdit(receipt=duplicate)
    yield from steering.replace_turn(id, turn.id)
    yield from turns.request_stop(turn.id, person)
    return TakenEdit(receipt=Accepted(id=id, turn=id), stop=turn.id)


def _message_text(text: str) -> str:
    """Returns the text of the message. If the message is a command with a text, such as `/queue
    TEXT`, returns only this text. Returns an empty text for any other command, because an edit
    can't run a command."""
    command = parse_command(text)
    if command is None:
        return text
    return command.argument if command.name in TEXT_COMMANDS else ""


def _changed_message(
    turn: TurnId, event: MessageEvent, found: StoredMessage, body: Edited
) -> Work[MessageEvent]:
    """Returns the message that opened the turn. The returned message has the new text, and the
    dedupe key of the edit."""
    parts = yield from message_parts.parts_of(turn)
    changed = [with_text(one, body.text) if id == found.id else one for id, one in parts]
    whole = joined(changed).body
    assert isinstance(whole, Said), "only chat messages can be edited"
    return replace(event, body=replace(whole, message_id=body.message_id))
