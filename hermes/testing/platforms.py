"""A fake chat platform that outlives the gateway, with adapters and manifests for it.

The fake is as strict as real platforms. It delivers an update again until an adapter requests later
updates, and it sends our own messages back to us as updates. It refuses a text over its limit, an
edit that changes nothing, and an edit of an unknown message.
"""

import time
from collections.abc import Callable, Sequence
from typing import Annotated, Literal, Protocol

import anyio
import msgspec
from msgspec.structs import replace

from hermes.control.targets import TargetPlatform
from hermes.settings.schema import Aliases
from hermes.text.markdown import print_markdown, print_plain
from hermes.types.errors import Rejected
from hermes.types.identity import ChatKind, Source, Target
from hermes.types.messages import Content, Edited, MessageEvent, MessageRef, Origin, Pressed, Said
from hermes.types.nodes import Document
from hermes.types.platforms import Cursor, Platform, PlatformLimits, Quality, refs_like
from hermes.types.protocols import Accept
from hermes.types.value import Value

LIMIT = 4096
BOT = "bot"
"""The user id of the gateway's account (the bot) on the platform."""
FIRST = "0"
"""The sync token with which an adapter gets all updates from the beginning."""


class Update(Value):
    """A message or a button press in a chat, by a person or by us."""

    id: int
    chat: str
    user: str
    text: str
    kind: ChatKind = "private"
    name: str | None = None
    question: str | None = None
    """The question that a button press answers; `text` is then the label of the button."""
    edits: int | None = None
    """The number of the update whose message was edited; `text` is then its new text."""


class Batch(Value):
    """A batch of updates, and the sync token with which the next batch is requested."""

    updates: tuple[Update, ...]
    token: str


class Shown(Value):
    """One of our messages in a chat, with the text that the chat shows now and all earlier
    texts."""

    id: str
    chat: str
    versions: tuple[str, ...]
    content: Content

    @property
    def text(self) -> str:
        return self.versions[-1]


class PlatformWire(Protocol):
    """The connection of an adapter to the platform."""

    async def updates(self, token: str) -> Batch: ...
    async def send(self, chat: str, content: Content, key: str) -> str: ...
    async def edit(self, id: str, content: Content) -> None: ...
    async def typing(self, chat: str) -> None: ...


