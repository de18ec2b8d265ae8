"""Deliveries: the messages that still have to be sent to chats, in order."""

import logging

import msgspec

from hermes.state import approvals, chats
from hermes.state.codec import decode_content, decode_placed, encode
from hermes.state.storable import storable
from hermes.types.delivery import Delivery, DeliveryState, Placed
from hermes.types.identity import OwnerId, Target, TurnId, new_id
from hermes.types.messages import Content
from hermes.types.store import Row, Work
from hermes.types.value import Value

log = logging.getLogger(__name__)

_COLUMNS = (
    "id, account, chat_id, thread_id, state, content, turn, placed, attempts, not_before, doubtful,"
    " send_key, session"
)


class DeliveryReceipt(Value):
    """The state of a delivery, for the tool or job that has sent the message."""

    state: DeliveryState
    error: str | None = None
    """The reason why a dead delivery was not sent; None for other deliveries."""


def owe(
    target: Target, content: Content | None, agent: str, turn: TurnId | None, now: float
) -> Work[str]:
    """Adds a delivery, and returns its id. A delivery with content is ready to send. A delivery
    without content is open until its turn ends."""
    id = new_id()
    yield (
        "insert into deliveries (id, turn, agent, account, chat_id, thread_id, state, content,"
        " placed, created_at) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            id,
            turn,
            agent,
            target.account,
            target.chat_id,
            target.thread_id,
            "ready" if content else "open",
            encode(content or Content(text="")),
            encode(()),
            now,
        ),
    )
    return id


def send_once(
    send_key: str, target: Target, content: Content, agent: str, session: str | None, now: float
) -> Work[str]:
    """Adds a message that is not the answer of a turn. Adds nothing if a delivery with the key
    `send_key` exists. Returns the id of the new or existing delivery.

    `session` is the session whose history receives the message after it was sent. If the chat is
    marked as gone, the new delivery gets the state `dead`, so no process tries to send it.
    """
    error = yield from chats.gone_reason(target.account, target.chat_id)
    rows = yield (
        "insert into deliveries (id, send_key, session, agent, account, chat_id, thread_id, state,"
        " content, placed, created_at, error, finished_at)"
        " values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " on conflict (send_key) where send_key is not null do nothing returning id",
        (
            new_id(),
            send_key,
            session,
            agent,
            target.account,
            target.chat_id,
            target.thread_id,
            "ready" if error is None else "dead",
            encode(content),
            encode(()),
            now,
            error,
            None if error is None else now,
        ),
    )
    if not rows:
        rows = yield "select id from deliveries where send_key = ?", (send_key,)
    id: str = rows[0][0]
    return id


def receipt(id: str) -> Work[DeliveryReceipt]:
    rows = yield "select state, error from deliveries where id = ?", (id,)
    if not rows:
        # Old rows are deleted only after the delivery has ended. So a delivery without a row counts
        # as delivered.
        return DeliveryReceipt(state="delivered")
    state, error = rows[0]
    return DeliveryReceipt(state=state, error=error)


def open_of(turn: TurnId) -> Work[Delivery | None]:
    rows = yield (
        f"select {_COLUMNS} from deliveries where turn = ? and state = 'open'",  # noqa: S608
        (turn,),
    )
    return _delivery(rows[0]) if rows else None


def complete(turn: TurnId, content: Content | None, now: float) -> Work[None]:
    """Makes the turn's open delivery ready to send. Without content there is nothing to send, so
    the delivery is marked as delivered."""
    yield (
        "update deliveries set state = ?, content = ?, finished_at = ?"
        " where turn = ? and state = 'open'",
        (
            "ready" if content else "delivered",
            encode(content or Content(text="")),
            None if content else now,
            turn,
        ),
    )


def pass_on(turn: TurnId, other: TurnId) -> Work[None]:
    """Gives the open delivery of a turn to another turn, together with its preview: the message in
    the chat that already shows a part of the answer."""
    yield "update deliveries set turn = ? where turn = ? and state = 'open'", (other, turn)


def owe_again(turn: TurnId, content: Content, agent: str, now: float) -> Work[None]:
    """Adds a delivery to the chat of the turn's last delivery. Does nothing if the turn has no
    delivery."""
    rows = yield (
        "select account, chat_id, thread_id from deliveries"
        " where turn = ? order by seq desc limit 1",
        (turn,),
    )
    for account, chat_id, thread_id in rows:
        target = Target(account=account, chat_id=chat_id, thread_id=thread_id)
        yield from owe(target, content, agent, turn, now)


