"""Encoded beginnings of long conversations: a call repeats the last one and adds a little."""

from collections import OrderedDict
from collections.abc import Callable, Sequence

from hermes.types.messages import Message

WORTH = 32
"""Messages from which on a conversation is kept."""
MOST = 16 << 20
"""Bytes kept in all; the conversations that were quiet longest go first."""


class Prefixes:
    """A cache: what it gives is byte for byte what encoding every message would."""

    def __init__(self, encode: Callable[[Message], bytes]) -> None:
        self._encode = encode
        self._kept: OrderedDict[str, tuple[tuple[Message, ...], bytes]] = OrderedDict()
        self._size = 0

    def joined(self, conversation: str, messages: Sequence[Message]) -> bytes:
        """All messages, encoded and separated by commas."""
        if not conversation or len(messages) < WORTH:
            return b",".join(map(self._encode, messages))
        known, before = self._kept.pop(conversation, ((), b""))
        self._size -= len(before)
        if not _begins(known, messages):
            known, before = (), b""
        new = b",".join(map(self._encode, messages[len(known) :]))
        whole = b",".join(part for part in (before, new) if part)
        self._keep(conversation, tuple(messages), whole)
        return whole

    def _keep(self, conversation: str, messages: tuple[Message, ...], whole: bytes) -> None:
        if len(whole) > MOST:
            return
        self._kept[conversation] = (messages, whole)
        self._size += len(whole)
        while self._size > MOST:
            _, (_, dropped) = self._kept.popitem(last=False)
            self._size -= len(dropped)


def _begins(known: Sequence[Message], messages: Sequence[Message]) -> bool:
    """Whether the messages begin with the known ones."""
    if len(known) > len(messages):
        return False
    # Most are the very same objects, and only the last few have to be compared.
    return all(one is other or one == other for one, other in zip(known, messages, strict=False))
