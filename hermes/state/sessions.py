"""Sessions: their rows, their prompts, what people choose for them (such as the model), and the
start of a new conversation."""

import hashlib

import msgspec

from hermes.state import conversations
from hermes.state.codec import decode_prompt, encode
from hermes.state.storable import storable
from hermes.types.identity import AgentId, FolderId, PersonId, SessionKey, Source, Target
from hermes.types.store import Row, Work
from hermes.types.turns import Prompt
from hermes.types.value import Value

TITLE_CHARS = 60
TITLE_SEARCHED_CHARS = 4096
"""A title is made from at most this many characters at the start of a message."""
_CHOICES = (
    "(select model from session_models where session = sessions.key), folder, reasoning,"
    " personality, summarise"
)


class SessionRow(Value):
    """The row of a session."""

    generation: int
    """Number of conversations of the session that have ended."""
    created_at: float
    """Creation time of the session. It distinguishes the session from a deleted session with the
    same key."""
    used_before: float | None
    """Start time of the session's previous turn; None if there was no previous turn."""
    prompt: str | None
    """The hash of the session's stored system prompt; None if a new prompt must be written."""
    compaction: int
    """The id of the newest summary; 0 if there is none."""
    model: str | None = None
    """The `provider/model` that a person has chosen for the session; None for the agent's own
    model."""
    folder: FolderId | None = None
    """The folder with the files that the conversation has used; None if the conversation has used
    no files."""
    reasoning: str | None = None
    """The reasoning effort that a person has chosen for the session; None for the default of the
    model."""
    personality: str | None = None
    """The name of the personality that a person has chosen for the session; None if nobody has
    chosen a personality."""
    summarise: bool = False
    """Whether the next turn summarises the conversation first."""


class EndedConversation(Value):
    """A conversation that has ended, but whose notes are not in the agent's memory yet."""

    session: str
    generation: int
    ended_at: float


class SessionOwner(Value):
    """The source of a session's messages, and the person who has used the session last."""

    source: Source
    person: PersonId | None


