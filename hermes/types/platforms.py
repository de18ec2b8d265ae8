"""Chat platforms: the manifest of a platform, and the adapter that connects an account."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar, runtime_checkable

import msgspec

from hermes.types.commands import SlashCommand
from hermes.types.identity import ChatRef, Target
from hermes.types.messages import Attachment, Content, MessageRef
from hermes.types.nodes import Document
from hermes.types.protocols import Accept
from hermes.types.value import Value

ConfigT = TypeVar("ConfigT", bound=msgspec.Struct)


class PlatformLimits(Value):
    """The limits and features of a platform."""

    text: int = 4096
    """Longest rendered text of one message, in the units that `measure` counts."""
    chat_interval: float = 0.0
    """Shortest time in seconds between two calls to the platform for the same chat."""
    buttons: int = 0
    """Maximum number of buttons of one message; 0 if the platform has no buttons."""
    attachments: bool = False
    """Whether files can be sent."""
    typing_interval: float = 4.0
    """Seconds after which the typing indicator must be renewed."""
    deduplicates: bool = False
    """Whether the platform drops a message that was already sent with the same key."""
    silence: float = 80.0
    """Longest time in seconds between two calls of `ready`. If the adapter does not call `ready`
    within this time, the adapter is restarted."""


class Cursor(Protocol):
    """The position up to which an account has read its platform, such as an offset."""

    @property
    def value(self) -> str | None:
        """The position that was saved last; None at the first connection."""
        ...

    async def save(self, value: str) -> None:
        """Stores the position. Call this method after all messages before the position have been
        accepted.

        Raises ClaimLost if another process serves the account now.
        """
        ...


class PlatformAdapter(Protocol):
    """Connects one account to its platform. It passes on messages and makes no decisions."""

    @property
    def account(self) -> str: ...
    @property
    def limits(self) -> PlatformLimits: ...

    def render(self, tree: Document) -> str:
        """Renders the tree in the platform's dialect. The gateway may call this method in a worker
        thread."""
        ...

    def measure(self, text: str) -> int:
        """Returns the length of a rendered text, in the units of `limits.text`."""
        ...

    async def run(self, accept: Accept, ready: Callable[[], None], cursor: Cursor) -> None:
        """Listens until it is cancelled, and calls `ready` when it is connected.

        It calls `ready` again whenever the platform has answered, for example after each poll, so
        that a dead connection is noticed; see `PlatformLimits.silence`. It acknowledges a message
        to the platform after `accept` has returned.
        """
        ...

    async def send(self, target: Target, content: Content, key: str) -> MessageRef:
        """Sends one message. A retry passes the same key."""
        ...


@runtime_checkable
class CanEdit(Protocol):
    async def edit(self, target: Target, ref: MessageRef, content: Content) -> None: ...


@runtime_checkable
class CanType(Protocol):
    async def typing(self, target: Target) -> None:
        """Shows the typing indicator for a few seconds."""
        ...


@runtime_checkable
class CanReact(Protocol):
    async def react(self, target: Target, message_id: str) -> None:
        """Shows on a received message that the agent works on it. The method may be called more
        than once for the same message."""
        ...


@runtime_checkable
class CanDraft(Protocol):
    async def draft(self, target: Target, content: Content, key: str) -> bool:
        """Shows the answer so far as a draft, which is not a message. The key is the same for all
        drafts of one answer.

        Returns False if the chat has no drafts. The caller then sends the preview as a message.
        """
        ...


@runtime_checkable
class CanListCommands(Protocol):
    async def show_commands(self, commands: Sequence[SlashCommand]) -> None:
        """Shows the commands in the platform's own menu. The gateway calls this method each time
        after the adapter has connected."""
        ...


FetchFile = Callable[[Attachment], Awaitable[bytes]]
"""Downloads a received file. `path` of the attachment is the platform's own id of the file. Raises
Rejected if the file can't be downloaded and a later attempt would fail, too."""


@runtime_checkable
class CanFetch(Protocol):
    async def fetch(self, attachment: Attachment) -> bytes:
        """Downloads a file of an event that `run` has reported; see `FetchFile`."""
        ...


@runtime_checkable
class HasUserId(Protocol):
    """An adapter that knows the user id of its account. The gateway needs this id on platforms
    that do not say which users are bots."""

    user_id: str
    """The account's own user id. The attribute exists while the adapter is connected."""


