"""Determines which people read the answers in a chat. Memory and search show only notes and
messages that these people may see; see decision 0006."""

from hermes.types.identity import AgentId, PersonId, SessionKey
from hermes.types.turns import Turn
from hermes.types.value import Value


class Person(Value):
    """The person in a private chat. They may see every message that they wrote or received, in
    any chat."""

    agent: AgentId
    person: PersonId


class Room(Value):
    """The members of a shared chat. They may see only the messages of that chat."""

    agent: AgentId
    account: str
    chat: str
    sessions: str
    """The prefix with which the session keys of all conversations in the chat begin."""


class Operator(Value):
    """A person who may read the whole store. `audience_of` never returns an operator."""

    agent: AgentId | None = None
    """The agent whose data the operator reads; None for all agents."""


Audience = Person | Room | Operator


def audience_of(turn: Turn) -> Person | Room | None:
    """Returns the people who will read the turn's answer; None if they are unknown. If they are
    unknown, no memory is shown or stored."""
    source = turn.source
    if source.chat_kind != "private":
        key = SessionKey(
            agent=turn.agent, platform=source.platform, kind=source.chat_kind, chat=source.chat_id
        )
        return Room(
            agent=turn.agent, account=source.account, chat=source.chat_id, sessions=str(key)
        )
    return Person(agent=turn.agent, person=turn.person) if turn.person else None