def touch(
    key: SessionKey, source: Source, person: PersonId | None, title: str, now: float
) -> Work[SessionRow]:
    """Records a use of the session, and creates it if it does not exist."""
    rows = yield (
        "insert into sessions (key, agent, platform, account, chat_kind, chat_id, thread_id,"  # noqa: S608
        " user_id, person, title, created_at, updated_at)"
        " values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " on conflict (key) do update set used_before = sessions.updated_at,"
        " title = coalesce(sessions.title, excluded.title),"
        " updated_at = excluded.updated_at, person = excluded.person"
        " returning generation, created_at, used_before, prompt, compaction,"
        f" {_CHOICES}",
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
    """Returns the session, or None if it does not exist."""
    rows = yield (
        f"select generation, created_at, updated_at, prompt, compaction, {_CHOICES}"  # noqa: S608
        " from sessions where key = ?",
        (session,),
    )
    return _row(rows[0]) if rows else None


def get(session: str) -> Work[SessionRow]:
    """Returns a session that certainly exists, for example because it has a turn."""
    found = yield from find(session)
    assert found is not None, f"a turn of {session} without its session"
    return found


def use_folder(session: str, generation: int, folder: FolderId) -> Work[None]:
    """Records that the conversation uses files in the folder. Does nothing if the session has begun
    a new conversation since."""
    yield (
        "update sessions set folder = ? where key = ? and generation = ?",
        (folder, session, generation),
    )


def create_if_missing(
    key: SessionKey, source: Source, person: PersonId | None, now: float
) -> Work[None]:
    """Creates the session without a title, if it does not exist yet."""
    yield (
        "insert into sessions (key, agent, platform, account, chat_kind, chat_id, thread_id,"
        " user_id, person, created_at, updated_at) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " on conflict (key) do nothing",
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


def title_of(session: str) -> Work[str]:
    """Returns the title of the current conversation; "" if it has none."""
    rows = yield "select title from sessions where key = ?", (session,)
    return (rows[0][0] or "") if rows else ""


def rename(session: str, title: str) -> Work[None]:
    """Gives the current conversation of the session another title."""
    yield "update sessions set title = ? where key = ?", (titled(title), session)


def replace_first_words(session: str, first_words: str, title: str) -> Work[None]:
    """Sets the title of the current conversation to `title`, if its present title is `first_words`.
    A title that a person has chosen is kept."""
    yield (
        "update sessions set title = ? where key = ? and title = ?",
        (titled(title), session, titled(first_words)),
    )


def set_reasoning(session: str, effort: str | None) -> Work[None]:
    """Sets the reasoning effort of the session; None selects the default of the model."""
    yield "update sessions set reasoning = ? where key = ?", (effort, session)


def set_personality(session: str, name: str | None) -> Work[None]:
    """Sets the personality of the session; None selects no personality."""
    yield "update sessions set personality = ? where key = ?", (name, session)


def set_summarise(session: str, *, wanted: bool) -> Work[None]:
    """Sets whether the next turn of the session summarises the conversation first."""
    yield "update sessions set summarise = ? where key = ?", (int(wanted), session)


def model_of(session: str) -> Work[str | None]:
    """Returns the `provider/model` that a person has chosen for the session; None for the agent's
    own model."""
    rows = yield "select model from session_models where session = ?", (session,)
    return rows[0][0] if rows else None


def set_model(session: str, model: str | None) -> Work[None]:
    """Sets the model of the session; None selects the agent's own model. The session need not exist
    yet."""
    if model is None:
        yield "delete from session_models where session = ?", (session,)
        return
    yield (
        "insert into session_models (session, model) values (?, ?)"
        " on conflict (session) do update set model = excluded.model",
        (session, model),
    )


def begin_anew(session: str, now: float) -> Work[None]:
    """Starts a new conversation in the session. Earlier messages are kept and can be searched."""
    yield (
        "insert into endings (session, generation, ended_at, folder)"
        " select key, generation, ?, folder from sessions where key = ? on conflict do nothing",
        (now, session),
    )
    yield from conversations.end_current(session)
    yield from set_model(session, None)
    yield (
        "update sessions set reasoning = null, personality = null where key = ?",
        (session,),
    )


def take_ending(
    now: float, patience: float, session: str | None = None, folder: FolderId | None = None
) -> Work[EndedConversation | None]:
    """Claims and returns the oldest ended conversation whose notes are not in the agent's memory
    yet. Skips conversations that another process has claimed in the last `patience` seconds.
    Returns None if no conversation is left.

    With `session`, conversations of other sessions are left out. With `folder`, conversations that
    have used another folder are left out.
    """
    rows = yield (
        "update endings set taken_at = ? where (session, generation) in"
        " (select session, generation from endings"
        " where coalesce(taken_at, 0) < ? and session = coalesce(?, session)"
        " and (folder is null or coalesce(?, folder) = folder)"
        " order by ended_at limit 1) and coalesce(taken_at, 0) < ?"
        " returning session, generation, ended_at",
        (now, now - patience, session, folder, now - patience),
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


def in_chat(target: Target, agent: AgentId) -> Work[list[str]]:
    """Returns the keys of the agent's sessions in a chat, or in a thread of a chat."""
    rows = yield (
        "select key from sessions where account = ? and chat_id = ? and agent = ?"
        " and coalesce(thread_id, '') = ? order by key",
        (target.account, target.chat_id, agent, target.thread_id or ""),
    )
    return [key for (key,) in rows]


def forget_ending(ending: EndedConversation) -> Work[None]:
    yield (
        "delete from endings where session = ? and generation = ?",
        (ending.session, ending.generation),
    )


def keep_prompt(session: str, generation: int, prompt: Prompt) -> Work[None]:
    """Stores the session's new prompt, unless a new conversation was started meanwhile."""
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
        # A damaged prompt is replaced by a new prompt, because an error would make the session
        # unusable.
        return None


def forget_prompts() -> Work[None]:
    """Deletes the stored system prompts that no session uses."""
    yield (
        "delete from prompts where hash not in"
        " (select prompt from sessions where prompt is not null)",
        (),
    )


def _row(row: Row) -> SessionRow:
    *values, summarise = row
    names = SessionRow.__struct_fields__
    return SessionRow(**dict(zip(names, (*values, bool(summarise)), strict=True)))


def titled(text: str) -> str:
    """Returns the first words of a message, as the title of a conversation."""
    # Only the beginning of the text is split, because splitting a text of megabytes would block all
    # other threads.
    line = " ".join(storable(text.lstrip()[:TITLE_SEARCHED_CHARS]).split())
    return line if len(line) <= TITLE_CHARS else f"{line[: TITLE_CHARS - 1].rstrip()}…"
