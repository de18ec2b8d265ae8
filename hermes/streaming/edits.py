"""Decides when a preview message is sent and edited. It does no I/O; callers pass in the time."""

import math
from collections.abc import Sequence

from hermes.streaming.parts import tree_of
from hermes.streaming.policy import StreamingPolicy
from hermes.text.incremental import IncrementalTree
from hermes.text.slices import append_text, drop_first, take_first, visible
from hermes.text.split import Measure, Render, first_part
from hermes.types.nodes import Document, Paragraph, Text
from hermes.types.value import Value

PLACEHOLDER = "…"

_FIRST_VISIBLE = 4
_PATIENCE = 3
"""Number of edit intervals after which new text is shown even if it is short."""
_LONG_WORD = 24
_TAIL = " \t\r\n…"
_SOURCE = (1.25, 4)
"""Amount of Markdown that is parsed for one message, as a multiple of the platform's limit. The
second number is used if the first does not give enough text to fill the message."""
_PLACEHOLDER: Document = (Paragraph(children=(Text(text=PLACEHOLDER),)),)


class PlacePreview(Value):
    """An instruction to send this rendered text as a new message."""

    text: str
    part: int = 0
    """The index of the message among the messages of the preview."""


class EditPreview(Value):
    """An instruction to replace the text of the message by this rendered text."""

    text: str
    part: int = 0
    """The index of the message among the messages of the preview."""


class Wait(Value):
    """An instruction to send nothing before this time, and to call `wants` again at this time."""

    until: float


class Nothing(Value):
    """An instruction to do nothing, because the message is up to date. Call `wants` again when
    there is more text."""


PreviewStep = PlacePreview | EditPreview | Wait | Nothing


