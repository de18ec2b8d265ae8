"""The one function that names a conversation."""

from hermes.types.identity import AgentId, SessionKey, Source


def session_key(agent: AgentId, source: Source, *, sole_account: bool) -> SessionKey:
    """Private: the chat. Group: the chat and the person. A thread: also the thread."""
    return SessionKey(
        agent=agent,
        platform=source.platform,
        kind=source.chat_kind,
        chat=source.chat_id,
        account=None if sole_account else source.account,
        user=source.user_id if source.chat_kind == "group" else None,
        thread=source.thread_id,
    )
