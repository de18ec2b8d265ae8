"""Caches the encoded messages of long conversations, because each call repeats them."""

from collections import OrderedDict
from collections.abc import Callable, Sequence

from hermes.types.messages import Message

Encode = Callable[[Message | None, Message], bytes]
"""Encodes the message that is the second argument. The first argument is the message before it, or
None. The result begins with the separator between these two messages."""

FEWEST_CACHED_MESSAGES = 32
"""A conversation is cached only if it has at least this number of messages."""
CACHED_BYTES = 16 << 20
"""Maximum size of the cache in bytes. The least recently used conversations are dropped first."""


class EncodedMessageCache:
    """A cache of encoded messages. It saves time, and never changes the result."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[tuple[Message, ...], bytes]] = OrderedDict()
        self._size = 0

    def encoded(self, name: str, messages: Sequence[Message], encode: Encode) -> bytes:
        """Returns all messages, encoded.

        `name` identifies the conversation and everything else that the encoding depends on.
        Conversations without a name are not cached.
        """
        if not name or len(messages) < FEWEST_CACHED_MESSAGES:
            return encode_all(None, messages, encode)
        known, before = self._kept.pop(name, ((), b""))
        self._size -= len(before)
        if not _begins(known, messages):
            known, before = (), b""
        last = known[-1] if known else None
        whole = before + encode_all(last, messages[len(known) :], encode)
        self._keep(name, tuple(messages), whole)
        return whole

    def _keep(self, name: str, messages: tuple[Message, ...], whole: bytes) -> None:
        if len(whole) > CACHED_BYTES:
            return
        self._kept[name] = (messages, whole)
        self._size += len(whole)
        while self._size > CACHED_BYTES:
            _, (_, dropped) = self._kept.popitem(last=False)
            self._size -= len(dropped)


def encode_all(before: Message | None, messages: Sequence[Message], encode: Encode) -> bytes:
    """Encodes the messages that follow the message `before`."""
    return b"".join(map(encode, (before, *messages), messages))


def _begins(known: Sequence[Message], messages: Sequence[Message]) -> bool:
    """Returns whether `messages` begins with `known`."""
    if len(known) > len(messages):
        return False
    # Most messages are the same objects in `known` and `messages`, so `==` is called only for the
    # last few messages.
    return all(one is other or one == other for one, other in zip(known, messages, strict=False))
