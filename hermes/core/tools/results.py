"""Makes a tool's result fit for the model: without secrets, and not too long."""

from collections.abc import Callable

import anyio.to_thread

from hermes.state.spill import Spill, trimmed
from hermes.types.identity import CallId
from hermes.types.turns import Turn

LARGEST_RESULT = 1_000_000
"""Characters of a result that are kept; the rest is dropped."""
SECRET_MARGIN = 10_000
"""Characters that no secret is longer than."""
LONGEST_RESULT = 24_000
"""Characters of a result that the model is given; the rest is spilled to a file."""

Redact = Callable[[str], str]
"""Masks the secrets in a text."""


class ResultFilter:
    """Redacts secrets and spills long results."""

    def __init__(
        self,
        spill: Spill,
        *,
        redact: Redact = str,
        longest: int = LONGEST_RESULT,
        longest_secret: int = 0,
    ) -> None:
        self.redact = redact
        self.longest_secret = longest_secret
        """Characters of the longest secret that `redact` is given."""
        self._spill = spill
        self._longest = longest

    async def apply(self, turn: Turn, call: CallId, text: str) -> str:
        if len(text) <= LONGEST_RESULT:
            safe = self.redact(text)
        else:
            # Twelve patterns over a long text would hold up all other turns.
            safe = await anyio.to_thread.run_sync(redacted, text, self.redact, LARGEST_RESULT)
        if len(safe) <= self._longest:
            return safe
        name = await anyio.to_thread.run_sync(self._spill.keep, str(turn.session), call, safe)
        return trimmed(safe, self._longest, name)


def redacted(text: str, redact: Redact, longest: int) -> str:
    """The text without secrets, cut if it is too long. The cut leaves no part of a secret."""
    kept = redacted_beginning(text, redact, longest)
    if len(text) <= longest:
        return kept
    return f"{kept}…\n[the rest of {len(text)} characters was dropped]"


def redacted_beginning(text: str, redact: Redact, longest: int) -> str:
    """At most so many characters of the text, without secrets or parts of them."""
    kept = redact(text[: longest + SECRET_MARGIN])
    if len(text) > longest + SECRET_MARGIN:
        # A secret that the first cut left incomplete is at the very end.
        kept = kept[:-SECRET_MARGIN]
    return kept[:longest]
