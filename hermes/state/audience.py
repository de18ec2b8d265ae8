"""Who hears what is said in a chat. Memory and search keep to it: see decision 0006."""

from hermes.types.identity import AgentId, PersonId, SessionKey
from hermes.types.turns import Turn
from hermes.types.value import Value


class Person(Value):
    """A private chat: the person may know what they said and heard, wherever that was."""

    agent: AgentId
    person: PersonId


class Room(Value):
    """A shared chat: everybody there has heard what was said there, and nothing else."""

    agent: AgentId
    account: str
    chat: str
    sessions: str
    """What the keys of all conversations there begin with."""


class Operator(Value):
    """Somebody who may read the whole store; never derived from a turn."""

    agent: AgentId | None = None
    """One agent's part of the store; None for all agents."""


Audience = Person | Room | Operator


def audience_of(turn: Turn) -> Person | Room | None:
    """Who reads the answer; None where nobody is known, and then nothing may be shown or kept."""
    source = turn.source
    if source.chat_kind != "private":
        key = SessionKey(
            agent=turn.agent, platform=source.platform, kind=source.chat_kind, chat=source.chat_id
        )
        return Room(
            agent=turn.agent, account=source.account, chat=source.chat_id, sessions=str(key)
        )
    return Person(agent=turn.agent, person=turn.person) if turn.person else None
