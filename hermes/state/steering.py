"""Messages that change a running turn. A message that steers a turn is read by the model during the
turn. An edited message replaces the message that the turn answers."""

from hermes.state import bodies
from hermes.state.codec import decode_event
from hermes.types.identity import OwnerId, TurnId
from hermes.types.messages import MessageEvent
from hermes.types.store import Work
from hermes.types.value import Value


class StoredMessage(Value):
    """A message of the inbox that is not answered yet."""

    id: str
    event: MessageEvent
    waiting: bool
    """Whether no turn has begun to answer the message."""


def aim(id: str, turn: TurnId) -> Work[None]:
    """Plans that a waiting message enters this turn before the turn's next model call."""
    yield "update inbox set steers = ? where id = ?", (turn, id)


def aimed_at(turn: TurnId, session: str, now: float) -> Work[list[str]]:
    """Returns the ids of the waiting messages that are going to steer the turn, the oldest first.
    Messages whose further parts may still arrive are left out."""
    rows = yield (
        "select id from inbox where session = ? and state = 'pending' and steers = ?"
        " and not_before <= ? order by seq",
        (session, turn, now),
    )
    return [row[0] for row in rows]


def enter(id: str, turn: TurnId) -> Work[None]:
    """Binds a message, with its parts, to the turn that it steers."""
    yield (
        "update inbox set state = 'bound', turn = ?, steers = ?"
        " where id = ? or (turn = ? and turn <> id)",
        (turn, turn, id, id),
    )


def steered_turns(owner: OwnerId) -> Work[list[TurnId]]:
    """Returns the open turns of this process (`owner`) that waiting messages are going to steer."""
    rows = yield (
        "select distinct t.id from turns t join inbox i on i.session = t.session"
        " where t.state in ('running', 'suspended') and t.owner = ?"
        " and i.state = 'pending' and i.steers = t.id",
        (owner,),
    )
    return [TurnId(row[0]) for row in rows]


def edited(session: str, message_id: str, turn: TurnId | None) -> Work[StoredMessage | None]:
    """Finds a message of the session that can still be edited. `message_id` is the platform's id
    of the message, and `turn` is the open turn of the session.

    Returns the message if it waits or is a part of the message that opened the turn. Returns None
    for any other message.
    """
    rows = yield (
        "select id, event, crc, body_name, 1 from inbox where session = ? and message_id = ?"
        " and state = 'pending' order by seq desc limit 1",
        (session, message_id),
    )
    if not rows:
        rows = yield (
            "select id, event, crc, body_name, 1 from inbox where turn <> id and turn in"
            " (select id from inbox where session = ? and state = 'pending')"
            " and message_id = ? and state = 'bound'",
            (session, message_id),
        )
    if not rows and turn is not None:
        rows = yield (
            "select id, event, crc, body_name, 0 from inbox"
            " where (id = ? or (turn = ? and turn <> id)) and message_id = ?"
            " and state = 'bound' and steers is null",
            (turn, turn, message_id),
        )
    whole = yield from bodies.filled(rows, 1, 3)
    for id, body, crc, _, waiting in whole:
        return StoredMessage(id=id, event=decode_event(body, crc), waiting=bool(waiting))
    return None


def replace_turn(id: str, turn: TurnId) -> Work[None]:
    """Records that the waiting message `id` replaces the message that opened `turn`. A person has
    edited the opening message, and the waiting message has the new text. The waiting message
    becomes the next message of its session."""
    yield "update inbox set replaces = ? where id = ?", (turn, id)


def replacement_of(turn: TurnId, session: str) -> Work[str | None]:
    """Returns the id of the waiting message that replaces the message of the turn."""
    rows = yield (
        "select id from inbox where session = ? and state = 'pending' and replaces = ?"
        " order by seq desc limit 1",
        (session, turn),
    )
    return rows[0][0] if rows else None
