"""A fake chat platform that outlives the gateway, and adapters for it with and without edit.

Strict where real ones are: it forgets an update only when a later one is asked for, refuses a text
over its limit, an edit that changes nothing and an edit of a message it does not have.
"""

import time
from collections.abc import Callable, Sequence
from typing import Protocol

import anyio

from hermes.types.errors import Rejected
from hermes.types.identity import ChatKind, Source, Target
from hermes.types.messages import Content, MessageEvent, MessageRef, Origin, Said
from hermes.types.protocols import Accept, Limits
from hermes.types.value import Value

LIMIT = 4096


class Update(Value):
    """Something that a person sent."""

    id: int
    chat: str
    user: str
    text: str
    kind: ChatKind = "private"
    name: str | None = None


class Shown(Value):
    """A message of ours as it stands in a chat, with everything it ever said."""

    id: str
    chat: str
    versions: tuple[str, ...]

    @property
    def text(self) -> str:
        return self.versions[-1]


class Wire(Protocol):
    """How an adapter reaches the platform."""

    async def updates(self, offset: int) -> list[Update]: ...
    async def send(self, chat: str, text: str) -> str: ...
    async def edit(self, id: str, text: str) -> None: ...


class ChatServer:
    """The platform itself."""

    def __init__(self) -> None:
        self.messages: dict[str, Shown] = {}
        self.calls: list[tuple[float, str, str]] = []
        """(time, "send" or "edit", chat) of every call, refused ones included."""
        self.trouble: Callable[[str, str], Exception | None] = lambda kind, chat: None
        """Asked at each call: what to fail it with."""
        self._updates: list[Update] = []
        self._changed = anyio.Event()
        self._last = 0

    def says(
        self,
        text: str,
        chat: str = "1",
        user: str = "7",
        kind: ChatKind = "private",
        name: str | None = None,
    ) -> int:
        """A person writes to us; the update's number."""
        self._last += 1
        self._updates.append(
            Update(id=self._last, chat=chat, user=user, text=text, kind=kind, name=name)
        )
        self._wake()
        return self._last

    def repeat(self, number: int) -> None:
        """Delivers an update again, as platforms do when they are in doubt."""
        known = next(update for update in self._updates if update.id == number)
        self._updates.append(known)
        self._wake()

    def texts(self, chat: str = "1") -> list[str]:
        """What stands in a chat, oldest first."""
        return [shown.text for shown in self.messages.values() if shown.chat == chat]

    async def updates(self, offset: int) -> list[Update]:
        """Long poll by position: nothing before `offset` is asked for again."""
        while offset >= len(self._updates):
            await self._changed.wait()
        return self._updates[offset : offset + 100]

    async def send(self, chat: str, text: str) -> str:
        self._check("send", chat, text)
        id = f"m{len(self.messages) + 1}"
        self.messages[id] = Shown(id=id, chat=chat, versions=(text,))
        self._wake()
        return id

    async def edit(self, id: str, text: str) -> None:
        shown = self.messages.get(id)
        if shown is None:
            raise Rejected(f"there is no message {id!r}")
        self._check("edit", shown.chat, text)
        if shown.text == text:
            raise Rejected("the message is not modified")
        self.messages[id] = Shown(id=id, chat=shown.chat, versions=(*shown.versions, text))
        self._wake()

    async def changed(self) -> None:
        """Returns when something was said or shown."""
        await self._changed.wait()

    def _check(self, kind: str, chat: str, text: str) -> None:
        self.calls.append((time.time(), kind, chat))
        if failure := self.trouble(kind, chat):
            raise failure
        if not text.strip() or len(text) > LIMIT:
            raise Rejected(f"a text of {len(text)} characters is not taken")

    def _wake(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


class PlainAdapter:
    """For a platform that cannot edit."""

    def __init__(self, wire: Wire, account: str = "plain") -> None:
        self.account = account
        self.limits = Limits(text=LIMIT)
        self._wire = wire

    async def run(self, accept: Accept, ready: Callable[[], None]) -> None:
        ready()
        offset = 0
        while True:
            for update in await self._wire.updates(offset):
                await accept(to_event(update, self.account))
                offset += 1

    async def send(self, target: Target, content: Content) -> MessageRef:
        return MessageRef(id=await self._wire.send(target.chat_id, content.text))


class EditingAdapter(PlainAdapter):
    """For a platform that can."""

    def __init__(self, wire: Wire, account: str = "editing") -> None:
        super().__init__(wire, account)

    async def edit(self, target: Target, ref: MessageRef, content: Content) -> None:
        await self._wire.edit(ref.id, content.text)


def to_event(update: Update, account: str) -> MessageEvent:
    source = Source(
        platform=account.partition(".")[0],
        account=account,
        chat_kind=update.kind,
        chat_id=update.chat,
        user_id=update.user,
        user_name=update.name,
    )
    return MessageEvent(
        dedupe_key=f"{account}:{update.id}",
        source=source,
        origin=Origin(reply_to=Target(account=account, chat_id=update.chat)),
        received_at=time.time(),
        body=Said(text=update.text, message_id=str(update.id)),
    )


def failing(*failures: Exception | None) -> Callable[[str, str], Exception | None]:
    """Trouble in order: one for each call, then none."""
    rest: Sequence[Exception | None] = list(failures)

    def next_one(kind: str, chat: str) -> Exception | None:
        nonlocal rest
        if not rest:
            return None
        failure, *rest = rest
        return failure

    return next_one
