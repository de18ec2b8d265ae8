"""The chats from which messages have come, the home chat of each account, and the chats to which
nothing can be sent any more."""

from hermes.state.storable import storable
from hermes.types.identity import ChatKind, ChatRef, Source, Target
from hermes.types.store import Work
from hermes.types.value import Value


class KnownChat(Value):
    """A chat from which a message has come."""

    account: str
    chat_id: str
    kind: ChatKind
    name: str | None
    """The name of the chat, or of the person if a private chat has no name; None if it is not
    known."""
    seen_at: float
    """Time of the newest message that was recorded with `see`. Later messages may have come,
    because not every message is recorded."""
    gone: str | None
    """The reason why nothing can be sent to the chat; None if messages can be sent."""


def see(source: Source, now: float) -> Work[None]:
    """Records that a message came from a chat. The chat is then listed as known, and messages can
    be sent to it again."""
    name = source.chat_name or (source.user_name if source.chat_kind == "private" else None)
    yield (
        "insert into chats (account, chat_id, platform, kind, name, seen_at)"
        " values (?, ?, ?, ?, ?, ?) on conflict (account, chat_id) do update set"
        " kind = excluded.kind, name = coalesce(excluded.name, chats.name),"
        " seen_at = excluded.seen_at",
        (
            source.account,
            source.chat_id,
            source.platform,
            source.chat_kind,
            None if name is None else storable(name),
            now,
        ),
    )
    yield from unmark_gone(source.account, source.chat_id)


def known() -> Work[list[KnownChat]]:
    """Returns all chats from which messages have come, the chat with the newest message first."""
    rows = yield (
        "select chats.account, chats.chat_id, kind, name, seen_at, reason from chats"
        " left join gone_chats on gone_chats.account = chats.account"
        " and gone_chats.chat_id = chats.chat_id"
        " order by seen_at desc, chats.account, chats.chat_id",
        (),
    )
    fields = KnownChat.__struct_fields__
    return [KnownChat(**dict(zip(fields, row, strict=True))) for row in rows]


def mark_gone(account: str, chat_id: str, reason: str, now: float) -> Work[None]:
    """Records the reason why nothing can be sent to the chat any more."""
    yield (
        "insert into gone_chats (account, chat_id, reason, since) values (?, ?, ?, ?)"
        " on conflict (account, chat_id) do update set reason = excluded.reason",
        (account, chat_id, storable(reason), now),
    )


def unmark_gone(account: str, chat_id: str) -> Work[None]:
    """Removes the record that nothing can be sent to the chat."""
    yield "delete from gone_chats where account = ? and chat_id = ?", (account, chat_id)


def gone_reason(account: str, chat_id: str) -> Work[str | None]:
    """Returns the reason why nothing can be sent to the chat; None if messages can be sent."""
    rows = yield (
        "select reason from gone_chats where account = ? and chat_id = ?",
        (account, chat_id),
    )
    return rows[0][0] if rows else None


def set_home(target: Target, now: float) -> Work[None]:
    """Makes the chat or thread the home chat of its account. It replaces the earlier home chat."""
    yield (
        "insert into home_chats (account, chat_id, thread_id, set_at) values (?, ?, ?, ?)"
        " on conflict (account) do update set chat_id = excluded.chat_id,"
        " thread_id = excluded.thread_id, set_at = excluded.set_at",
        (target.account, target.chat_id, target.thread_id, now),
    )


def homes() -> Work[dict[str, ChatRef]]:
    """Returns the home chats that were set with /sethome, by account."""
    rows = yield "select account, chat_id, thread_id from home_chats", ()
    return {account: ChatRef(chat_id=chat, thread_id=thread) for account, chat, thread in rows}
