"""What sessions said before, at hand, so that a turn reads only what is new."""

from collections import OrderedDict

from hermes.state.transcript import History
from hermes.types.turns import Prompt

CACHED_MESSAGES = 32
"""Messages from which on a history is kept: a shorter one is read in no time."""
CACHE_BYTES = 32_000_000
"""Bytes kept in all, as the store has them; the sessions that were quiet longest go first."""
PROMPTS = 256


class HistoryCache:
    """A cache: rows are only ever added, so what is kept is a true beginning of what is stored."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, History] = OrderedDict()
        self._size = 0

    def get(self, session: str) -> History | None:
        return self._kept.get(session)

    def keep(self, session: str, history: History) -> None:
        """Remembers what a committed transaction has read."""
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
    """Prompts by their hash: many sessions share one."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Prompt] = OrderedDict()

    def get(self, name: str) -> Prompt | None:
        return self._kept.get(name)

    def keep(self, name: str, prompt: Prompt) -> None:
        self._kept[name] = prompt
        if len(self._kept) > PROMPTS:
            self._kept.popitem(last=False)
