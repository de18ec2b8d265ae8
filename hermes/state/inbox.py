"""The inbox: accepted messages that are not answered yet."""

from collections.abc import Collection
from contextlib import suppress

import msgspec

from hermes.state import bodies
from hermes.state.codec import checksum, decode_event, encode
from hermes.types.identity import AgentId, FolderId, OwnerId, PersonId, SessionKey, TurnId
from hermes.types.messages import Duplicate, MessageEvent, Said
from hermes.types.store import Row, Work
from hermes.types.value import Value


class Waiting(Value):
    """A message in the inbox that no turn has taken yet."""

    id: str
    session: str
    person: PersonId | None
    account: str
    chat_id: str
    event: MessageEvent | None
    """The event of the row; None if it can't be read, for example because a newer version wrote
    it."""
    folder: FolderId | None = None
    """The folder with the files that the turn needs; None if the turn can run on any node."""
    awaits: str | None = None
    """Says which further parts of the message may still arrive. `state.message_parts` defines the
    values. None for a message that does not have parts."""
    not_before: float = 0.0
    """The time before which the message's turn is not opened, because further parts may arrive."""
    replaces: TurnId | None = None
    """The turn that was stopped because its message was edited. This message has the new text."""


def insert(
    id: str,
    event: MessageEvent,
    session: SessionKey,
    person: PersonId | None,
    owner: OwnerId,
    state: str = "pending",
    folder: FolderId | None = None,
) -> Work[Duplicate | None]:
    """Inserts the event and returns None. If a row with the event's dedupe key exists already,
    inserts nothing and returns a Duplicate that describes that row.

    If `state` is bound or done, the row belongs to the turn whose id is `id`. `folder` is the
    folder with the event's attachments.
    """
    source, body = event.source, encode(event)
    kept, name = yield from bodies.store(body)
    taken = yield (
        "insert into inbox (id, dedupe_key, fingerprint, session, agent, person, account, chat_id,"
        " user_id, state, turn, owner, folder, event, body_name, crc, received_at, message_id)"
        " values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
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
            folder,
            kept,
            name,
            checksum(body),
            event.received_at,
            _message_id(event),
        ),
    )
    return None if taken else (yield from find(event))


def _message_id(event: MessageEvent) -> str | None:
    return event.body.message_id if isinstance(event.body, Said) else None


def replace_event(id: str, event: MessageEvent) -> Work[None]:
    """Replaces the event of a row. The row keeps its dedupe key."""
    body = encode(event)
    kept, name = yield from bodies.store(body)
    yield (
        "update inbox set event = ?, body_name = ?, crc = ?, message_id = ? where id = ?",
        (kept, name, checksum(body), _message_id(event), id),
    )


def rewrite(
    id: str, event: MessageEvent, session: SessionKey, state: str, folder: FolderId | None = None
) -> Work[None]:
    """Replaces the event, session, state and folder of a row. The dedupe key, the person and the
    sender stay the same."""
    yield from replace_event(id, event)
    yield (
        "update inbox set session = ?, agent = ?, state = ?, turn = ?, folder = ? where id = ?",
        (str(session), session.agent, state, None if state == "pending" else id, folder, id),
    )


def find(event: MessageEvent) -> Work[Duplicate | None]:
    """Returns a Duplicate that describes the row with the event's dedupe key, or None if there is
    no such row."""
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
    """Frees the dedupe key of the row, so that another message can use it."""
    yield "update inbox set dedupe_key = 'released:' || id where id = ?", (id,)


_WAITING = (
    "id, session, person, account, chat_id, event, crc, body_name,"
    " coalesce((select folder from sessions where key = inbox.session), folder),"
    " awaits, not_before, replaces"
)


_MAY_TAKE = (
    "session = ? and state = 'pending' and (owner = ? or not exists"
    " (select 1 from owners o where o.id in (?, inbox.owner) and o.kind = 'terminal'))"
)
"""An SQL condition for a row: the row belongs to the session, no turn has taken the row yet, and
the process is allowed to take the row."""


def first_pending(session: str, owner: OwnerId) -> Work[Waiting | None]:
    """Returns the session's oldest waiting row that this process may take; None if there is no such
    row. A row that replaces an edited message comes before all others. A gateway may take the rows
    of all gateways, so that a session's messages are answered in order. A terminal may take only
    its own rows.
    """
    parameters = (session, owner, owner)
    rows = yield (
        f"select {_WAITING} from inbox where seq = coalesce("  # noqa: S608
        f"(select seq from inbox where {_MAY_TAKE} and replaces is not null order by seq limit 1),"
        f" (select seq from inbox where {_MAY_TAKE} order by seq limit 1))",
        (*parameters, *parameters),
    )
    return (yield from _waiting(rows[0])) if rows else None


def all_pending() -> Work[list[Waiting]]:
    """Returns every row that no turn has taken, the oldest first."""
    rows = yield f"select {_WAITING} from inbox where state = 'pending' order by seq", ()  # noqa: S608
    found = []
    for row in rows:
        found.append((yield from _waiting(row)))
    return found