def has_been_owed(account: str, chat_id: str) -> Work[bool]:
    """Returns whether the store has a delivery to this chat. The result is False for chats of the
    API, and for chats whose deliveries are so old that they were deleted."""
    rows = yield (
        "select 1 from deliveries where account = ? and chat_id = ? limit 1",
        (account, chat_id),
    )
    return bool(rows)


def take_next(
    account: str, chat_id: str, lease: tuple[OwnerId, int], now: float
) -> Work[Delivery | None]:
    """Returns the chat's oldest pending delivery, even if it is not due yet; None if no delivery is
    pending. Marks a delivery that is due as *sending*.

    Only the process that serves the account gets a delivery. If the delivery is *sending* already,
    an attempt to send it was interrupted. The delivery is then doubtful: perhaps the chat has
    already got it.

    A delivery that can't be read, or whose chat is gone, is marked as *dead* and is not returned.
    There is one exception: a dead delivery that was meant to show a question is returned, so that
    the caller resumes the turn that waits for the answer.
    """
    owner, epoch = lease
    rows = yield (
        f"select {_COLUMNS}, (select reason from gone_chats"  # noqa: S608
        " where gone_chats.account = deliveries.account"
        " and gone_chats.chat_id = deliveries.chat_id) from deliveries"
        " where account = ? and chat_id = ? and state in ('ready', 'sending')"
        " and exists (select 1 from leases where name = ? and owner = ? and epoch = ?)"
        " order by seq limit 1",
        (account, chat_id, f"account:{account}", owner, epoch),
    )
    if not rows:
        return None
    *columns, gone = rows[0]
    try:
        found = _delivery(tuple(columns))
    except msgspec.DecodeError as error:
        log.error("delivery %s to %s can't be read, it is dead: %s", rows[0][0], account, error)
        if (yield from mark_dead(rows[0][0], rows[0][8], f"can't be read: {error}", now)):
            return _dead(rows[0][0], account, chat_id)
        return (yield from take_next(account, chat_id, lease, now))
    if gone is not None:
        log.error("a message to %s is not sent, because its chat is gone: %s", account, gone)
        asked = yield from give_up_chat(account, chat_id, gone, now)
        return _dead(found.id, account, chat_id) if asked else None
    if found.not_before > now:
        return found
    doubtful = found.doubtful or found.state == "sending"
    yield (
        "update deliveries set state = 'sending', attempts = attempts + 1, doubtful = ?"
        " where id = ?",
        (int(doubtful), found.id),
    )
    return msgspec.structs.replace(
        found, state="sending", attempts=found.attempts + 1, doubtful=doubtful
    )


def _dead(id: str, account: str, chat_id: str) -> Delivery:
    target = Target(account=account, chat_id=chat_id)
    return Delivery(id=id, target=target, state="dead", content=Content(text=""))


def mark_previewed(id: str, epoch: int, placed: tuple[Placed, ...]) -> Work[None]:
    """Stores the ids of the chat messages that show a preview (the growing answer), unless another
    process has taken the turn over."""
    yield (
        "update deliveries set placed = ?, doubtful = 0 where id = ? and state = 'open'"
        " and exists (select 1 from turns where turns.id = deliveries.turn and epoch = ?)",
        (encode(placed), id, epoch),
    )


def mark_placed(id: str, attempt: int, placed: tuple[Placed, ...]) -> Work[None]:
    """Stores the ids of the messages that this attempt has sent. If a later attempt has begun,
    nothing is changed, because another process may serve the account now. The same applies to all
    functions of this module that take an `attempt`.
    """
    yield (
        "update deliveries set placed = ?, doubtful = 0"
        " where id = ? and attempts = ? and state = 'sending'",
        (encode(placed), id, attempt),
    )


def mark_delivered(id: str, attempt: int, placed: tuple[Placed, ...], now: float) -> Work[None]:
    yield (
        "update deliveries set state = 'delivered', placed = ?, finished_at = ?"
        " where id = ? and attempts = ? and state = 'sending'",
        (encode(placed), now, id, attempt),
    )


def mark_dead(id: str, attempt: int, error: str, now: float) -> Work[bool]:
    """Marks the delivery as *dead*: it is never sent. If the delivery was meant to show a question,
    closes the question and returns True."""
    return (yield from _give_up("id = ? and attempts = ?", (id, attempt), error, now))


