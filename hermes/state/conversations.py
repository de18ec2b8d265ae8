"""Conversations as `hermes sessions list` shows them: the current conversation of each session, and
the past conversations that /new has ended."""

import re

from hermes.state import approvals, bodies
from hermes.types.store import Row, Work
from hermes.types.value import Value

SHORT_ID_CHARS = 8
"""Number of characters of a random chat name that are shown. They are the last characters of the
name."""
SHORTEST_END = 6
"""A session can be selected by the beginning or the end of its chat name. The end must have at
least this number of characters."""

_MADE_NAME = re.compile(r"[0-9a-f]{21}")


class Summary(Value):
    """One conversation in a list of conversations, without its messages."""

    key: str
    """The key of the conversation's session."""
    title: str
    platform: str
    chat: str
    """The id of the chat on the platform. People use it to name the conversation's session."""
    messages: int
    created_at: float
    updated_at: float
    generation: int
    """Number of earlier conversations in the same session."""
    current: bool
    """Whether the next message of the session belongs to this conversation."""
    number: int = 0
    """The conversation's number in the list of all conversations, from 1; 0 if the conversation was
    not read from that list."""
    id: str = ""
    """A short name that selects the conversation."""


_CONVERSATIONS = """
with conversations as (
    select key, generation, coalesce(title, '') as title, platform, chat_id, created_at,
        updated_at, 1 as current
        from sessions
    union all
    select past.session, past.generation, past.title, sessions.platform, sessions.chat_id,
        past.created_at, past.updated_at, 0
        from past_conversations past join sessions on sessions.key = past.session
)
"""
_COLUMNS = """
select key, title, platform, chat_id,
    (select count(*) from messages where messages.session = found.key
        and messages.generation = found.generation and messages.transient = 0),
    created_at, updated_at, generation, current
"""
_NUMBERED = f"""
{_CONVERSATIONS} {_COLUMNS}, number from (
    select *, row_number() over (order by updated_at desc, key, generation desc) as number
    from conversations where exists (
        select 1 from messages where messages.session = conversations.key
            and messages.generation = conversations.generation and messages.transient = 0
    )
) found
"""  # noqa: S608  # constants only


def listed(platform: str | None = None, limit: int = 50) -> Work[list[Summary]]:
    """Returns the conversations that have messages, the most recently used first."""
    rows = yield (
        f"{_NUMBERED} where platform = coalesce(?, platform) order by number limit ?",
        (platform, limit),
    )
    return [_summary(row) for row in rows]


def numbered(number: int) -> Work[list[Summary]]:
    """Returns a list with the conversation that has this number; an empty list if there is no
    such number."""
    rows = yield f"{_NUMBERED} where number = ?", (number,)
    return [_summary(row) for row in rows]


def latest(platform: str) -> Work[Summary | None]:
    """Returns the current conversation of the platform's most recently used session; None if the
    platform has no session."""
    rows = yield (
        f"{_CONVERSATIONS} {_COLUMNS} from conversations found"
        " where current = 1 and platform = ? order by updated_at desc limit 1",
        (platform,),
    )
    return _summary(rows[0]) if rows else None


def named(name: str) -> Work[list[Summary]]:
    """Returns the current conversation of each session whose key or chat id is `name`; an empty
    list if there is no such session."""
    rows = yield (
        f"{_CONVERSATIONS} {_COLUMNS} from conversations found"
        " where current = 1 and (key = ? or chat_id = ?)",
        (name, name),
    )
    return [_summary(row) for row in rows]


def resembling(name: str) -> Work[list[Summary]]:
    """Returns the current conversations of the sessions whose chat name begins with `name`. If
    `name` has at least SHORTEST_END characters, it may also be the end of the chat name."""
    escaped = name.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    ending = f"%{escaped}" if len(name) >= SHORTEST_END else f"{escaped}%"
    rows = yield (
        f"{_CONVERSATIONS} {_COLUMNS} from conversations found where current = 1"
        " and (chat_id like ? escape '\\' or chat_id like ? escape '\\')"
        " order by updated_at desc limit 20",
        (f"{escaped}%", ending),
    )
    return [_summary(row) for row in rows]


def of_generation(session: str, generation: int) -> Work[list[Summary]]:
    """Returns a list with the session's conversation of this generation (the number of
    conversations before it in the session). The list is empty if there is no such conversation."""
    rows = yield (
        f"{_CONVERSATIONS} {_COLUMNS} from conversations found where key = ? and generation = ?",
        (session, generation),
    )
    return [_summary(row) for row in rows]


def current(session: str) -> Work[Summary | None]:
    """Returns the current conversation of the session; None if it has no messages."""
    rows = yield (
        f"{_CONVERSATIONS} {_COLUMNS} from conversations found where key = ? and current = 1",
        (session,),
    )
    found = [_summary(row) for row in rows]
    return found[0] if found and found[0].messages else None