@runtime_checkable
class CanVerify(Protocol):
    async def verify(self) -> str:
        """Checks that the platform accepts the credentials of the account, for `hermes doctor`.
        Returns a short description of the account, such as `@our_bot`.

        Raises AuthFailed if the credentials are refused. The call must not disturb a gateway that
        uses the account at the same time.
        """
        ...


Quality = Literal["bronze", "silver", "gold"]
"""bronze: receives and sends messages. silver: also edits, threads and attachments. gold: also
buttons, reactions, voice and webhooks."""


class WebhookRequest(Value):
    """An HTTP request from a platform."""

    headers: Mapping[str, str]
    """The headers of the request. Their names are in lower case."""
    query: Mapping[str, str]
    body: bytes


class WebhookResponse(Value):
    status: int = 200
    body: bytes = b""
    media_type: str = "text/plain"


WebhookHandler = Callable[[WebhookRequest, Accept], Awaitable[WebhookResponse]]
"""Verifies the request, and responds after `accept` has returned."""


class WebhookRoute(Value):
    """An address at which a platform delivers messages over HTTP."""

    method: Literal["GET", "POST", "PUT"]
    path: str
    handler: WebhookHandler
    fetch: FetchFile | None = None
    """Downloads the files of the events that the handler reports."""


def no_ref(text: str) -> ChatRef | None:
    """Returns None for every text. This function is the `parse` of a platform on which people can
    name only chats that the gateway has seen."""
    return None


def plain_ref(chat: ChatRef) -> str:
    """Returns the id of the chat, followed by the id of the thread after a colon."""
    return chat.chat_id if chat.thread_id is None else f"{chat.chat_id}:{chat.thread_id}"


class ChatRefs(Value):
    """The text form of a platform's chats. If `parse` reads the text that `format` returns, the
    result is the same chat."""

    parse: Callable[[str], ChatRef | None] = no_ref
    """Reads an id, with an optional thread. Returns None for any other text, which may be the name
    of a chat. The form must be so strict that a name is rarely mistaken for an id."""
    format: Callable[[ChatRef], str] = plain_ref
    example: str = ""
    """An example for error messages, such as `-1001234567890`."""


def refs_like(pattern: str, example: str) -> ChatRefs:
    """Returns a text form for ids. The regular expression `pattern` must match the whole id. Its
    first group is the chat, and its second group is the thread, which follows a colon. The pattern
    is compiled with the flag `re.ASCII`."""
    compiled = re.compile(pattern, re.ASCII)

    def parse(text: str) -> ChatRef | None:
        found = compiled.fullmatch(text)
        return ChatRef(chat_id=found[1], thread_id=found[2]) if found else None

    return ChatRefs(parse=parse, example=example)


class Platform(Value, Generic[ConfigT]):
    """A chat platform as `register_platforms` declares it. Creating this value imports no SDK."""

    name: str
    """The name of the platform, such as `telegram`. It is also the name of the platform's section
    in config.yaml, and part of the names of its environment variables."""
    config: type[ConfigT]
    """The type of the platform's section in config.yaml. A field may name environment variables
    with `Aliases`."""
    accounts: Callable[[ConfigT], Sequence[str]]
    """Returns the names of the configured accounts. The default account has the platform's name,
    and other accounts are named `<platform>.<name>`. The result is empty if the credentials are
    missing."""
    make: Callable[[str, ConfigT], PlatformAdapter]
    """Returns the adapter of an account. This call imports the SDK."""
    credential: Callable[[str, ConfigT], str] = lambda account, config: ""
    """Returns the secret with which an account logs in, such as its token. Only one gateway at a
    time can use a credential. The result is empty if the platform allows several gateways to use
    one account."""
    extra: str = ""
    """The optional dependency group that installs the SDK."""
    routes: Callable[[ConfigT], Sequence[WebhookRoute]] = lambda config: ()
    """Returns the routes that are served in webhook mode."""
    quality: Quality = "bronze"
    refs: ChatRefs = ChatRefs()
    """How people name a chat of the platform, for example `telegram:-1001234567890:17`."""


AnyPlatform: TypeAlias = Platform[Any]
"""A platform with any config type."""
