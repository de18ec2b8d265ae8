"""Decides when a preview message is sent and edited. It does no I/O; callers pass in the time."""

import math

from hermes.streaming.parts import tree_of
from hermes.streaming.policy import StreamingPolicy
from hermes.text.incremental import IncrementalTree
from hermes.text.slices import append_text, take_first, visible
from hermes.text.split import Measure, Render, first_part
from hermes.types.nodes import Document, Paragraph, Text
from hermes.types.value import Value

PLACEHOLDER = "…"

_FIRST_VISIBLE = 4
_PATIENCE = 3
"""Number of intervals after which even a little new text is shown."""
_LONG_WORD = 24
_TAIL = " \t\r\n…"
_SOURCE = (1.25, 4)
"""How much of the answer is parsed, as a multiple of the platform's limit for one message. The
second number is used if the first one does not give enough text to fill the message."""
_PLACEHOLDER: Document = (Paragraph(children=(Text(text=PLACEHOLDER),)),)


class PlacePreview(Value):
    """Send this rendered text as a new message."""

    text: str


class EditPreview(Value):
    """Change the message to this rendered text."""

    text: str


class Wait(Value):
    """Nothing may be sent before this time. Call `wants` again at this time."""

    until: float


class Nothing(Value):
    """The message is up to date. Call `wants` again when there is more text."""


PreviewStep = PlacePreview | EditPreview | Wait | Nothing


class EditPlan:
    """Decides when a preview is sent or edited, and with what text.

    After `wants` has returned a `PlacePreview` or an `EditPreview`, the plan assumes that the
    caller calls the platform at once. Report the result with `shown`, or with `frozen` if the
    platform asked for a pause.
    """

    def __init__(
        self, policy: StreamingPolicy, limit: int, render: Render, measure: Measure
    ) -> None:
        self._policy = policy
        self._limit = limit
        self._render = render
        self._measure = measure
        self._shown: str | None = None
        """The rendered text that the message shows."""
        self._source: str | None = None
        """The Markdown of the shown text; None if it was shown before a restart."""
        self._frame: tuple[str, str] | None = None
        """The last Markdown that was rendered, and the rendered text."""
        self._full = False
        """Whether the message is full, so that additional text does not change it."""
        self._tree = IncrementalTree()
        self._framed_at = -math.inf
        self._called_at = -math.inf
        self._frozen_until = -math.inf

    def wants(self, now: float, text: str) -> PreviewStep:
        """Returns the next step of the preview. `text` is the answer so far."""
        source = text.rstrip()
        if self._frame is None or self._frame[0] != source:
            if self._frame is not None and self._full and source.startswith(self._frame[0]):
                self._frame = (source, self._frame[1])
            elif now < (due := self._next_frame()):
                return Wait(until=due)
            else:
                self._frame, self._framed_at = (source, self._rendered(source)), now
        frame = self._frame[1]
        if not frame or frame == self._shown:
            return Nothing()
        due = max(self._due(source, frame), self._frozen_until)
        if now < due:
            return Wait(until=due)
        self._called_at = now
        return PlacePreview(text=frame) if self._shown is None else EditPreview(text=frame)

    def shown(self, now: float, text: str) -> None:
        """Reports that the platform accepted the call and that the message now shows `text`."""
        self._called_at = max(self._called_at, now)
        self._source = self._frame[0] if self._frame and self._frame[1] == text else None
        if self._shown is None:
            # The frame must be rendered again, because later frames end with the cursor.
            self._frame = None
        self._shown = text

    def frozen(self, until: float) -> None:
        """Reports that the platform accepts no call before `until`."""
        self._frozen_until = max(self._frozen_until, until)

    def _next_frame(self) -> float:
        """Returns the time at which new text may be rendered: at once for the first frame, then
        once per interval."""
        if self._shown is None:
            return self._frozen_until
        last = max(self._framed_at, self._called_at)
        return max(last + self._policy.edit_interval, self._frozen_until)

    def _due(self, source: str, frame: str) -> float:
        interval = self._policy.edit_interval
        if self._shown is not None:
            little = len(frame) - len(self._shown) < self._policy.buffer_threshold
            # A little text may wait longer if it extends the shown text. Text that corrects the
            # shown text must not wait.
            if little and self._extends(source, frame, self._shown):
                interval *= _PATIENCE
        return self._called_at + interval

    def _extends(self, source: str, frame: str, shown: str) -> bool:
        if self._source is not None:
            return source.startswith(self._source)
        return frame.startswith(shown.removesuffix(self._policy.cursor).rstrip(_TAIL))

    def _rendered(self, source: str) -> str:
        """Renders as much of the answer as fits into the message. The result is valid even if the
        Markdown is unfinished."""
        if self._shown is not None:
            return self._fitting(source, self._policy.cursor)[1]
        if self._policy.first == "placeholder":
            return self._render(_PLACEHOLDER)
        begun = placeholder_text(self._fitting(source, f" {PLACEHOLDER}")[0])
        letters = "".join(visible(begun).rstrip(_TAIL).split())
        return self._render(begun) if len(letters) >= _FIRST_VISIBLE else ""

    def _fitting(self, source: str, end: str) -> tuple[Document, str]:
        """Returns the part of the answer that fits into the message, and the rendered text of this
        part followed by `end`."""
        last: tuple[Document, str] = ((), "")

        def render(tree: Document) -> str:
            nonlocal last
            if tree != last[0]:
                last = tree, self._render(append_text(tree, end))
            return last[1]

        part: Document = ()
        for factor in _SOURCE:
            # A preview shows only the first message, so the rest of the source is not parsed.
            read = source[: int(self._limit * factor)]
            part, whole = first_part(self._tree.of(read), self._limit, render, self._measure)
            if not visible(part).strip():
                part, whole = first_part(tree_of(read), self._limit, render, self._measure)
            self._full = not whole
            if self._full or read == source:
                break
        return part, render(part) if part else ""


def placeholder_text(tree: Document) -> Document:
    """Returns the tree with "…" instead of its last word, so that nobody mistakes the first message
    for a complete answer."""
    text = visible(tree)
    body = text.rstrip(_TAIL)
    words = body.rsplit(None, 1)
    if len(words) > 1:
        head = words[0].rstrip(_TAIL)
    else:
        # Some languages have no spaces between words.
        head = body[: -_LONG_WORD // 2].rstrip(_TAIL) if len(body) > _LONG_WORD else ""
    if head.strip():
        return append_text(take_first(tree, len(head))[0], f" {PLACEHOLDER}")
    if text == PLACEHOLDER:
        return append_text(_PLACEHOLDER, f" {PLACEHOLDER}")
    return _PLACEHOLDER