class EditPlan:
    """Decides when the messages of a preview are sent or edited, and with what text.

    When a message is full, the text continues in the next message. After `wants` has returned a
    `PlacePreview` or an `EditPreview`, the plan assumes that the caller calls the platform at once.
    Report the result with `shown`, or with `frozen` if the platform asked for a pause.
    """

    def __init__(
        self, policy: StreamingPolicy, limit: int, render: Render, measure: Measure
    ) -> None:
        self._policy = policy
        self._limit = limit
        self._render = render
        self._measure = measure
        self._messages: list[str] = []
        """The rendered text that each message shows."""
        self._part = 0
        """The index in `_messages` of the message that is still growing."""
        self._passed = _Passed()
        self._source: str | None = None
        """The Markdown of the shown text; None if the text was shown before a restart."""
        self._frame: tuple[str, str] | None = None
        """The last Markdown that was rendered, and the rendered text."""
        self._next: _Passed | None = None
        """The text up to the end of the growing message. It is set when the message is full, so
        that more text can't change the message any more. Until then it is None."""
        self._tree = IncrementalTree()
        self._framed_at = -math.inf
        self._called_at = -math.inf
        self._frozen_until = -math.inf

    def wants(self, now: float, text: str) -> PreviewStep:
        """Returns the next step of the preview. `text` is the answer so far."""
        source = text.rstrip()
        if not source.startswith(self._passed.source):
            self._go_to(0, _Passed())
        frame = ""
        while (due := self._update_frame(now, source)) is None:
            assert self._frame is not None
            frame = self._frame[1]
            if not frame or frame != self._shown:
                break
            if self._next is None:
                return Nothing()
            self._go_to(self._part + 1, self._next)
        if due is not None:
            return Wait(until=due)
        if not frame:
            return Nothing()
        due = max(self._due(source, frame), self._frozen_until)
        if now < due:
            return Wait(until=due)
        self._called_at = now
        if self._shown is None:
            return PlacePreview(text=frame, part=self._part)
        return EditPreview(text=frame, part=self._part)

    def _update_frame(self, now: float, source: str) -> float | None:
        """Renders new text and returns None. If it is too early to render, returns the time at
        which rendering is allowed."""
        if self._frame is None or self._frame[0] != source:
            if self._frame and self._next and source.startswith(self._frame[0]):
                self._frame = (source, self._frame[1])
            elif now < (due := self._next_frame()):
                return due
            else:
                self._frame, self._framed_at = (source, self._rendered(source)), now
        return None

    def shown(self, now: float, text: str) -> None:
        """Reports that the platform accepted the call and that the message now shows `text`."""
        self._called_at = max(self._called_at, now)
        self._source = self._frame[0] if self._frame and self._frame[1] == text else None
        if self._shown is None:
            # The first frame of a message ends with "…", and later frames end with the cursor. The
            # prepared frame was rendered as a first frame, so it can't be the next frame.
            self._frame = self._next = None
        self._messages[self._part : self._part + 1] = [text]

    def restore(self, now: float, texts: Sequence[str]) -> None:
        """Sets the texts of the messages that were shown before a restart."""
        self._called_at = now
        self._messages = list(texts)

    def frozen(self, until: float) -> None:
        """Reports that the platform accepts no call before `until`."""
        self._frozen_until = max(self._frozen_until, until)

    @property
    def _shown(self) -> str | None:
        """The text of the message that grows; None if this message was not sent yet."""
        return self._messages[self._part] if self._part < len(self._messages) else None

    def _go_to(self, part: int, passed: "_Passed") -> None:
        self._part, self._passed = part, passed
        self._source = self._frame = self._next = None

    def _next_frame(self) -> float:
        """Returns the time from which new text is rendered. A message that was not sent yet is
        rendered at once, and a message that was sent is rendered once per edit interval."""
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
            if little and self._next is None and self._extends(source, frame, self._shown):
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
        part = self._fitting(source, f" {PLACEHOLDER}")[0]
        if self._policy.first == "placeholder":
            return self._render(_PLACEHOLDER) if part or not self._part else ""
        begun = placeholder_text(part)
        letters = "".join(visible(begun).rstrip(_TAIL).split())
        return self._render(begun) if len(letters) >= _FIRST_VISIBLE else ""

    def _fitting(self, source: str, end: str) -> tuple[Document, str]:
        """Returns the part of the answer for this message, and its rendered text. If the message is
        not full, the rendered text ends with `end`."""
        last: tuple[Document, str] = ((), "")

        def render(tree: Document) -> str:
            nonlocal last
            if tree != last[0]:
                last = tree, self._render(append_text(tree, end))
            return last[1]

        self._next = None
        for factor in _SOURCE:
            # Only the beginning of the answer is parsed, because the rest does not fit into the
            # message.
            read = source[: len(self._passed.source) + int(self._limit * factor)]
            whole = self._tree.of(read)
            tree = drop_first(whole, self._passed.characters) if self._part else whole
            part, rest = first_part(tree, self._limit, render, self._measure)
            if not visible(part).strip() and not self._part:
                tree = whole = tree_of(read)
                part, rest = first_part(tree, self._limit, render, self._measure)
            if not rest and read != source:
                continue
            if not rest:
                return part, render(part) if part else ""
            return self._without_end(read, whole, tree)
        return part, render(part) if part else ""

    def _without_end(self, read: str, whole: Document, tree: Document) -> tuple[Document, str]:
        """Returns the part of the answer that a full message shows, and its rendered text. Nothing
        is added to the end of the text."""
        part, rest = first_part(tree, self._limit, self._render, self._measure)
        if rest:
            used = len(visible(whole)) - len(visible(rest))
            self._next = _Passed(source=read, characters=used)
        return part, self._render(part)


class _Passed(Value):
    """The text of all messages before the message that grows."""

    source: str = ""
    """The part of the answer's Markdown that was read when the last full message was rendered. It
    contains the text of all full messages. It can also contain the beginning of the next text,
    because more text is read than fits into a message."""
    characters: int = 0
    """Number of visible characters in the messages before the message that grows."""


def placeholder_text(tree: Document) -> Document:
    """Returns the tree with "…" instead of its last word, so that nobody mistakes the first message
    for a complete answer."""
    text = visible(tree)
    body = text.rstrip(_TAIL)
    words = body.rsplit(None, 1)
    if len(words) > 1:
        head = words[0].rstrip(_TAIL)
    else:
        # In languages without spaces between words, the whole text counts as one word. Therefore
        # only the end of a long word is replaced.
        head = body[: -_LONG_WORD // 2].rstrip(_TAIL) if len(body) > _LONG_WORD else ""
    if head.strip():
        return append_text(take_first(tree, len(head))[0], f" {PLACEHOLDER}")
    if text == PLACEHOLDER:
        return append_text(_PLACEHOLDER, f" {PLACEHOLDER}")
    return _PLACEHOLDER
