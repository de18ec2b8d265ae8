"""Chat platforms: the manifest that describes one, and the adapter that connects an account."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar, runtime_checkable

import msgspec

from hermes.types.identity import Target
from hermes.types.messages import Content, MessageRef
from hermes.types.nodes import Document
from hermes.types.protocols import Accept
from hermes.types.value import Value

ConfigT = TypeVar("ConfigT", bound=msgspec.Struct)

# --- the adapter -----------------------------------------------------------------------------


class PlatformLimits(Value):
    """The limits and abilities of a platform."""

    text: int = 4096
    """Units of one message's rendered text, counted by `measure`."""
    chat_interval: float = 0.0
    """Seconds between two calls to one chat."""
    buttons: int = 0
    """Buttons that one message may have; 0 where questions are asked as text."""
    attachments: bool = False
    """Files can be sent."""
    typing_interval: float = 4.0
    """Seconds after which the platform must be told again that we are typing."""
    deduplicates: bool = False
    """The platform shows a message only once if it is sent again with the same key."""


class Cursor(Protocol):
    """How far an account has read its platform: a sync token or an offset."""

    @property
    def value(self) -> str | None:
        """The cursor that was last saved; None at the first connection."""
        ...

    async def save(self, value: str) -> None:
        """Stores the cursor. Call it after everything before the cursor was accepted.

        Raises ClaimLost if another process serves the account now.
        """
        ...


class PlatformAdapter(Protocol):
    """Connects one account to its platform. It reports and sends, and decides nothing."""

    @property
    def account(self) -> str: ...
    @property
    def limits(self) -> PlatformLimits: ...

    def render(self, tree: Document) -> str:
        """The tree in the platform's dialect. Pure: it may be called in a worker thread."""
        ...

    def measure(self, text: str) -> int:
        """The length of a rendered text, in the units of `limits.text`."""
        ...

    async def run(self, accept: Accept, ready: Callable[[], None], cursor: Cursor) -> None:
        """Listens until it is cancelled; calls `ready` when it is connected.

        A message is acknowledged to the platform after `accept` has returned.
        """
        ...

    async def send(self, target: Target, content: Content, key: str) -> MessageRef:
        """Sends one message. A repeated attempt to send it has the same key."""
        ...


@runtime_checkable
class CanEdit(Protocol):
    async def edit(self, target: Target, ref: MessageRef, content: Content) -> None: ...


@runtime_checkable
class CanType(Protocol):
    async def typing(self, target: Target) -> None:
        """Shows for a few seconds that an answer is being written."""
        ...


# --- the manifest ----------------------------------------------------------------------------

Quality = Literal["bronze", "silver", "gold"]
"""bronze: receives and sends. silver: also edits, threads and attachments. gold: also buttons,
reactions, voice and webhooks."""


class WebhookRequest(Value):
    """An HTTP request from a platform."""

    headers: Mapping[str, str]
    """Names are in lower case."""
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


class Platform(Value, Generic[ConfigT]):
    """A chat platform as `register_platforms` declares it. Creating one imports no SDK."""

    name: str
    """The name of its section in config.yaml and of its environment variables: `telegram`."""
    config: type[ConfigT]
    """The type of its section. A field may name environment variables with `Aliases`."""
    accounts: Callable[[ConfigT], Sequence[str]]
    """The accounts that are configured: the platform's name for the default one, then
    `<platform>.<name>`. Empty where the credentials are missing."""
    make: Callable[[str, ConfigT], PlatformAdapter]
    """The adapter of an account; imports the SDK."""
    extra: str = ""
    """The optional dependency group that installs the SDK."""
    routes: Callable[[ConfigT], Sequence[WebhookRoute]] = lambda config: ()
    """The addresses that are served in webhook mode."""
    quality: Quality = "bronze"


AnyPlatform: TypeAlias = Platform[Any]
"""A member of a list of platforms, each of which has its own config type."""
