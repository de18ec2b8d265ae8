"""Creates the events that adapters report."""

from hermes.types.identity import Source, Target
from hermes.types.messages import Body, MessageEvent, Origin


def chat_event(
    source: Source, key: str, body: Body, now: float, *, addressed: bool = True, bot: str = ""
) -> MessageEvent:
    """Returns an event of a chat, which is answered in the same chat and thread.

    `key` identifies the event. If the platform delivers the event again, the key must be the same.
    All other events of the account must have other keys.
    """
    target = Target(account=source.account, chat_id=source.chat_id, thread_id=source.thread_id)
    return MessageEvent(
        dedupe_key=f"{source.account}:{key}",
        source=source,
        origin=Origin(reply_to=target, bot=bot),
        received_at=now,
        body=body,
        addressed=addressed,
    )


def chat_source(
    platform: str,
    account: str,
    chat_id: str,
    user_id: str = "",
    *,
    direct: bool,
    chat_name: str | None = None,
) -> Source:
    """Returns the source of a user's events in a chat. Without a user id, it is the source of the
    chat itself. `direct` says whether the chat is private: only this user and the bot are in it."""
    return Source(
        platform=platform,
        account=account,
        chat_kind="private" if direct else "group",
        chat_id=chat_id,
        user_id=user_id,
        chat_name=chat_name,
    )