def _waiting(row: Row) -> Work[Waiting]:
    id, session, person, account, chat_id, kept, crc, name, folder, awaits, not_before, old = row
    body = yield from bodies.read(kept, name)
    event: MessageEvent | None = None
    with suppress(msgspec.DecodeError):
        event = decode_event(body, crc)
    return Waiting(
        id=id,
        session=session,
        person=person,
        account=account,
        chat_id=chat_id,
        event=event,
        folder=folder,
        awaits=awaits,
        not_before=not_before,
        replaces=old,
    )


def count_pending(session: str) -> Work[int]:
    rows = yield "select count(*) from inbox where session = ? and state = 'pending'", (session,)
    count: int = rows[0][0]
    return count


def waiting_in(session: str) -> Work[tuple[int, FolderId | None]]:
    """Returns two values: the number of the session's messages that no turn has taken, and the
    folder whose files the session's conversation has used. The folder is None if the conversation
    has used no files."""
    rows = yield (
        "select count(*), (select folder from sessions where key = ?) from inbox"
        " where session = ? and state = 'pending'",
        (session, session),
    )
    count, folder = rows[0]
    return count, folder


def bind(id: str, turn: str, state: str = "bound") -> Work[None]:
    """Assigns the row to the turn that answers it. The state 'done' means that the message needs no
    answer."""
    yield "update inbox set state = ?, turn = ? where id = ?", (state, turn, id)


def set_after(id: str, after: int) -> Work[None]:
    """Records that the answer to this message begins after event number `after` of the turn."""
    yield "update inbox set after_seq = ? where id = ?", (after, id)


def finish(turn: str) -> Work[None]:
    """Marks the messages of the turn as answered: the message that opened the turn, the further
    parts of this message, and the messages that have steered the turn. The message that opened the
    turn has the same id as the turn."""
    yield (
        "update inbox set state = 'done' where state = 'bound'"
        " and (id = ? or (turn = ? and turn <> id))",
        (turn, turn),
    )


def event_of(id: str) -> Work[MessageEvent]:
    """Returns the message with this id. The message that opened a turn has the same id as the
    turn."""
    rows = yield "select event, body_name, crc from inbox where id = ?", (id,)
    kept, name, crc = rows[0]
    return decode_event((yield from bodies.read(kept, name)), crc)


def adopt(dead: list[OwnerId], owner: OwnerId, agents: Collection[AgentId]) -> Work[None]:
    """Takes over waiting messages that dead processes have accepted, if the messages are for these
    agents."""
    marks = ", ".join("?" for _ in agents)
    for gone in dead:
        yield (
            "update inbox set owner = ? where owner = ? and state = 'pending'"  # noqa: S608
            f" and agent in ({marks})",
            (owner, gone, *agents),
        )


def waiting_agents(owner: OwnerId) -> Work[set[AgentId]]:
    """Returns the agents of all waiting messages that this process (`owner`) has accepted."""
    rows = yield "select distinct agent from inbox where state = 'pending' and owner = ?", (owner,)
    return {AgentId(row[0]) for row in rows}


def idle_sessions(owner: OwnerId) -> Work[list[str]]:
    """Returns the sessions of the waiting messages that this process (`owner`) has accepted.
    Sessions with an open turn are left out."""
    rows = yield (
        "select distinct session from inbox i where state = 'pending' and owner = ?"
        " and not exists (select 1 from turns t"
        " where t.session = i.session and t.state in ('running', 'suspended'))",
        (owner,),
    )
    return [row[0] for row in rows]


def idle_sessions_of(owner: OwnerId, folder: FolderId) -> Work[list[str]]:
    """Returns the sessions with a waiting row that this gateway has to answer. `owner` is the id of
    this gateway, and `folder` is its folder. A row that needs a folder is answered by any gateway
    with that folder. A row that needs no folder is answered by the gateway that has accepted the
    row. Sessions with an open turn are left out, and so are the rows of terminals."""
    rows = yield (
        "select distinct i.session from inbox i left join sessions s on s.key = i.session"
        " where i.state = 'pending' and case when coalesce(s.folder, i.folder) is null"
        " then i.owner = ? else coalesce(s.folder, i.folder) = ? end"
        " and not exists (select 1 from owners o where o.id = i.owner and o.kind = 'terminal')"
        " and not exists (select 1 from turns t"
        " where t.session = i.session and t.state in ('running', 'suspended'))",
        (owner, folder),
    )
    return [row[0] for row in rows]


def idle_sessions_needing(folder: FolderId) -> Work[list[str]]:
    """Returns the idle sessions that have waiting messages and need the folder."""
    rows = yield (
        "select distinct i.session from inbox i left join sessions s on s.key = i.session"
        " where i.state = 'pending' and coalesce(s.folder, i.folder) = ?"
        " and not exists (select 1 from turns t"
        " where t.session = i.session and t.state in ('running', 'suspended'))",
        (folder,),
    )
    return [row[0] for row in rows]
