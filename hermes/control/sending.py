"""One attempt to send a delivery, as one or more messages in order. Each message has a key. If two
messages have the same key, some platforms drop the second message.

If the platform can edit, a message is first *placed* with a text that is never the whole answer.
The id of this message is committed, and then an edit replaces the text by the answer. A crash can
leave a partial message behind, but never a second answer. On a platform that can neither edit
messages nor drop repeats, a message that may be a repeat says so. A text that the platform refuses
is sent again without formatting.
"""

import logging
import time

import anyio
import anyio.to_thread
from msgspec.structs import replace

from hermes.control.human_pace import HumanPace
from hermes.control.mirroring import mirror
from hermes.control.persistence import persist
from hermes.control.rate_gate import Priority, RateGate
from hermes.state import deliveries
from hermes.state.shown_questions import note_shown
from hermes.streaming.edits import PLACEHOLDER, placeholder_text
from hermes.streaming.parts import MessagePart, parts_of, plain_parts, tree_of
from hermes.text.markdown import print_plain
from hermes.types.delivery import Delivery, Placed, Purpose
from hermes.types.errors import FormatRefused, Rejected, TargetGone
from hermes.types.messages import Content, MessageRef
from hermes.types.platforms import CanEdit, PlatformAdapter
from hermes.types.store import Store, Work

log = logging.getLogger(__name__)

SEND_SECONDS, SEND_FILE_SECONDS = 60.0, 360.0
"""Maximum duration, in seconds, of a call to the platform: a call without a file (first number),
and a call that sends a file (second number)."""
LONG_TEXT = 4000
"""Number of characters above which a text is split in a worker thread, to keep the event loop
free."""
REPEAT = "(This may be a repeat: the connection was cut while I sent it.)\n\n"
LEFT_OVER = "(This part of the preview is not needed any more.)"


