"""The pace of a message that grows by edits: a pure state machine, fed with the time."""

import math
from collections.abc import Callable

from hermes.streaming.policy import StreamingPolicy
from hermes.types.value import Value

PLACEHOLDER = "…"

_FIRST_VISIBLE = 4
_PATIENCE = 3
"""Intervals after which any new text is worth an edit."""
_LONG_WORD = 24
_TAIL = " \t\r\n…"


class Place(Value):
    """Send this as a new message."""

    text: str


class Edit(Value):
    """Change the message to this."""

    text: str


class Wait(Value):
    """There is something to show, but not before."""

    until: float


class Nothing(Value):
    """All that can be shown is shown: come back with more text."""


Wish = Place | Edit | Wait | Nothing


class EditPlan:
    """Says when a preview is sent or edited, and with what text.

    A `Place` or an `Edit` counts as a call when it is given out; tell how it went with `shown`
    or, when the platform asked for a pause, `frozen`.
    """

    def __init__(
        self, policy: StreamingPolicy, limit: int, measure: Callable[[str], int] = len
    ) -> None:
        self._policy = policy
        self._limit = limit
        self._measure = measure
        self._shown: str | None = None
        self._called_at = -math.inf
        self._frozen_until = -math.inf

    def wants(self, now: float, text: str, final: bool) -> Wish:
        """What to do now for a message that should say `text`."""
        frame = self._frame(text, final)
        if not frame or frame == self._shown:
            return Nothing()
        due = max(self._due(frame, final), self._frozen_until)
        if now < due:
            return Wait(until=due)
        self._called_at = now
        return Place(text=frame) if self._shown is None else Edit(text=frame)

    def shown(self, now: float, text: str) -> None:
        """The platform took the call: the message says `text`."""
        self._called_at = max(self._called_at, now)
        self._shown = text

    def frozen(self, until: float) -> None:
        """The platform takes no call before `until`."""
        self._frozen_until = max(self._frozen_until, until)

    def _frame(self, text: str, final: bool) -> str:
        text = text.rstrip()
        if final:
            return self._fitting(text, "")
        if self._shown is not None:
            body = self._fitting(text, self._policy.cursor)
            return body + self._policy.cursor if body else ""
        if self._policy.first == "placeholder":
            return PLACEHOLDER
        first = partial(self._fitting(text, f" {PLACEHOLDER}"))
        visible = len("".join(first.rstrip(_TAIL).split()))
        return first if visible >= _FIRST_VISIBLE else ""

    def _due(self, frame: str, final: bool) -> float:
        interval = self._policy.edit_interval
        if not final and self._shown is not None:
            before = self._shown.removesuffix(self._policy.cursor).rstrip(_TAIL)
            body = frame.removesuffix(self._policy.cursor)
            new = len(body) - len(before)
            # Text that was cut off and is said anew must not stand longer than it has to.
            if new < self._policy.buffer_threshold and body.startswith(before):
                interval *= _PATIENCE
        return self._called_at + interval

    def _fitting(self, text: str, end: str) -> str:
        """The longest beginning of `text` that fits together with `end`."""
        room = self._limit - self._measure(end)
        if self._measure(text) <= room:
            return text
        low, high = 0, len(text)
        while low < high:
            middle = (low + high + 1) // 2
            if self._measure(text[:middle]) <= room:
                low = middle
            else:
                high = middle - 1
        return text[:low].rstrip()


def partial(text: str) -> str:
    """Real text to place first that is never the complete answer: without its last word."""
    body = text.rstrip(_TAIL)
    words = body.rsplit(None, 1)
    if len(words) > 1:
        head = words[0].rstrip(_TAIL)
    else:
        # Some languages put no spaces between words.
        head = body[: -_LONG_WORD // 2].rstrip(_TAIL) if len(body) > _LONG_WORD else ""
    if head.strip():
        return f"{head} {PLACEHOLDER}"
    return PLACEHOLDER if text != PLACEHOLDER else f"{PLACEHOLDER} {PLACEHOLDER}"
