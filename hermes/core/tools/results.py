"""What a tool said, made fit for the model: without secrets, and no longer than it can bear."""

from collections.abc import Callable

import anyio.to_thread

from hermes.state.spill import Spill, trimmed
from hermes.types.identity import CallId
from hermes.types.turns import Turn

LARGEST = 1_000_000
"""Characters of a result that are looked at; the rest is dropped."""
MARGIN = 10_000
"""Characters that no secret is longer than."""
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
        if len(text) <= LONGEST:
            safe = self.hide(text)
        else:
            # Twelve patterns over a long text would hold up everybody else.
            safe = await anyio.to_thread.run_sync(hidden, text, self.hide, LARGEST)
        if len(safe) <= self._longest:
            return safe
        name = await anyio.to_thread.run_sync(self._spill.keep, str(turn.session), call, safe)
        return trimmed(safe, self._longest, name)


def hidden(text: str, hide: Callable[[str], str], longest: int) -> str:
    """The text without secrets, cut where it is too long; no piece of a secret is left by that."""
    if len(text) <= longest:
        return hide(text)
    # What the first cut leaves of a secret stands at the very end, and goes with the second.
    kept = hide(text[: longest + MARGIN])[:-MARGIN]
    return f"{kept}…\n[the rest of {len(text)} characters was dropped]"
