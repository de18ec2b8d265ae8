"""Sessions: when they were used last, the prompt of their epoch, and how they begin anew."""

import hashlib

import msgspec

from hermes.state import conversations
from hermes.state.codec import decode_prompt, encode
from hermes.types.identity import PersonId, SessionKey, Source
from hermes.types.store import Row, Work
from hermes.types.turns import Prompt
from hermes.types.value import Value

TITLE_CHARS = 60
TITLE_SEARCHED_CHARS = 4096
"""Characters of a message in which the words of a title are looked for."""


class SessionRow(Value):
    """A session as a turn finds it."""

    generation: int
    """How often it was begun anew."""
    created_at: float
    """Tells it from one of the same key that was deleted."""
    used_before: float | None
    """When the turn before this one began."""
    prompt: str | None
    """The hash of its epoch's prompt."""
    compaction: int
    """The newest summary in it."""
    model: str | None = None
    """The `provider/model` that a person has chosen for it; None for the agent's own model."""


class EndedConversation(Value):
    """A conversation that is over, whose memory has not been looked after yet."""

    session: str
    generation: int
    ended_at: float


class SessionOwner(Value):
    """Where a session is, and with whom."""

    source: Source
    person: PersonId | None


def touch(
    key: SessionKey, source: Source, person: PersonId | None, title: str, now: float
) -> Work[SessionRow]:
    """Uses the session, and makes it where there is none."""
    rows = yield (
        "insert into sessions (key, agent, platform, account, chat_kind, chat_id, thread_id,"
        " user_id, person, title, created_at, updated_at)"
        " values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " on conflict (key) do update set used_before = sessions.updated_at,"
        " title = coalesce(sessions.title, excluded.title),"
        " updated_at = excluded.updated_at, person = excluded.person"
        " returning generation, created_at, used_before, prompt, compaction,"
        " (select model from session_models where session = sessions.key)",
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
            titled(title),
            now,
            now,
        ),
    )
    return _row(rows[0])


def find(session: str) -> Work[SessionRow | None]:
    """The session as it is between two turns, and for one that is gone on with."""
    rows = yield (
        "select generation, created_at, updated_at, prompt, compaction,"
        " (select model from session_models where session = sessions.key)"
        " from sessions where key = ?",
        (session,),
    )
    return _row(rows[0]) if rows else None


def get(session: str) -> Work[SessionRow]:
    """The session of a turn that is gone on with."""
    found = yield from find(session)
    assert found is not None, f"a turn of {session} without its session"
    return found


def rename(session: str, title: str) -> Work[None]:
    yield "update sessions set title = ? where key = ?", (titled(title), session)


def model_of(session: str) -> Work[str | None]:
    """The `provider/model` that a person has chosen for the session; None for the agent's own."""
    rows = yield "select model from session_models where session = ?", (session,)
    return rows[0][0] if rows else None


def set_model(session: str, model: str | None) -> Work[None]:
    """Chooses the model of the session, which need not exist yet; None for the agent's own."""
    if model is None:
        yield "delete from session_models where session = ?", (session,)
        return
    yield (
        "insert into session_models (session, model) values (?, ?)"
        " on conflict (session) do update set model = excluded.model",
        (session, model),
    )


def begin_anew(session: str, now: float) -> Work[None]:
    """What follows starts from nothing; what was said stays and can be searched."""
    yield (
        "insert into endings (session, generation, ended_at)"
        " select key, generation, ? from sessions where key = ? on conflict do nothing",
        (now, session),
    )
    yield from conversations.end_current(session)
    yield from set_model(session, None)


def take_ending(
    now: float, patience: float, session: str | None = None
) -> Work[EndedConversation | None]:
    """The oldest, of a session if one is named, that nobody looks after, or that somebody has for
    too long; it is ours now."""
    rows = yield (
        "update endings set taken_at = ? where (session, generation) in"
        " (select session, generation from endings"
        " where coalesce(taken_at, 0) < ? and session = coalesce(?, session)"
        " order by ended_at limit 1) returning session, generation, ended_at",
        (now, now - patience, session),
    )
    if not rows:
        return None
    session, generation, ended_at = rows[0]
    return EndedConversation(session=session, generation=generation, ended_at=ended_at)


def owner_of(session: str) -> Work[SessionOwner | None]:
    rows = yield (
        "select platform, account, chat_kind, chat_id, user_id, thread_id, person"
        " from sessions where key = ?",
        (session,),
    )
    if not rows:
        return None
    platform, account, kind, chat, user, thread, person = rows[0]
    source = Source(
        platform=platform,
        account=account,
        chat_kind=kind,
        chat_id=chat,
        user_id=user,
        thread_id=thread,
    )
    return SessionOwner(source=source, person=person)


def forget_ending(ending: EndedConversation) -> Work[None]:
    yield (
        "delete from endings where session = ? and generation = ?",
        (ending.session, ending.generation),
    )


def keep_prompt(session: str, generation: int, prompt: Prompt) -> Work[None]:
    """The session's epoch has this prompt from now on, unless it was begun anew meanwhile."""
    body = encode(prompt)
    name = hashlib.sha256(body).hexdigest()
    yield "insert into prompts (hash, body) values (?, ?) on conflict do nothing", (name, body)
    yield (
        "update sessions set prompt = ? where key = ? and generation = ?",
        (name, session, generation),
    )


def prompt_of(name: str) -> Work[Prompt | None]:
    rows = yield "select body from prompts where hash = ?", (name,)
    try:
        return decode_prompt(rows[0][0]) if rows else None
    except msgspec.DecodeError:
        # A new epoch costs little; a session that can't be used any more would not.
        return None


def forget_prompts() -> Work[None]:
    """Drops the prompts of epochs that are over."""
    yield (
        "delete from prompts where hash not in"
        " (select prompt from sessions where prompt is not null)",
        (),
    )


def _row(row: Row) -> SessionRow:
    return SessionRow(**dict(zip(SessionRow.__struct_fields__, row, strict=True)))


def titled(text: str) -> str:
    """The first words of a message, as the name of a conversation."""
    # To split a text of megabytes would keep all other threads waiting.
    line = " ".join(text.lstrip()[:TITLE_SEARCHED_CHARS].split())
    return line if len(line) <= TITLE_CHARS else f"{line[: TITLE_CHARS - 1].rstrip()}…"
