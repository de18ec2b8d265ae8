"""Sends messages to chats that a target names: for `hermes send`, for tools and for other senders
whose messages are not the answer to a turn."""

import mimetypes
import time
from collections.abc import Callable, Sequence

import anyio

from hermes.control.directory import Directory, FoundTarget
from hermes.control.media import MediaIntake
from hermes.control.mirroring import session_of_chat
from hermes.control.targets import BadTarget
from hermes.state import chats, deliveries, owners
from hermes.state.deliveries import DeliveryReceipt
from hermes.state.owners import LeaseHolder
from hermes.text.file_types import kind_of, media_type_of
from hermes.types.errors import Rejected, ToolFailed
from hermes.types.identity import AgentId, CallId, Target
from hermes.types.messages import Attachment, Content
from hermes.types.sending import OutgoingFile, SendResult, SendState
from hermes.types.store import Store, Work
from hermes.types.turns import Turn
from hermes.types.value import Value

RECEIPT_SECONDS = 0.05
"""Seconds between two reads of the state of a delivery."""
TOOL_WAIT_SECONDS = 10.0
"""Longest time for which a tool call waits until its message is delivered."""


class SendOrder(Value):
    """A message, and the chats that it is sent to."""

    key: str
    """The idempotency key. A second `SendOrder` with the same key sends nothing."""
    to: str
    """A list of targets; see `control.targets`."""
    text: str
    """The message in Markdown."""
    agent: AgentId
    mirror: bool
    """Whether the message is added to the history of each chat's session. The output of background
    work is usually not added."""
    files: tuple[OutgoingFile, ...] = ()
    origin: Target | None = None
    """The chat that is meant if a target is the word `origin`; None if there is no such chat."""
    session: str | None = None
    """The session that sends the message. The history of this session already contains the message,
    so the message is not added to this history again."""
    known_only: bool = False
    """Whether only these targets are allowed: the origin, home chats, and known chats."""
    again: bool = False
    """Whether the message is also sent to chats that are marked as gone. A chat is marked as gone
    if the platform has refused a message to it."""


class PendingSend(Value):
    """A message that is stored for one chat."""

    target: Target
    text: str
    """The target as text, such as `telegram:-1001234567890`."""
    ids: tuple[tuple[str, str], ...]
    """The ids of the deliveries, each with the name of its file. The name is empty for the delivery
    of the text."""
    mirrored: bool


class ChatMessenger:
    """Stores messages in the outbox. The process that serves the account sends them."""

    def __init__(self, store: Store, directory: Directory, media: MediaIntake) -> None:
        self.directory = directory
        self._store = store
        self._media = media
        self.on_stored: Callable[[Target], None] = lambda target: None
        """Called with each chat that has a new delivery, after the commit."""

    def for_call(self, turn: Turn, call: CallId) -> "CallMessenger":
        """Returns the messenger of a tool call."""
        return CallMessenger(self, turn, call)

    async def send(self, order: SendOrder) -> list[PendingSend]:
        """Stores the message for each target, all in one transaction.

        Raises BadTarget if a target can't be found or is not allowed, and Rejected if the message
        is empty. In both cases nothing is stored.
        """
        if not order.text.strip() and not order.files:
            raise Rejected("There is nothing to send: give a text or a file.")
        found = await self.directory.resolve(order.to, order.origin)
        if order.known_only:
            _check_known(found)
        contents = [("", Content(text=order.text))] if order.text.strip() else []
        for file in order.files:
            kept = Content(text="", attachments=(await self._kept(file),))
            contents.append((file.name, kept))
        stored = await self._store.run(_store_order, order, found, contents, time.time())
        for one in stored:
            self.on_stored(one.target)
        return stored

    async def results(self, pending: Sequence[PendingSend], within: float) -> list[SendResult]:
        """Returns the result for each chat. Waits for at most `within` seconds until all messages
        are delivered or refused."""
        found = await self._results(pending)
        with anyio.move_on_after(within):
            while any(one.state == "queued" for one in found):
                await anyio.sleep(RECEIPT_SECONDS)
                found = await self._results(pending)
        return found

    async def holder(self, account: str) -> LeaseHolder | None:
        """Returns the process that serves the account, even if that process has died; None if no
        process serves the account."""
        return await self._store.read(owners.lease_holder, f"account:{account}")

    async def _results(self, pending: Sequence[PendingSend]) -> list[SendResult]:
        return [await self._store.read(_result, one) for one in pending]

    async def _kept(self, file: OutgoingFile) -> Attachment:
        """Copies the file, because the original may change before it is sent."""
        guessed = mimetypes.guess_type(file.name)[0]
        media_type = media_type_of(file.data) or guessed or "application/octet-stream"
        video = media_type.startswith("video/")
        return Attachment(
            kind="video" if video else kind_of(media_type),
            path=await self._media.keep(file.data, stateless=False),
            media_type=media_type,
            name=file.name,
            size=len(file.data),
        )


