"""Builds session keys."""

from hermes.types.identity import AgentId, SessionKey, Source


def session_key(agent: AgentId, source: Source) -> SessionKey:
    """Returns the key of the session of a chat. In a group, the key also contains the user, and in
    a thread also the thread.

    The account is part of the key, unless it is the platform's default account, which has the
    platform's name.
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