class Sending:
    def __init__(
        self,
        store: Store,
        gate: RateGate,
        adapter: PlatformAdapter,
        delivery: Delivery,
        pace: HumanPace | None = None,
    ) -> None:
        self._store = store
        self._gate = gate
        self._adapter = adapter
        self._delivery = delivery
        self._pace = pace or HumanPace()
        self._placed = list(delivery.placed)
        self._parts: list[MessagePart] = []

    @property
    def placed(self) -> tuple[Placed, ...]:
        """The messages of the delivery that the platform has received."""
        return tuple(self._placed)

    async def run(self) -> None:
        self._parts = await self._split()
        index = 0
        while index < len(self._parts):
            self._restore_plain(index)
            if index and index >= len(self._placed):
                await self._pace.pause(self._gate, self._adapter, self._delivery.target)
            try:
                await self._send_part(index, self._parts[index])
            except TargetGone:
                raise
            except Rejected as error:
                if not self._make_plain(index):
                    raise
                log.warning("a text is sent without formatting, because of: %s", error)
                await self._send_part(index, self._parts[index])
            index += 1
        await self._clear_left_over()
        # If the process dies before this commit, the delivery is sent again, and marked as a
        # possible repeat.
        await persist(self._store, self._mark_delivered, time.time())

    def _mark_delivered(self, now: float) -> Work[None]:
        yield from mirror(self._delivery, now)
        id, attempt = self._delivery.id, self._delivery.attempts
        yield from deliveries.mark_delivered(id, attempt, self.placed, now)
        if isinstance(self._adapter, CanEdit):
            yield from note_shown(self._delivery, now)

    async def _send_part(self, index: int, part: MessagePart) -> None:
        if isinstance(self._adapter, CanEdit) and part.attachment is None:
            await self._place_and_edit(self._adapter, index, part)
        elif index >= len(self._placed):
            await self._send_final(index, part)
            if index + 1 < len(self._parts):
                await self._keep_placed()

    def _restore_plain(self, index: int) -> None:
        """If an earlier attempt sent the part as plain text, replaces the part with the same plain
        parts as that attempt."""
        if index < len(self._placed) and self._placed[index].plain:
            self._make_plain(index)

    def _make_plain(self, index: int) -> bool:
        """Replaces the part with parts that have no formatting. Returns False if this would change
        nothing."""
        part = self._parts[index]
        if part.plain or not part.tree or print_plain(part.tree) == self._rendered(part):
            return False
        self._parts[index : index + 1] = plain_parts(part, self._adapter)
        return True

    async def _split(self) -> list[MessagePart]:
        content = self._delivery.content
        if len(content.text) <= LONG_TEXT:
            return parts_of(content, self._adapter)
        # Splitting 60,000 characters takes a quarter of a second, so this runs in a worker thread.
        return await anyio.to_thread.run_sync(parts_of, content, self._adapter)

    async def _place_and_edit(self, adapter: CanEdit, index: int, part: MessagePart) -> None:
        if index == len(self._placed):
            await self._place(index, part, "place")
        placed = self._placed[index]
        text = self._rendered(part)
        if placed.final or (placed.text == text and part.choices is None):
            return
        try:
            await self._edit(adapter, index, part, text)
        except (FormatRefused, TargetGone):
            raise
        except Rejected:
            # An interrupted attempt may have made this edit already. Platforms reject an edit that
            # changes nothing, so the rejection is ignored.
            if self._delivery.doubtful and index < len(self._delivery.placed):
                return
            await self._place(index, part, "replace")
            await self._edit(adapter, index, part, text)

    async def _place(self, index: int, part: MessagePart, purpose: Purpose) -> None:
        """Sends a new message with a placeholder. A later edit replaces the placeholder by this
        part of the delivery. If the part already had a message that was deleted on the platform,
        the new message replaces that message."""
        text = self._adapter.render(placeholder_text(part.tree))
        if part.plain or self._adapter.measure(text) > self._adapter.limits.text:
            text = self._adapter.render(tree_of(PLACEHOLDER))
        ref = await self._send(index, purpose, Content(text=text))
        self._placed[index : index + 1] = [Placed(ref=ref, text=text, plain=part.plain)]
        await self._keep_placed()

    async def _edit(self, adapter: CanEdit, index: int, part: MessagePart, text: str) -> None:
        ref = self._placed[index].ref
        await self._enter(_priority(self._delivery, part), edit=True)
        with anyio.fail_after(SEND_SECONDS):
            await adapter.edit(self._delivery.target, ref, _content(part, text))
        self._placed[index] = Placed(ref=ref, text=text, final=True, plain=part.plain)

    async def _send_final(self, index: int, part: MessagePart) -> None:
        if self._may_be_repeat(index):
            part = await self._marked_as_repeat(index, part)
        text = self._rendered(part)
        ref = await self._send(index, "send", _content(part, text))
        self._placed.append(Placed(ref=ref, text=text, final=True, plain=part.plain))

    async def _marked_as_repeat(self, index: int, part: MessagePart) -> MessagePart:
        """Returns the part with a warning that it may be a repeat. If the part has no room for the
        warning, sends the warning as a separate message and returns the part unchanged."""
        marked = replace(part, tree=(*tree_of(REPEAT), *part.tree))
        if self._adapter.measure(self._rendered(marked)) <= self._adapter.limits.text:
            return marked
        warning = self._adapter.render(tree_of(REPEAT))
        await self._send(index, "repeat", Content(text=warning))
        return part

    def _may_be_repeat(self, index: int) -> bool:
        first = index == len(self._delivery.placed)
        return self._delivery.doubtful and first and not self._adapter.limits.deduplicates

    async def _clear_left_over(self) -> None:
        """If the preview had more messages than the answer, replaces the text of the superfluous
        messages with a note that they are not needed."""
        text = self._adapter.render(tree_of(LEFT_OVER))
        part = MessagePart(tree=tree_of(LEFT_OVER))
        for index in range(len(self._parts), len(self._placed)):
            if isinstance(self._adapter, CanEdit) and self._placed[index].text != text:
                try:
                    await self._edit(self._adapter, index, part, text)
                except Rejected as error:
                    log.info("a preview of %s is left over: %s", self._delivery.id, error)

    def _rendered(self, part: MessagePart) -> str:
        if not part.tree:
            return ""
        return print_plain(part.tree) if part.plain else self._adapter.render(part.tree)

    async def _keep_placed(self) -> None:
        id, attempt = self._delivery.id, self._delivery.attempts
        await persist(self._store, deliveries.mark_placed, id, attempt, self.placed)

    async def _send(self, index: int, purpose: Purpose, content: Content) -> MessageRef:
        await self._enter(_priority(self._delivery, self._parts[index]))
        key = self._delivery.key(index, purpose)
        with anyio.fail_after(SEND_FILE_SECONDS if content.attachments else SEND_SECONDS):
            return await self._adapter.send(self._delivery.target, content, key)

    async def _enter(self, priority: Priority, *, edit: bool = False) -> None:
        interval = self._adapter.limits.chat_interval
        await self._gate.enter(self._delivery.target, interval, priority, edit=edit)


def _priority(delivery: Delivery, part: MessagePart) -> Priority:
    if part.choices is not None:
        return Priority.QUESTION
    answers = delivery.turn is not None or delivery.send_key is not None
    return Priority.FINAL if answers else Priority.NOTICE


def _content(part: MessagePart, text: str) -> Content:
    return Content(
        text=text,
        attachments=(part.attachment,) if part.attachment else (),
        choices=(part.choices,) if part.choices else (),
        plain=part.plain,
    )
