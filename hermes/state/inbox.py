"""What was said to us and is not finished yet: the durable way in."""

from collections.abc import Collection
from contextlib import suppress

import msgspec

from hermes.state import bodies
from hermes.state.codec import checksum, decode_event, encode
from hermes.types.identity import AgentId, OwnerId, PersonId, SessionKey
from hermes.types.messages import Duplicate, MessageEvent
from hermes.types.store import Row, Work
from hermes.types.value import Value


class Waiting(Value):
    """A row that no turn has taken yet."""

    id: str
    session: str
    person: PersonId | None
    account: str
    chat_id: str
    event: MessageEvent | None
    """None if it can't be read, for example because a newer version wrote it."""


def insert(
    id: str,
    event: MessageEvent,
    session: SessionKey,
    person: PersonId | None,
    owner: OwnerId,
    state: str = "pending",
) -> Work[Duplicate | None]:
    """Takes the event in; the earlier row when its key is known already.

    Bound or done at once, it is answered by the turn of its own id.
    """
    source, body = event.source, encode(event)
    kept, name = yield from bodies.store(body)
    taken = yield (
        "insert into inbox (id, dedupe_key, fingerprint, session, agent, person, account, chat_id,"
        " user_id, state, turn, owner, event, body_name, crc, received_at)"
        " values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " on conflict (dedupe_key) do nothing returning seq",
        (
            id,
            event.dedupe_key,
            event.fingerprint,
            str(session),
            session.agent,
            person,
            source.account,
            source.chat_id,
            source.user_id,
            state,
            None if state == "pending" else id,
            owner,
            kept,
            name,
            checksum(body),
            event.received_at,
        ),
    )
    return None if taken else (yield from find(event))


def find(event: MessageEvent) -> Work[Duplicate | None]:
    """The row that was taken in under the event's key, if there is one."""
    rows = yield (
        "select id, turn, fingerprint, after_seq from inbox where dedupe_key = ?",
        (event.dedupe_key,),
    )
    if not rows:
        return None
    id, turn, fingerprint, after = rows[0]
    same = fingerprint == event.fingerprint
    return Duplicate(id=id, turn=turn, same=same, after=after)


def release_key(id: str) -> Work[None]:
    """Lets another message have the key of the row."""
    yield "update inbox set dedupe_key = 'released:' || id where id = ?", (id,)


_WAITING = "id, session, person, account, chat_id, event, crc, body_name"


def first_pending(session: str, owner: OwnerId) -> Work[Waiting | None]:
    """The session's oldest row of ours that no turn has taken."""
    rows = yield (
        f"select {_WAITING} from inbox"  # noqa: S608
        " where session = ? and state = 'pending' and owner = ? order by seq limit 1",
        (session, owner),
    )
    return (yield from _waiting(rows[0])) if rows else None


def all_pending() -> Work[list[Waiting]]:
    """Every row that no turn has taken, the oldest first."""
    rows = yield f"select {_WAITING} from inbox where state = 'pending' order by seq", ()  # noqa: S608
    found = []
    for row in rows:
        found.append((yield from _waiting(row)))
    return found


def _waiting(row: Row) -> Work[Waiting]:
    id, session, person, account, chat_id, kept, crc, name = row
    body = yield from bodies.read(kept, name)
    event: MessageEvent | None = None
    with suppress(msgspec.DecodeError):
        event = decode_event(body, crc)
    return Waiting(
        id=id, session=session, person=person, account=account, chat_id=chat_id, event=event
    )


def count_pending(session: str) -> Work[int]:
    rows = yield "select count(*) from inbox where session = ? and state = 'pending'", (session,)
    count: int = rows[0][0]
    return count


def bind(id: str, turn: str, state: str = "bound") -> Work[None]:
    """Ties the row to the turn that answers it; 'done' when nothing more is owed."""
    yield "update inbox set state = ?, turn = ? where id = ?", (state, turn, id)


def set_after(id: str, after: int) -> Work[None]:
    """Notes that the answer to the row begins after this event of its turn."""
    yield "update inbox set after_seq = ? where id = ?", (after, id)


def finish(turn: str) -> Work[None]:
    """The message that opened the turn is answered; its id is the turn's."""
    yield "update inbox set state = 'done' where id = ? and state = 'bound'", (turn,)


def event_of(id: str) -> Work[MessageEvent]:
    """The message in the row; the id of a turn is that of the message that opened it."""
    rows = yield "select event, body_name, crc from inbox where id = ?", (id,)
    kept, name, crc = rows[0]
    return decode_event((yield from bodies.read(kept, name)), crc)


def adopt(dead: list[OwnerId], owner: OwnerId, agents: Collection[AgentId]) -> Work[None]:
    """Takes over the agents' messages that dead processes had accepted and not begun."""
    marks = ", ".join("?" for _ in agents)
    for gone in dead:
        yield (
            "update inbox set owner = ? where owner = ? and state = 'pending'"  # noqa: S608
            f" and agent in ({marks})",
            (owner, gone, *agents),
        )


def waiting_agents(owner: OwnerId) -> Work[set[AgentId]]:
    """The agents for which messages of the owner wait."""
    rows = yield "select distinct agent from inbox where state = 'pending' and owner = ?", (owner,)
    return {AgentId(row[0]) for row in rows}


def idle_sessions(owner: OwnerId) -> Work[list[str]]:
    """Sessions in which rows of ours wait and no turn is open."""
    rows = yield (
        "select distinct session from inbox i where state = 'pending' and owner = ?"
        " and not exists (select 1 from turns t"
        " where t.session = i.session and t.state in ('running', 'suspended'))",
        (owner,),
    )
    return [row[0] for row in rows]
