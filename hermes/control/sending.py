"""One attempt to send a delivery: its messages, in order, each with a key of its own.

If the platform can edit, a message is first *placed* with a text that is never the whole answer.
Its reference is committed, and then it is edited into the answer. A crash can leave a partial
message behind, but never a second answer. On other platforms, a message that may be a repeat says
so, unless the platform drops repeats by their key.
"""

import time

import anyio.to_thread

from hermes.control.persistence import persist
from hermes.control.rate_gate import RateGate
from hermes.state import deliveries
from hermes.streaming.edits import PLACEHOLDER, placeholder_text
from hermes.streaming.parts import MessagePart, parts_of, tree_of
from hermes.types.delivery import Delivery, Placed, Purpose
from hermes.types.errors import Rejected
from hermes.types.messages import Content, MessageRef
from hermes.types.nodes import Document
from hermes.types.platforms import CanEdit, PlatformAdapter
from hermes.types.store import Store

LONG_TEXT = 4000
"""Number of characters above which a text is split in a worker thread, to keep the event loop
free."""
REPEAT = "(This may be a repeat: the connection was cut while I sent it.)\n\n"


class Sending:
    def __init__(
        self, store: Store, gate: RateGate, adapter: PlatformAdapter, delivery: Delivery
    ) -> None:
        self._store = store
        self._gate = gate
        self._adapter = adapter
        self._delivery = delivery
        self._placed = list(delivery.placed)

    @property
    def placed(self) -> tuple[Placed, ...]:
        """The messages that are on the platform."""
        return tuple(self._placed)

    async def run(self) -> None:
        parts = await self._parts()
        for index, part in enumerate(parts):
            if isinstance(self._adapter, CanEdit) and part.attachment is None:
                await self._place_and_edit(self._adapter, index, part)
            elif index >= len(self._placed):
                await self._send_final(index, part)
                if index + 1 < len(parts):
                    await self._keep_placed()
        # If the process dies before this commit, the delivery is sent again as a possible repeat.
        id, attempt = self._delivery.id, self._delivery.attempts
        await persist(self._store, deliveries.mark_delivered, id, attempt, self.placed, time.time())

    async def _parts(self) -> list[MessagePart]:
        content = self._delivery.content
        if len(content.text) <= LONG_TEXT:
            return parts_of(content, self._adapter)
        # Splitting 60,000 characters takes a quarter of a second.
        return await anyio.to_thread.run_sync(parts_of, content, self._adapter)

    async def _place_and_edit(self, adapter: CanEdit, index: int, part: MessagePart) -> None:
        if index == len(self._placed):
            await self._place(index, part, "place")
        placed = self._placed[index]
        text = self._adapter.render(part.tree)
        if placed.final or (placed.text == text and part.choices is None):
            return
        try:
            await self._edit(adapter, index, _content(part, text))
        except Rejected:
            # An interrupted attempt may have made this edit, and platforms reject an edit without a
            # change.
            if self._delivery.doubtful and index < len(self._delivery.placed):
                return
            await self._place(index, part, "replace")
            await self._edit(adapter, index, _content(part, text))

    async def _place(self, index: int, part: MessagePart, purpose: Purpose) -> None:
        """Sends a new message for the part, or a replacement if the part's earlier message is
        gone."""
        text = self._adapter.render(placeholder_text(part.tree))
        if self._adapter.measure(text) > self._adapter.limits.text:
            text = self._adapter.render(tree_of(PLACEHOLDER))
        ref = await self._send(index, purpose, Content(text=text))
        self._placed[index : index + 1] = [Placed(ref=ref, text=text)]
        await self._keep_placed()

    async def _edit(self, adapter: CanEdit, index: int, content: Content) -> None:
        ref = self._placed[index].ref
        await self._enter()
        await adapter.edit(self._delivery.target, ref, content)
        self._placed[index] = Placed(ref=ref, text=content.text, final=True)

    async def _send_final(self, index: int, part: MessagePart) -> None:
        tree: Document = part.tree
        if self._may_be_repeat(index):
            tree = (*tree_of(REPEAT), *part.tree)
            if self._adapter.measure(self._adapter.render(tree)) > self._adapter.limits.text:
                repeat = self._adapter.render(tree_of(REPEAT))
                await self._send(index, "repeat", Content(text=repeat))
                tree = part.tree
        text = self._adapter.render(tree) if tree else ""
        ref = await self._send(index, "send", _content(part, text))
        self._placed.append(Placed(ref=ref, text=text, final=True))

    def _may_be_repeat(self, index: int) -> bool:
        first = index == len(self._delivery.placed)
        return self._delivery.doubtful and first and not self._adapter.limits.deduplicates

    async def _keep_placed(self) -> None:
        id, attempt = self._delivery.id, self._delivery.attempts
        await persist(self._store, deliveries.mark_placed, id, attempt, self.placed)

    async def _send(self, index: int, purpose: Purpose, content: Content) -> MessageRef:
        await self._enter()
        key = self._delivery.key(index, purpose)
        return await self._adapter.send(self._delivery.target, content, key)

    async def _enter(self) -> None:
        await self._gate.enter(self._delivery.target, self._adapter.limits.chat_interval)


def _content(part: MessagePart, text: str) -> Content:
    return Content(
        text=text,
        attachments=(part.attachment,) if part.attachment else (),
        choices=(part.choices,) if part.choices else (),
    )
