"""Identifies people, chats, sessions, turns and tool calls."""

import os
import random
import re
import time
from functools import lru_cache
from typing import Literal, NewType
from urllib.parse import quote, unquote

from hermes.types.value import Value

ChatKind = Literal["private", "group", "channel"]
AgentId = NewType("AgentId", str)
PersonId = NewType("PersonId", str)
OwnerId = NewType("OwnerId", str)
"""Identifies a process that works on the store. The process is alive while it holds its lock
file."""
FolderId = NewType("FolderId", str)
"""Identifies a folder with files of agents: the home of a node, or a folder that nodes share."""
TurnId = NewType("TurnId", str)
CallId = NewType("CallId", str)
"""Our own id of a tool call: `<turn>_<step>_<index>`. The ids of providers are not used, because
they are not unique. `parse_call_id` parses an id."""

OWNER = PersonId("owner")
"""The person who installed Hermes. Everyone who uses the terminal, or the gateway's own API key,
counts as this person."""


def person_of(platform: str, user_id: str) -> PersonId:
    """Returns the person id for a user id that nobody has linked to any other id."""
    return PersonId(f"{platform}:{user_id}")


Trigger = Literal["message", "api", "job", "webhook", "a2a", "hook"]
"""The kind of event that causes a turn."""

_random = random.Random(os.urandom(32))  # noqa: S311  # ids are names, not secrets


def new_id() -> str:
    """Returns a unique id that sorts by time: 11 hex digits of milliseconds and 10 random hex
    digits."""
    return f"{time.time_ns() // 1_000_000:011x}{_random.getrandbits(40):010x}"


def id_prefix_at(instant: float) -> str:
    """Returns a prefix to compare ids with. All ids that were made before this time are less than
    the prefix, and all later ids are greater."""
    return f"{int(instant * 1000):011x}"


class CallPosition(Value):
    """The position of a tool call: its turn, its step in the turn, and its index in the step."""

    turn: TurnId
    step: int
    index: int


def parse_call_id(call: str) -> CallPosition | None:
    """Parses one of our call ids. Returns None for any other text."""
    if found := _CALL.fullmatch(call):
        turn, step, index = found.groups()
        return CallPosition(turn=TurnId(turn), step=int(step), index=int(index))
    return None


_CALL = re.compile(r"([0-9a-f]{21})_(0|[1-9][0-9]{0,5})_(0|[1-9][0-9]{0,5})")


class Source(Value):
    """The chat and the user that a message came from, with the platform's own ids."""

    platform: str
    account: str
    """The account that received the message, such as `telegram.support`."""
    chat_kind: ChatKind
    chat_id: str
    user_id: str
    thread_id: str | None = None
    user_name: str | None = None
    """The user's name. This field and the next two are for display and routing, never for
    authorization."""
    chat_name: str | None = None
    guild_id: str | None = None
    is_bot: bool = False
    """Whether the platform says that the user is a bot."""


class Target(Value):
    """The chat that an answer is sent to."""

    account: str
    chat_id: str
    thread_id: str | None = None


class ChatRef(Value):
    """A chat of a platform, and a thread in it."""

    chat_id: str
    thread_id: str | None = None


class Principal(Value):
    """An identity that an entry point has authenticated."""

    name: str
    """The name of the API key or of the entry point. It stays the same when a key is rotated."""
    person: PersonId
    """The authenticated person. The field has no default. Otherwise an entry point that omits the
    field could treat its callers as owners by mistake."""


class SessionKey(Value):
    """Identifies a conversation. Each key has its own text: `parse(str(key)) == key`."""

    agent: AgentId
    platform: str
    kind: ChatKind
    chat: str
    account: str | None = None
    """The account that received the message. It is None for the platform's default account, so that
    existing keys stay the same when a second account is added."""
    user: str | None = None
    thread: str | None = None

    def __str__(self) -> str:
        text = (
            f"agent:{_quoted(self.agent)}:{_quoted(self.platform)}:{self.kind}:{_quoted(self.chat)}"
        )
        if self.account is not None:
            text += f":account:{_quoted(self.account)}"
        if self.user is not None:
            text += f":user:{_quoted(self.user)}"
        if self.thread is not None:
            text += f":thread:{_quoted(self.thread)}"
        return text

    @classmethod
    def parse(cls, text: str) -> "SessionKey":
        """Returns the key whose text is `text`. Raises ValueError if there is no such key."""
        parts = text.split(":")
        if len(parts) < 5 or len(parts) % 2 == 0 or parts[0] != "agent":
            raise ValueError(f"not a session key: {text!r}")
        _, agent, platform, kind, chat, *rest = parts
        named = dict(zip(rest[::2], map(_unquoted, rest[1::2]), strict=True))
        if kind not in ("private", "group", "channel") or not named.keys() <= _OPTIONAL:
            raise ValueError(f"not a session key: {text!r}")
        key = cls(
            agent=AgentId(_unquoted(agent)),
            platform=_unquoted(platform),
            kind=kind,  # type: ignore[arg-type]  # checked above
            chat=_unquoted(chat),
            **named,
        )
        if str(key) != text:
            raise ValueError(f"not the canonical form of a session key: {text!r}")
        return key


_OPTIONAL = {"account", "user", "thread"}


# The result is cached, because a turn writes its session's key several times.
@lru_cache(maxsize=4096)
def _quoted(part: str) -> str:
    # With surrogatepass, a lone surrogate from a hostile client raises no error. A key that
    # contains the surrogate differs from every other key.
    return quote(part, safe="-_.~@+!#$&=,", errors="surrogatepass")


def _unquoted(part: str) -> str:
    return unquote(part, errors="surrogatepass")
