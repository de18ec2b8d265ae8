"""Builds session keys."""

from hermes.types.identity import AgentId, SessionKey, Source


def session_key(agent: AgentId, source: Source) -> SessionKey:
    """Returns the session key for messages from this source. The key contains the chat. In a group,
    it also contains the user. In a thread, it also contains the thread.

    The key of a message to an additional account of the platform also contains this account. The
    default account, which has the name of the platform, is left out.
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