class CallMessenger:
    """Sends the messages of one tool call, on behalf of the turn of this call."""

    def __init__(self, messenger: ChatMessenger, turn: Turn, call: CallId) -> None:
        self._messenger = messenger
        self._turn = turn
        self._call = call
        self._sent = 0

    async def others(self, to: str) -> tuple[str, ...]:
        here = self._turn.reply_to
        try:
            found = await self._messenger.directory.resolve(to, here)
            _check_known(found)
        except Rejected as error:
            raise ToolFailed(str(error)) from error
        return tuple(
            one.text
            for one in found
            if here is None
            or (one.target.account, one.target.chat_id) != (here.account, here.chat_id)
        )

    async def send(
        self, to: str, text: str, files: tuple[OutgoingFile, ...] = (), *, mirror: bool
    ) -> tuple[SendResult, ...]:
        self._sent += 1
        turn = self._turn
        order = SendOrder(
            key=f"{self._call}.{self._sent}",
            to=to,
            text=text,
            files=files,
            agent=turn.agent,
            mirror=mirror,
            origin=turn.reply_to,
            session=None if turn.stateless else str(turn.session),
            known_only=True,
        )
        try:
            pending = await self._messenger.send(order)
        except Rejected as error:
            raise ToolFailed(str(error)) from error
        return tuple(await self._messenger.results(pending, TOOL_WAIT_SECONDS))


def _check_known(found: Sequence[FoundTarget]) -> None:
    """Raises BadTarget if one of the chats is not known."""
    unknown = [one.text for one in found if not one.known]
    if unknown:
        raise BadTarget(
            f"No message has come from {', '.join(unknown)} yet, so you may not write there."
            " You may write to the chat of this conversation ('origin'), to home chats, and to"
            " chats that have written to us."
        )


def _store_order(
    order: SendOrder,
    found: Sequence[FoundTarget],
    contents: Sequence[tuple[str, Content]],
    now: float,
) -> Work[list[PendingSend]]:
    stored: list[PendingSend] = []
    for number, one in enumerate(found):
        target = one.target
        if order.again:
            yield from chats.unmark_gone(target.account, target.chat_id)
        session = None
        if order.mirror:
            session = yield from session_of_chat(target, order.agent, order.session)
        ids: list[tuple[str, str]] = []
        for part, (name, content) in enumerate(contents):
            key = f"{order.key}.{number}.{part}"
            sent = deliveries.send_once(key, target, content, order.agent, session, now)
            ids.append(((yield from sent), name))
        mirrored = session is not None
        stored.append(PendingSend(target=target, text=one.text, ids=tuple(ids), mirrored=mirrored))
    return stored


def _result(pending: PendingSend) -> Work[SendResult]:
    receipts: list[tuple[str, DeliveryReceipt]] = []
    for id, name in pending.ids:
        found = yield from deliveries.receipt(id)
        receipts.append((name, found))
    states = {receipt.state for _, receipt in receipts}
    refused = [
        f"{name}: {receipt.error}" if name else str(receipt.error)
        for name, receipt in receipts
        if receipt.state == "dead"
    ]
    state: SendState = "queued"
    if states <= {"delivered", "dead"}:
        state = "refused" if refused else "delivered"
    return SendResult(
        target=pending.text,
        state=state,
        reason="; ".join(dict.fromkeys(refused)),
        mirrored=pending.mirrored,
    )
