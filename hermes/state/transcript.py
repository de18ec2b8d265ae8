"""What was said in a session, and how a conversation begins anew."""

from hermes.state.codec import decode_message, encode
from hermes.types.identity import PersonId, SessionKey, Source
from hermes.types.messages import AssistantMessage, Message, ToolMessage, UserMessage
from hermes.types.protocols import Work
from hermes.types.value import Value


class Scribe(Value):
    """Where a turn's messages are written."""

    turn: str
    session: SessionKey
    generation: int
    transient: bool
    """Of a stateless request: kept for a resume and a replay, in no transcript and no search."""
    account: str
    person: PersonId | None


class History(Value):
    """What was said in a generation of a session, up to a row."""

    generation: int
    last: int = 0
    """The newest row of it: later ones are added, none is ever changed."""
    messages: tuple[Message, ...] = ()


class Found(Value):
    """A message that a search found."""

    session: str
    role: str
    text: str
    at: float


def touch_session(
    key: SessionKey, source: Source, person: PersonId | None, now: float
) -> Work[int]:
    """The session's generation: how often it was begun anew."""
    rows = yield (
        "insert into sessions (key, agent, platform, account, chat_kind, chat_id, thread_id,"
        " user_id, person, created_at, updated_at) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " on conflict (key) do update set updated_at = excluded.updated_at returning generation",
        (
            str(key),
            key.agent,
            key.platform,
            source.account,
            key.kind,
            source.chat_id,
            source.thread_id,
            source.user_id,
            person,
            now,
            now,
        ),
    )
    generation: int = rows[0][0]
    return generation


def begin_anew(session: str) -> Work[None]:
    """What follows starts from nothing; what was said stays and can be searched."""
    yield "update sessions set generation = generation + 1 where key = ?", (session,)


def append(scribe: Scribe, step: int, index: int, message: Message, now: float) -> Work[None]:
    """Adds a message at its place in the turn; a repeat changes nothing."""
    yield (
        "insert into messages (session, generation, turn, step, idx, role, body, text, transient,"
        " agent, person, account, chat_id, at)"
        " values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict do nothing",
        (
            str(scribe.session),
            scribe.generation,
            scribe.turn,
            step,
            index,
            role(message),
            encode(message),
            "" if isinstance(message, ToolMessage) else message.text,
            int(scribe.transient),
            scribe.session.agent,
            scribe.person,
            scribe.account,
            scribe.session.chat,
            now,
        ),
    )


def history(session: str, known: "History") -> Work["History"]:
    """All that was said in the session, as far as it is not known already."""
    rows = yield (
        "select id, body from messages where session = ? and generation = ? and transient = 0"
        " and id > ? order by id",
        (session, known.generation, known.last),
    )
    if not rows:
        return known
    messages = (*known.messages, *(decode_message.decode(row[1]) for row in rows))
    return History(generation=known.generation, last=rows[-1][0], messages=messages)


def of_turn(turn: str) -> Work[list[Message]]:
    rows = yield "select body from messages where turn = ? order by step, idx", (turn,)
    return [decode_message.decode(row[0]) for row in rows]


def search(
    query: str, agent: str, session: str | None = None, limit: int = 20
) -> Work[list[Found]]:
    """Messages of the agent that hold all the words, best first."""
    words = query.replace("\0", " ").replace('"', " ").split()
    if not words:
        return []
    # The one statement of this package that is SQLite's own: every driver has its full-text index.
    within = "" if session is None else " and m.session = ?"
    rows = yield (
        "select m.session, m.role, m.text, m.at from messages_fts f"  # noqa: S608
        " join messages m on m.id = f.rowid"
        f" where messages_fts match ? and m.agent = ? and m.transient = 0{within}"
        " order by rank limit ?",
        (
            " ".join(f'"{word}"' for word in words),
            agent,
            *(() if session is None else (session,)),
            limit,
        ),
    )
    return [Found(session=key, role=who, text=text, at=at) for key, who, text, at in rows]


def role(message: Message) -> str:
    match message:
        case UserMessage():
            return "user"
        case AssistantMessage():
            return "assistant"
        case ToolMessage():
            return "tool"
