"""Redacts the results of tools, and shortens long results."""

from collections.abc import Callable

import anyio.to_thread

from hermes.state.spill import Spill, trimmed
from hermes.types.identity import CallId
from hermes.types.turns import Turn
from hermes.types.value import Value

LARGEST_RESULT = 1_000_000
"""Maximum number of characters of a result that are stored. Further characters are dropped."""
SECRET_MARGIN = 10_000
"""If a text is cut in the middle of a secret, the part of the secret before the cut is removed,
too. This constant is the maximum number of characters of such a secret."""
LONGEST_RESULT = 24_000
"""Maximum number of characters of a result that the model sees. A longer result is stored in a file
(spilled)."""

Redact = Callable[[str], str]
"""Masks the secrets in a text."""


class FilteredResult(Value):
    """A result as the model sees it."""

    text: str
    spilled: bool = False
    """Whether the result was too long for the model, and is stored in a file."""


class ResultFilter:
    """Removes secrets from results, and stores long results in files (spills them)."""

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
        """Length of the longest configured secret."""
        self._spill = spill
        self._longest = longest

    async def apply(self, turn: Turn, call: CallId, text: str) -> FilteredResult:
        if len(text) <= LONGEST_RESULT:
            safe = self.redact(text)
        else:
            # This runs in a thread, because the redaction of a long text would block the event
            # loop.
            safe = await anyio.to_thread.run_sync(redacted, text, self.redact, LARGEST_RESULT)
        if len(safe) <= self._longest:
            return FilteredResult(text=safe)
        name = await anyio.to_thread.run_sync(self._spill.keep, str(turn.session), call, safe)
        return FilteredResult(text=trimmed(safe, self._longest, name), spilled=True)


def redacted(text: str, redact: Redact, longest: int) -> str:
    """Redacts the text, and cuts it if it has more than `longest` characters. If the cut falls
    inside a secret, the whole secret is removed."""
    kept = redacted_beginning(text, redact, longest)
    if len(text) <= longest:
        return kept
    return f"{kept}…\n[the rest of {len(text)} characters was dropped]"


def redacted_beginning(text: str, redact: Redact, longest: int) -> str:
    """Returns the beginning of the text, at most `longest` characters, without secrets or parts of
    secrets."""
    kept = redact(text[: longest + SECRET_MARGIN])
    if len(text) > longest + SECRET_MARGIN:
        # The cut may have split a secret, and redaction does not recognize half a secret. So the
        # end of the text is removed.
        kept = kept[:-SECRET_MARGIN]
    return kept[:longest]
