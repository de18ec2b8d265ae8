"""Encoded beginnings of long conversations: a call repeats the last one and adds a little."""

from collections import OrderedDict
from collections.abc import Callable, Sequence

from hermes.types.messages import Message

Encode = Callable[[Message | None, Message], bytes]
"""A message's bytes, with what parts it from the message before it."""

WORTH = 32
"""Messages from which on a conversation is kept."""
MOST = 16 << 20
"""Bytes kept in all; the conversations that were quiet longest go first."""


class Prefixes:
    """A cache: what it gives is byte for byte what encoding every message would."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[tuple[Message, ...], bytes]] = OrderedDict()
        self._size = 0

    def joined(self, name: str, messages: Sequence[Message], encode: Encode) -> bytes:
        """All messages, encoded.

        The name is of the conversation and of all that its encoding depends on; nameless ones are
        not kept.
        """
        if not name or len(messages) < WORTH:
            return joined(None, messages, encode)
        known, before = self._kept.pop(name, ((), b""))
        self._size -= len(before)
        if not _begins(known, messages):
            known, before = (), b""
        last = known[-1] if known else None
        whole = before + joined(last, messages[len(known) :], encode)
        self._keep(name, tuple(messages), whole)
        return whole

    def _keep(self, name: str, messages: tuple[Message, ...], whole: bytes) -> None:
        if len(whole) > MOST:
            return
        self._kept[name] = (messages, whole)
        self._size += len(whole)
        while self._size > MOST:
            _, (_, dropped) = self._kept.popitem(last=False)
            self._size -= len(dropped)


def joined(before: Message | None, messages: Sequence[Message], encode: Encode) -> bytes:
    """The messages that follow on `before`, encoded."""
    return b"".join(map(encode, (before, *messages), messages))


def _begins(known: Sequence[Message], messages: Sequence[Message]) -> bool:
    """Whether the messages begin with the known ones."""
    if len(known) > len(messages):
        return False
    # Most are the very same objects, and only the last few have to be compared.
    return all(one is other or one == other for one, other in zip(known, messages, strict=False))