def of_person(session: str, person: str, limit: int) -> Work[list[Summary]]:
    """Returns the conversations of the session in which the person has written, the most recently
    used first."""
    rows = yield (
        f"{_CONVERSATIONS} {_COLUMNS} from conversations found where key = ?"  # noqa: S608
        " and exists (select 1 from messages where messages.session = found.key"
        " and messages.generation = found.generation and messages.transient = 0"
        " and messages.person = ?) order by updated_at desc, generation desc limit ?",
        (session, person, limit),
    )
    return [_summary(row) for row in rows]


def of_message(number: int) -> Work[list[Summary]]:
    """Returns a list with the conversation that contains the message with this row number; an empty
    list if there is no such message."""
    rows = yield (
        f"{_CONVERSATIONS} {_COLUMNS} from conversations found where"  # noqa: S608
        " (key, generation) in (select session, generation from messages where id = ?)",
        (number,),
    )
    return [_summary(row) for row in rows]


def rename(one: Summary, title: str) -> Work[None]:
    if one.current:
        yield "update sessions set title = ? where key = ?", (title, one.key)
    else:
        yield (
            "update past_conversations set title = ? where session = ? and generation = ?",
            (title, one.key, one.generation),
        )


def end_current(session: str) -> Work[None]:
    """Ends the current conversation of the session and keeps it as a past conversation. The new
    current conversation is empty."""
    yield from approvals.end_session(session)
    yield (
        "insert into past_conversations"
        " (session, generation, title, folder, created_at, updated_at)"
        " select key, generation, coalesce(title, ''), folder,"
        " coalesce((select at from messages where messages.session = sessions.key"
        " and messages.generation = sessions.generation and messages.transient = 0"
        " order by messages.id limit 1), created_at), updated_at"
        " from sessions where key = ? and exists (select 1 from messages"
        " where messages.session = sessions.key and messages.generation = sessions.generation"
        " and messages.transient = 0)",
        (session,),
    )
    yield (
        "update sessions set generation = 1 + coalesce((select max(generation)"
        " from past_conversations where session = sessions.key"
        " and past_conversations.generation > sessions.generation), generation),"
        " title = null, prompt = null, compaction = 0, folder = null, summarise = 0"
        " where key = ?",
        (session,),
    )


def reopen(one: Summary) -> Work[None]:
    """Makes a past conversation the current conversation of its session again."""
    yield from end_current(one.key)
    yield (
        "update sessions set generation = ?, title = ?, compaction = coalesce((select max(id)"
        " from compactions where session = sessions.key and generation = ?), 0),"
        " folder = (select folder from past_conversations where session = sessions.key"
        " and past_conversations.generation = ?) where key = ?",
        (one.generation, one.title, one.generation, one.generation, one.key),
    )
    yield from _forget_past(one)


def delete(one: Summary) -> Work[None]:
    """Deletes a conversation. If its session has no other conversation, deletes the session too."""
    place = (one.key, one.generation)
    own = "(select id from turns where session = ? and generation = ?)"
    for table in ("calls", "run_events", "deliveries", "questions", "inbox"):
        yield f"delete from {table} where turn in {own}", place  # noqa: S608
    for table in ("messages", "compactions", "endings", "turns"):
        yield f"delete from {table} where session = ? and generation = ?", place  # noqa: S608
    # A delivery that is not the answer of a turn has no turn id, so it is found by its session.
    yield (
        "delete from deliveries where session = ? and state in ('delivered', 'dead')",
        (one.key,),
    )
    yield from _forget_past(one)
    if one.current:
        yield from end_current(one.key)
    left = yield "select 1 from messages where session = ? and transient = 0 limit 1", (one.key,)
    if not left:
        for table in ("inbox", "endings", "session_models", "past_conversations"):
            yield f"delete from {table} where session = ?", (one.key,)  # noqa: S608
        yield "delete from sessions where key = ?", (one.key,)
    yield from bodies.forget_unused()


def _forget_past(one: Summary) -> Work[None]:
    yield (
        "delete from past_conversations where session = ? and generation = ?",
        (one.key, one.generation),
    )


def _summary(row: Row) -> Summary:
    key, title, platform, chat, messages, created_at, updated_at, generation, current, *more = row
    return Summary(
        key=key,
        title=title,
        platform=platform,
        chat=chat,
        messages=messages,
        created_at=created_at,
        updated_at=updated_at,
        generation=generation,
        current=bool(current),
        number=next(iter(more), 0),
        id=short_id(chat, None if current else generation),
    )


def short_id(chat: str, past: int | None) -> str:
    """Returns the short name of a conversation. For a past conversation, `past` is its generation:
    the number of conversations before it in the session. For the current conversation, `past` is
    None."""
    name = chat[-SHORT_ID_CHARS:] if _MADE_NAME.fullmatch(chat) else chat
    return name if past is None else f"{name}.{past + 1}"
