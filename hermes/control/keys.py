"""Builds session keys."""

from hermes.types.identity import AgentId, SessionKey, Source


def session_key(agent: AgentId, source: Source) -> SessionKey:
    """The key contains the chat, in a group also the user, and in a thread also the thread.

    A platform's default account has the platform's name and is not part of the key.
    """
    return SessionKey(
        agent=agent,
        platform=source.platform,
        kind=source.chat_kind,
        chat=source.chat_id,
        account=None if source.account == source.platform else source.account,
        user=source.user_id if source.chat_kind == "group" else None,
        thread=source.thread_id,
    )
