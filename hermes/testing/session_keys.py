"""Makes random sources with hostile ids, and counts session keys that mix up two conversations."""

import random

from hermes.control.keys import session_key
from hermes.types.identity import AgentId, ChatKind, SessionKey, Source

KINDS: tuple[ChatKind, ...] = ("private", "group", "channel")
HOSTILE_PIECES = (
    *("a", "A", "1", "-", "é", "e\u0301", "😀", "\ud83d", "\u202e", " ", "\n", "\0", "%", "%3A"),
    *(":", "::", "/", "..", "\\", "user", ":user:", ":thread:", ":account:", "agent:", "private"),
)
"""Pieces of ids that a careless encoding of a key would confuse with its own syntax."""

Identity = tuple[str, str, str, str, str | None, str | None, str | None]


def count_collisions(number: int, seed: int = 1) -> tuple[int, int]:
    """Builds `number` session keys. Returns the number of different conversations, and the number
    of mistakes. A mistake is a key that two conversations share, or that can't be parsed."""
    chance = random.Random(seed)  # noqa: S311  # the numbers are no secrets
    conversations: set[Identity] = set()
    texts: set[str] = set()
    unparsed = 0
    for _ in range(number):
        agent, source = AgentId(_id(chance)), _source(chance)
        key = session_key(agent, source)
        text = str(key)
        conversations.add(_identity(agent, source))
        texts.add(text)
        unparsed += SessionKey.parse(text) != key
    return len(conversations), len(conversations) - len(texts) + unparsed


def _identity(agent: str, source: Source) -> Identity:
    """Returns the facts that distinguish a conversation from all others. Does not use
    `session_key`, which this module checks."""
    return (
        agent,
        source.platform,
        source.chat_kind,
        source.chat_id,
        None if source.account == source.platform else source.account,
        source.user_id if source.chat_kind == "group" else None,
        source.thread_id,
    )


def _source(chance: random.Random) -> Source:
    platform = _id(chance)
    return Source(
        platform=platform,
        account=platform if chance.random() < 0.5 else _id(chance),
        chat_kind=chance.choice(KINDS),
        chat_id=_id(chance),
        user_id=_id(chance),
        thread_id=_id(chance) if chance.random() < 0.5 else None,
    )


def _id(chance: random.Random) -> str:
    # The ids are short, so that many random conversations differ in a single piece.
    return "".join(chance.choices(HOSTILE_PIECES, k=chance.choice((0, 1, 1, 2))))
