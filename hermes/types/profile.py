"""The configuration of an agent: its home, model, limits and persona."""

from typing import Literal

import msgspec

from hermes.types.approvals import ApprovalPolicy
from hermes.types.identity import AgentId, Source
from hermes.types.messages import AttachmentKind, Message
from hermes.types.value import Value

UNKNOWN_LENGTH = 128_000
"""Context length, in tokens, of a model whose length is not known."""


class Price(Value):
    """Prices in dollars per million tokens."""

    input: float
    output: float
    cached: float | None = None
    """Price of tokens that are read from the provider's cache; None if they cost the same as other
    tokens."""


class Quirks(Value):
    """Peculiarities of a provider or a model that the code of the wire format must take into
    account.

    providers.toml lists the quirks of built-in providers. A plugin lists those of its own
    providers.
    """

    max_tokens_field: str = ""
    """Name of the field that limits the length of the answer; empty for the usual name of the wire
    format."""
    call_id_length: int = 0
    """Number of characters that the id of a tool call must have; 0 if our own ids are accepted."""
    extra_body: str = ""
    """A JSON object whose fields are added to every request. They are not added if the request uses
    another wire format than the provider's usual format."""
    list_prefix: str = ""
    """Prefix of model names in the provider's list. In a request, the name must not have the
    prefix."""
    structured: tuple[Literal["json_object", "json_schema"], ...] = ("json_object", "json_schema")
    """The kinds of `ResponseFormat` that the endpoint enforces, even in requests with tools and
    streaming. For other kinds, the format is described in the prompt."""
    reasoning: Literal["budget", "effort", "none"] = "budget"
    """How a request controls reasoning. With `budget`, the request has a number of tokens. With
    `effort`, it has an effort level, and the model accepts neither a budget nor sampling options.
    With `none`, the model does not reason."""


class ModelChoice(Value):
    """A model, its endpoint and its properties."""

    provider: str
    model: str
    base_url: str
    api_key: str = ""
    key_place: str = ""
    """The environment variable or setting for the key, which may still be missing. Error messages
    show this place."""
    wire: str = "chat"
    """Name of the endpoint's wire format."""
    context_length: int | None = None
    """Size of the model's context window in tokens; None if unknown. The property `window` is never
    None."""
    max_tokens: int | None = None
    """Longest answer in tokens; None leaves the limit to the provider."""
    price: Price | None = None
    tools: bool = True
    """Whether the model can call tools. The embedded demo model can't."""
    attachments: tuple[AttachmentKind, ...] | None = None
    """Kinds of attachments that the model accepts; None if unknown. If they are unknown, all kinds
    are sent."""
    quirks: Quirks = Quirks()

    @property
    def window(self) -> int:
        """Number of tokens that the model can read and write in one call. If the number is unknown,
        a typical number is assumed."""
        return self.context_length or UNKNOWN_LENGTH

    def __repr__(self) -> str:
        return f"ModelChoice(provider={self.provider!r}, model={self.model!r})"


BusyMode = Literal["queue", "steer", "interrupt"]
"""How a message is handled if it arrives while a turn of its session runs. `queue`: it is answered
after the turn. `steer`: it enters the turn before the next model call. `interrupt`: it stops the
turn, and is answered in the next turn."""


class Budget(Value):
    steps: int = 90
    """Maximum number of model calls in one turn."""
    seconds: float = 1800.0
    """Longest time in seconds that a turn may take."""
    client_seconds: float = 600.0
    """Longest time in seconds that a turn waits for the results of client tools."""


class AgentProfile(Value):
    id: AgentId
    home: str = ""
    workspace: str = ""
    """The folder that file tools can't leave."""
    model: ModelChoice | None = None
    """The model that answers; None if no model is configured. A turn then fails and explains how to
    configure a model."""
    budget: Budget = Budget()
    soul: str = ""
    """The persona from SOUL.md, which replaces the default persona."""
    instructions: str = ""
    """Text that the operator adds to the system prompt."""
    personalities: dict[str, str] = msgspec.field(default_factory=dict)
    """Instructions that a person can choose for a session, by the name of the personality."""
    context_chars: int = 20_000
    """Maximum number of characters of the workspace's context file that the prompt contains."""
    ephemeral: str = ""
    """Text that is sent with every model call and never stored. `channel_prompts` and `prefill` are
    not stored either."""
    channel_prompts: dict[str, str] = msgspec.field(default_factory=dict)
    """Text that is added to the prompt in individual chats. The keys have the form
    `platform:chat`."""
    prefill: tuple[Message, ...] = ()
    """Messages that are sent to the model before the history of every conversation."""
    busy_mode: BusyMode = "queue"
    """How a chat message is handled if it arrives while a turn of its session runs."""
    chat_busy_modes: dict[str, BusyMode] = msgspec.field(default_factory=dict)
    """Modes for individual chats, which replace `busy_mode` there. The keys have the form
    `platform:chat`."""
    approvals: ApprovalPolicy = ApprovalPolicy()
    toolsets: tuple[str, ...] = ("default",)
    """Names of the toolsets and single tools that the agent may use."""
    platform_toolsets: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    """Toolsets and single tools by platform. On a platform that is listed here, these toolsets
    replace `toolsets`."""
    disabled_toolsets: tuple[str, ...] = ()
    admin_tools: tuple[str, ...] = ()
    """Toolsets and single tools that only admins and owners may use."""
    owner_tools: tuple[str, ...] = ()
    """Toolsets and single tools that only owners may use."""

    def busy_mode_in(self, source: Source) -> BusyMode:
        """Returns how a message from this chat is handled while a turn of its session runs."""
        chat = f"{source.platform}:{source.chat_id}"
        return self.chat_busy_modes.get(chat, self.busy_mode)
