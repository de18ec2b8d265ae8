"""Copies the current conversation of a session into a new conversation."""

from hermes.state import conversations, sessions
from hermes.types.identity import new_id
from hermes.types.store import Work


def branch(session: str, title: str) -> Work[bool]:
    """Ends the current conversation, and begins a new one with the same messages and summaries.

    The earlier conversation is kept and can be resumed. Returns False, and changes nothing, if the
    current conversation has no messages.
    """
    found = yield from conversations.current(session)
    row = yield from sessions.find(session)
    if found is None or row is None:
        return False
    yield from conversations.end_current(session)
    now = yield from sessions.get(session)
    # No two messages may have the same turn id and the same position in the turn. So each copy gets
    # a turn id that no turn has: the old id with a suffix.
    suffix = f".{new_id()}"
    yield from _copy_messages(session, row.generation, now.generation, suffix)
    yield from _copy_summaries(session, row.generation, now.generation, suffix)
    # The messages are the same, so the new conversation keeps the system prompt and the folder of
    # files.
    yield (
        "update sessions set title = ?, prompt = ?, folder = ?, compaction = coalesce("
        "(select max(id) from compactions where session = ? and generation = ?), 0) where key = ?",
        (sessions.titled(title), row.prompt, row.folder, session, now.generation, session),
    )
    return True


def _copy_messages(session: str, old: int, new: int, suffix: str) -> Work[None]:
    yield (
        "insert into messages (session, generation, turn, step, idx, role, body, body_name, crc,"
        " text, transient, agent, person, account, chat_id, at)"
        " select session, ?, turn || ?, step, idx, role, body, body_name, crc, text, transient,"
        " agent, person, account, chat_id, at from messages"
        " where session = ? and generation = ? and transient = 0 order by id",
        (new, suffix, session, old),
    )


def _copy_summaries(session: str, old: int, new: int, suffix: str) -> Work[None]:
    """Copies the summaries. Each copy refers to the copied messages."""
    copied = (
        "(select copy.id from messages original join messages copy"
        " on copy.turn = original.turn || ? and copy.step = original.step"
        " and copy.idx = original.idx where original.id = {})"
    )
    yield (
        "insert into compactions"  # noqa: S608
        " (session, generation, first, last, summary, crc, removed, turn, at)"
        f" select session, ?, {copied.format('first')}, {copied.format('last')}, summary, crc,"
        " removed, turn, at from compactions where session = ? and generation = ?"
        " order by compactions.id",
        (new, suffix, suffix, session, old),
    )
