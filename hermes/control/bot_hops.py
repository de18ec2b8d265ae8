"""Counts the messages of bots in each chat, so that two bots can't answer each other for ever."""

from collections import OrderedDict

from hermes.types.identity import Source

MOST_CHATS = 10_000
"""Maximum number of chats in which the messages of bots are counted."""


class BotHops:
    """Counts the accepted messages of bots since the last message of a person."""

    def __init__(self) -> None:
        self._counts: OrderedDict[tuple[str, str], int] = OrderedDict()

    def count(self, source: Source) -> int:
        """Returns how many messages of bots were accepted in the chat since a person wrote."""
        return self._counts.get((source.account, source.chat_id), 0)

    def note(self, source: Source) -> None:
        """Counts a message that was accepted. The message of a person sets the count to zero."""
        chat = (source.account, source.chat_id)
        if not source.is_bot:
            self._counts.pop(chat, None)
            return
        self._counts[chat] = self._counts.get(chat, 0) + 1
        self._counts.move_to_end(chat)
        if len(self._counts) > MOST_CHATS:
            self._counts.popitem(last=False)
