"""What a tool said, made fit for the model: without secrets, and no longer than it can bear."""

from collections.abc import Callable

import anyio.to_thread

from hermes.state.spill import Spill, trimmed
from hermes.types.identity import CallId
from hermes.types.turns import Turn

LONGEST = 24_000
"""Characters of a result that the model is given; the rest is spilled to a file."""


class Results:
    """Hides what is secret and spills what is long."""

    def __init__(
        self, spill: Spill, *, hide: Callable[[str], str] = str, longest: int = LONGEST
    ) -> None:
        self.hide = hide
        self._spill = spill
        self._longest = longest

    async def fit(self, turn: Turn, call: CallId, text: str) -> str:
        safe = self.hide(text)
        if len(safe) <= self._longest:
            return safe
        name = await anyio.to_thread.run_sync(self._spill.keep, str(turn.session), call, safe)
        return trimmed(safe, self._longest, name)