class ChatServer:
    """The fake platform itself."""

    def __init__(self, *, deduplicates: bool = False) -> None:
        self.messages: dict[str, Shown] = {}
        self.calls: list[tuple[float, str, str]] = []
        """The time, the kind ("send" or "edit") and the chat of every call, including refused
        calls."""
        self.typed: list[tuple[float, str]] = []
        """The time and the chat of every typing indicator."""
        self.keys: list[str] = []
        """The keys of all calls that sent a message, in order. If a message was sent twice, its key
        is in the list twice."""
        self.echoed = 0
        """Number of the bot's own messages that the server has sent back to the bot as updates."""
        self.trouble: Callable[[str, str], Exception | None] = lambda kind, chat: None
        """A function that the server calls with the kind and the chat of each call of an adapter.
        If the function returns an error, the call fails with this error."""
        self.poll_seconds = 20.0
        """Maximum number of seconds that a request for updates waits for an update."""
        self._deduplicates = deduplicates
        self._sent: dict[str, str] = {}
        """Maps each key to the id of the message that was sent with it."""
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
        """Lets a person write to the bot. Returns the number of the update."""
        return self._add(Update(id=0, chat=chat, user=user, text=text, kind=kind, name=name))

    def presses(
        self,
        question: str,
        label: str,
        chat: str = "1",
        user: str = "7",
        kind: ChatKind = "private",
    ) -> int:
        """Makes a person press a button under a question. Returns the number of the update."""
        update = Update(id=0, chat=chat, user=user, text=label, kind=kind, question=question)
        return self._add(update)

    def edits(self, number: int, text: str, chat: str = "1", user: str = "7") -> int:
        """Lets a person edit the message of an update. Returns the number of the update that
        reports the edit."""
        return self._add(Update(id=0, chat=chat, user=user, text=text, edits=number))

    def repeat(self, number: int) -> None:
        """Delivers an update again, as platforms do when they don't know whether it arrived."""
        known = next(update for update in self._updates if update.id == number)
        self._updates.append(known)
        self._wake()

    def texts(self, chat: str = "1") -> list[str]:
        """Returns the texts of our messages in a chat, oldest first."""
        return [shown.text for shown in self.messages.values() if shown.chat == chat]

    async def updates(self, token: str) -> Batch:
        """Waits at most `poll_seconds` for updates after `token` (a position in the list of
        updates), and returns these updates. The list keeps all updates, so an earlier token returns
        earlier updates again."""
        position = int(token)
        with anyio.move_on_after(self.poll_seconds):
            while position >= len(self._updates):
                await self._changed.wait()
        found = self._updates[position : position + 100]
        self.echoed += sum(update.user == BOT for update in found)
        return Batch(updates=tuple(found), token=str(position + len(found)))

    async def send(self, chat: str, content: Content, key: str) -> str:
        self._check("send", chat, content)
        self.keys.append(key)
        if self._deduplicates and key in self._sent:
            return self._sent[key]
        id = f"m{len(self.messages) + 1}"
        self._sent[key] = id
        self.messages[id] = Shown(id=id, chat=chat, versions=(content.text,), content=content)
        self._add(Update(id=0, chat=chat, user=BOT, text=content.text))
        return id

    async def edit(self, id: str, content: Content) -> None:
        shown = self.messages.get(id)
        if shown is None:
            raise Rejected(f"there is no message {id!r}")
        self._check("edit", shown.chat, content)
        if (shown.text, shown.content.choices) == (content.text, content.choices):
            raise Rejected("the message is not modified")
        versions = (*shown.versions, content.text)
        self.messages[id] = Shown(id=id, chat=shown.chat, versions=versions, content=content)
        self._wake()

    async def typing(self, chat: str) -> None:
        if failure := self.trouble("typing", chat):
            raise failure
        self.typed.append((time.time(), chat))
        self._wake()

    async def changed(self) -> None:
        """Waits until the next change in a chat."""
        await self._changed.wait()

    def _add(self, update: Update) -> int:
        self._last += 1
        self._updates.append(replace(update, id=self._last))
        self._wake()
        return self._last

    def _check(self, kind: str, chat: str, content: Content) -> None:
        self.calls.append((time.time(), kind, chat))
        if failure := self.trouble(kind, chat):
            raise failure
        empty = not content.text.strip() and not content.attachments
        if empty or len(content.text) > LIMIT:
            raise Rejected(f"a text of {len(content.text)} characters is refused")

    def _wake(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


class PlainAdapter:
    """An adapter for a platform that shows plain text, without edits, buttons and files."""

    limits = PlatformLimits(text=LIMIT)
    quality: Quality = "bronze"

    def __init__(self, wire: PlatformWire, account: str = "plain") -> None:
        self.account = account
        self.connections = 0
        self._wire = wire

    def render(self, tree: Document) -> str:
        return print_plain(tree)

    def measure(self, text: str) -> int:
        return len(text)

    async def run(self, accept: Accept, ready: Callable[[], None], cursor: Cursor) -> None:
        self.connections += 1
        try:
            ready()
            token = cursor.value or FIRST
            while True:
                batch = await self._wire.updates(token)
                ready()
                heard = [update for update in batch.updates if update.user != BOT]
                for update in heard:
                    await accept(to_event(update, self.account))
                token = batch.token
                if heard:
                    await cursor.save(token)
        finally:
            self.connections -= 1

    async def send(self, target: Target, content: Content, key: str) -> MessageRef:
        return MessageRef(id=await self._wire.send(target.chat_id, content, key))


class EditingAdapter(PlainAdapter):
    """An adapter for a platform that shows Markdown and can edit."""

    def __init__(self, wire: PlatformWire, account: str = "editing") -> None:
        super().__init__(wire, account)

    def render(self, tree: Document) -> str:
        return print_markdown(tree)

    async def edit(self, target: Target, ref: MessageRef, content: Content) -> None:
        await self._wire.edit(ref.id, content)


class RichAdapter(EditingAdapter):
    """An adapter for a platform that can do everything."""

    limits = PlatformLimits(text=LIMIT, buttons=8, attachments=True, typing_interval=0.05)
    quality: Quality = "silver"

    def __init__(self, wire: PlatformWire, account: str = "rich") -> None:
        super().__init__(wire, account)

    async def typing(self, target: Target) -> None:
        await self._wire.typing(target.chat_id)


class KeyedAdapter(PlainAdapter):
    """An adapter for a platform that drops a message whose key it has already received."""

    limits = PlatformLimits(text=LIMIT, attachments=True, deduplicates=True)

    def __init__(self, wire: PlatformWire, account: str = "keyed") -> None:
        super().__init__(wire, account)


def to_event(update: Update, account: str) -> MessageEvent:
    source = Source(
        platform=account.partition(".")[0],
        account=account,
        chat_kind=update.kind,
        chat_id=update.chat,
        user_id=update.user,
        user_name=update.name,
    )
    body: Said | Pressed | Edited = Said(text=update.text, message_id=str(update.id))
    if update.edits is not None:
        body = Edited(message_id=str(update.edits), text=update.text)
    if update.question is not None:
        body = Pressed(question=update.question, choice=update.text)
    return MessageEvent(
        dedupe_key=f"{account}:{update.id}",
        source=source,
        origin=Origin(reply_to=Target(account=account, chat_id=update.chat)),
        received_at=time.time(),
        body=body,
    )


class FakeConfig(Value):
    """The settings of a fake platform."""

    token: Annotated[str, Aliases(env=("{}_BOT_TOKEN",), secret=True)] = ""
    """The credential of the default account; empty for no account."""
    accounts: dict[str, str] = msgspec.field(default_factory=dict)
    """The tokens of further accounts, by name."""
    mode: Literal["poll", "push"] = "poll"


def fake_platform(
    name: str, server: ChatServer, adapter: type[PlainAdapter]
) -> Platform[FakeConfig]:
    """Returns the manifest of a platform whose adapters talk to this server."""

    def accounts(config: FakeConfig) -> Sequence[str]:
        own = [name] if config.token else []
        return [*own, *(f"{name}.{account}" for account in config.accounts)]

    return Platform(
        name=name,
        config=FakeConfig,
        accounts=accounts,
        make=lambda account, config: adapter(server, account),
        credential=lambda account, config: config.accounts.get(
            account.partition(".")[2], config.token
        ),
        quality=adapter.quality,
        refs=FAKE_REFS,
    )


FAKE_REFS = refs_like(r"(\d+)(?::(\d+))?", "12")


def fake_targets(*accounts: str, home: str = "") -> tuple[TargetPlatform, ...]:
    """Returns the platforms to which a gateway with these accounts can send messages."""
    names = dict.fromkeys(account.partition(".")[0] for account in accounts)
    return tuple(
        TargetPlatform(
            name=name,
            accounts=tuple(one for one in accounts if one.partition(".")[0] == name),
            refs=FAKE_REFS,
            home=home,
        )
        for name in names
    )


def failing(*failures: Exception | None) -> Callable[[str, str], Exception | None]:
    """Returns a function for `ChatServer.trouble`. The first call of an adapter fails with the
    first of `failures`, the second call with the second, and so on. If an item is None, its call
    succeeds. Calls after the last item succeed."""
    rest: Sequence[Exception | None] = list(failures)

    def next_one(kind: str, chat: str) -> Exception | None:
        nonlocal rest
        if not rest:
            return None
        failure, *rest = rest
        return failure

    return next_one