def give_up_chat(account: str, chat_id: str, reason: str, now: float) -> Work[bool]:
    """Records that nothing can be sent to the chat, and marks its pending deliveries as *dead*:
    they are never sent. Closes the questions that these deliveries were meant to show, and returns
    whether there were such questions."""
    yield from chats.mark_gone(account, chat_id, reason, now)
    return (yield from _give_up("account = ? and chat_id = ?", (account, chat_id), reason, now))


def _give_up(condition: str, values: tuple[str | int, ...], error: str, now: float) -> Work[bool]:
    pending = f"{condition} and state in ('ready', 'sending')"
    asked = yield from approvals.mark_undelivered(pending, *values)
    yield (
        f"update deliveries set state = 'dead', error = ?, finished_at = ? where {pending}",  # noqa: S608
        (storable(error), now, *values),
    )
    return asked


def refuse_file(delivery: Delivery, error: str, notice: Content, now: float) -> Work[None]:
    """Marks the delivery of a file as *dead*, and adds a delivery of `notice`, which tells the
    person that the file was not sent."""
    rows = yield (
        "update deliveries set state = 'dead', error = ?, finished_at = ?"
        " where id = ? and attempts = ? and state = 'sending' returning agent",
        (storable(error), now, delivery.id, delivery.attempts),
    )
    for (agent,) in rows:
        yield from owe(delivery.target, notice, agent, None, now)


def put_back(
    id: str, attempt: int, placed: tuple[Placed, ...], not_before: float, *, doubtful: bool
) -> Work[None]:
    """Makes the delivery ready again, and stores the ids of the messages that the failed attempt
    has sent. Does nothing if the delivery is finished, so that a process that no longer serves the
    account can't cause the message to be sent twice."""
    yield (
        "update deliveries set state = 'ready', placed = ?, not_before = ?,"
        " doubtful = case when ? = 1 then 1 else doubtful end"
        " where id = ? and attempts = ? and state = 'sending'",
        (encode(placed), not_before, int(doubtful), id, attempt),
    )


def doubt_sending(account: str) -> Work[None]:
    """Marks as doubtful the deliveries whose sending was interrupted by a crash, because their
    messages may have arrived."""
    yield (
        "update deliveries set state = 'ready', doubtful = 1"
        " where account = ? and state = 'sending'",
        (account,),
    )


def doubt_owed() -> Work[int]:
    """Marks all pending deliveries as doubtful after a snapshot was restored, because they may have
    been sent after the snapshot was taken. Returns the number of these deliveries."""
    rows = yield (
        "update deliveries set state = 'ready', doubtful = 1"
        " where state in ('ready', 'sending') returning id",
        (),
    )
    return len(rows)


def owed_chats(account: str) -> Work[list[str]]:
    rows = yield (
        "select distinct chat_id from deliveries"
        " where account = ? and state in ('ready', 'sending')",
        (account,),
    )
    return [row[0] for row in rows]


def owed_before(id: str) -> Work[bool]:
    """Returns whether the chat has an older pending delivery, which must be sent first."""
    rows = yield (
        "select 1 from deliveries mine join deliveries older"
        " on older.account = mine.account and older.chat_id = mine.chat_id"
        " and older.seq < mine.seq and older.state in ('ready', 'sending')"
        " where mine.id = ? limit 1",
        (id,),
    )
    return bool(rows)


def freeze(account: str, chat_id: str, until: float) -> Work[None]:
    yield (
        "insert into freezes (account, chat_id, until) values (?, ?, ?)"
        " on conflict (account, chat_id) do update set until = excluded.until"
        " where excluded.until > freezes.until",
        (account, chat_id, until),
    )


def freezes(account: str, now: float) -> Work[dict[str, float]]:
    """Returns the chats to which sending is paused, each with the time at which the pause ends."""
    rows = yield (
        "select chat_id, until from freezes where account = ? and until > ?",
        (account, now),
    )
    return dict(rows)


def _delivery(row: Row) -> Delivery:
    id, account, chat_id, thread_id, state, content, turn, placed, *rest = row
    attempts, not_before, doubt, send_key, session = rest
    return Delivery(
        id=id,
        target=Target(account=account, chat_id=chat_id, thread_id=thread_id),
        state=state,
        content=decode_content(content),
        turn=turn,
        placed=decode_placed(placed),
        attempts=attempts,
        not_before=not_before,
        doubtful=bool(doubt),
        send_key=send_key,
        session=session,
    )
