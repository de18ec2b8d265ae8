"""If a tool or a job has sent a message to a chat, adds this message to the history of the chat's
session, so that the agent knows it."""

from hermes.state import session_lock, sessions, transcript
from hermes.state.transcript import TranscriptWriter
from hermes.types.delivery import Delivery
from hermes.types.identity import AgentId, SessionKey, Target
from hermes.types.messages import AssistantMessage, UserMessage
from hermes.types.store import Work

SENT_FIRST = "[The agent wrote to this chat before the conversation began:]"


def session_of_chat(target: Target, agent: AgentId, own: str | None) -> Work[str | None]:
    """Returns the session of the chat. A message that is sent to the chat is added to the history
    of this session. Returns None if the chat has no session with the agent. Also returns None if
    the chat has several sessions, because the message must not appear in the conversation of the
    wrong person. The result is also None if the chat's session is `own`, the session that sends the
    message: its history already contains the message."""
    found = yield from sessions.in_chat(target, agent)
    return found[0] if len(found) == 1 and found[0] != own else None


def mirror(delivery: Delivery, now: float) -> Work[None]:
    """Adds a delivered message to the history of the chat's session, as a message of the agent.
    Repeating the call changes nothing."""
    if delivery.session is None:
        return
    yield from session_lock.lock(delivery.session)
    session = yield from sessions.find(delivery.session)
    owner = yield from sessions.owner_of(delivery.session)
    if session is None or owner is None:
        # The session was deleted after the message was stored.
        return
    content = delivery.content
    text = "\n".join(filter(None, (content.text, *(one.label for one in content.attachments))))
    writer = TranscriptWriter(
        turn=delivery.id,
        session=SessionKey.parse(delivery.session),
        generation=session.generation,
        transient=False,
        account=delivery.target.account,
        person=owner.person,
    )
    if (yield from transcript.is_empty(delivery.session, session.generation)):
        # Models accept only a conversation that begins with a message of a user, so such a message
        # is added first.
        opening = UserMessage(text=SENT_FIRST, summary=True)
        yield from transcript.append(writer, -1, 0, opening, now)
    yield from transcript.append(writer, 0, 0, AssistantMessage(text=text), now)
