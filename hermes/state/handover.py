"""Moves the current conversation of a session to another session."""

from hermes.state import conversations, sessions
from hermes.types.identity import AgentId
from hermes.types.store import Work
from hermes.types.value import Value


class PrivateChat(Value):
    """A private chat that has a session, and its user."""

    session: str
    platform: str
    account: str
    chat_id: str
    thread_id: str | None
    user_id: str


def private_chats(agent: AgentId, name: str) -> Work[list[PrivateChat]]:
    """Returns the private chats of the platform or account that has this name. The most recently
    used chat comes first."""
    rows = yield (
        "select key, platform, account, chat_id, thread_id, user_id from sessions"
        " where agent = ? and (platform = ? or account = ?) and chat_kind = 'private'"
        " order by updated_at desc, key",
        (agent, name, name),
    )
    fields = PrivateChat.__struct_fields__
    return [PrivateChat(**dict(zip(fields, row, strict=True))) for row in rows]


def hand_over(session: str, chat: PrivateChat, now: float) -> Work[str | None]:
    """Makes the current conversation of the session the current conversation of the chat. Returns
    the title of the moved conversation; None if there is no conversation.

    The earlier conversation of the chat ends, as with /new. The caller must make sure that neither
    session has an open turn.
    """
    row = yield from sessions.find(session)
    found = yield from conversations.of_generation(session, row.generation if row else 0)
    if row is None or not found or not found[0].messages:
        return None
    yield from sessions.begin_anew(chat.session, now)
    there = yield from sessions.get(chat.session)
    moved = (chat.session, there.generation, session, row.generation)
    for table in ("messages", "compactions", "turns"):
        yield (
            f"update {table} set session = ?, generation = ?"  # noqa: S608
            " where session = ? and generation = ?",
            moved,
        )
    yield (
        "update sessions set title = ?, folder = ?, compaction = ? where key = ?",
        (found[0].title, row.folder, row.compaction, chat.session),
    )
    yield from sessions.set_model(chat.session, row.model)
    yield from conversations.end_current(session)
    return found[0].title
