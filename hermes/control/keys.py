"""Builds session keys."""

from hermes.types.identity import AgentId, SessionKey, Source


def session_key(agent: AgentId, source: Source) -> SessionKey:
    """Returns the key of the session of a chat. In a group, the key also contains the user, and in
    a thread also the thread.

    The default account of a platform has the platform's name. It is not part of the key.
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
