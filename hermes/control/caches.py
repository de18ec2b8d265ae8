"""Caches of histories and prompts, so that a turn reads only new rows from the store."""

from collections import OrderedDict

from hermes.state.transcript import History
from hermes.types.turns import Prompt

CACHED_MESSAGES = 32
"""A history with fewer messages than this is not cached, because reading it costs little."""
CACHE_BYTES = 32_000_000
"""Maximum size of all cached histories together, in bytes as stored. If it is exceeded, the
histories that were used least recently are dropped."""
PROMPTS = 256


class HistoryCache:
    """The cached histories, by session. Rows are only ever added to a stored history, so a cached
    history is always the first part of the stored history."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, History] = OrderedDict()
        self._size = 0

    def get(self, session: str) -> History | None:
        return self._kept.get(session)

    def keep(self, session: str, history: History) -> None:
        """Caches a history that a committed transaction has read."""
        before = self._kept.pop(session, None)
        self._size -= before.size if before else 0
        if len(history.messages) < CACHED_MESSAGES:
            return
        self._kept[session] = history
        self._size += history.size
        while self._size > CACHE_BYTES:
            _, dropped = self._kept.popitem(last=False)
            self._size -= dropped.size


class PromptCache:
    """Prompts by their hash. Many sessions share one prompt."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Prompt] = OrderedDict()

    def get(self, name: str) -> Prompt | None:
        return self._kept.get(name)

    def keep(self, name: str, prompt: Prompt) -> None:
        self._kept[name] = prompt
        if len(self._kept) > PROMPTS:
            self._kept.popitem(last=False)
