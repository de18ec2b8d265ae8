"""Remembers which chats were recorded recently, so that not every message writes its chat to the
store."""

from collections import OrderedDict

from hermes.types.messages import MessageEvent

SIGHTING_SECONDS = 60.0
"""Seconds for which a chat is not recorded again."""
MOST_SIGHTINGS = 10_000
"""Maximum number of chats that are remembered."""

_Known = tuple[str | None, str | None, str]
"""The recorded facts about a chat: the name of the chat, the name of the person who wrote last, and
the kind of the chat."""


class ChatSightings:
    def __init__(self) -> None:
        self._seen: OrderedDict[tuple[str, str], tuple[_Known, float]] = OrderedDict()

    def is_due(self, event: MessageEvent, now: float) -> bool:
        """Returns whether the chat of the message must be recorded. Requests that come from no chat
        are never recorded."""
        if event.origin.reply_to is None:
            return False
        source = event.source
        known, at = self._seen.get((source.account, source.chat_id), (None, 0.0))
        return known != _known(event) or now - at > SIGHTING_SECONDS

    def note(self, event: MessageEvent, now: float) -> None:
        """Notes that the chat of the message was recorded at this time."""
        key = (event.source.account, event.source.chat_id)
        self._seen[key] = (_known(event), now)
        self._seen.move_to_end(key)
        if len(self._seen) > MOST_SIGHTINGS:
            self._seen.popitem(last=False)

    def forget(self, account: str, chat_id: str) -> None:
        """Forgets a chat that seems to be gone. If a message comes from it, the chat is recorded
        again."""
        self._seen.pop((account, chat_id), None)


def _known(event: MessageEvent) -> _Known:
    source = event.source
    return source.chat_name, source.user_name, source.chat_kind
