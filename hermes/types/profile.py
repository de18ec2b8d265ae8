"""An agent as configuration: its home, model, limits and voice."""

from typing import Literal

import msgspec

from hermes.types.identity import AgentId
from hermes.types.messages import AttachmentKind, Message
from hermes.types.value import Value

UNKNOWN_LENGTH = 128_000
"""Context length, in tokens, of a model whose length is not known."""


class Price(Value):
    """Dollars for a million tokens."""

    input: float
    output: float
    cached: float | None = None
    """Read from the provider's cache; None where that costs the same."""


class Quirks(Value):
    """Peculiarities of a provider or a model that its wire format has to know.

    providers.toml states them; a plugin states those of its own providers.
    """

    max_tokens_field: str = ""
    """Name of the field that limits the answer; empty for the usual name of the wire format."""
    call_id_length: int = 0
    """Exact number of letters and digits in the id of a tool call; 0 if our own ids are taken."""
    extra_body: str = ""
    """Further fields of every request in the provider's own wire format, as a JSON object."""
    list_prefix: str = ""
    """Prefix of the names in the list of models that the name in a request must not have."""
    structured: tuple[Literal["json_object", "json_schema"], ...] = ("json_object", "json_schema")
    """The kinds of `ResponseFormat` that the endpoint enforces itself, also beside tools and in a
    stream. For other kinds the model is told in words."""
    reasoning: Literal["budget", "effort", "none"] = "budget"
    """How the model is told how much to reason: by a number of tokens, or by an effort, in which
    case it takes neither a number nor sampling options. `none` refuses requests for reasoning."""


class ModelChoice(Value):
    """Which model answers, and where it is reached."""

    provider: str
    model: str
    base_url: str
    api_key: str = ""
    key_place: str = ""
    """The variable or setting that holds the key, or would hold it, as errors name it."""
    wire: str = "chat"
    """Name of the wire format that the endpoint speaks."""
    context_length: int | None = None
    """Tokens that it can read at once; None where we don't know: see `window`."""
    max_tokens: int | None = None
    """The longest answer; None leaves it to the provider."""
    price: Price | None = None
    tools: bool = True
    """Whether it can drive tools; the embedded demo model can't."""
    attachments: tuple[AttachmentKind, ...] | None = None
    """Kinds of attachments that it accepts; None where we don't know: then it is sent all kinds."""
    quirks: Quirks = Quirks()

    @property
    def window(self) -> int:
        """Tokens that it can read and write in one call: the known number, or a usual one."""
        return self.context_length or UNKNOWN_LENGTH

    def __repr__(self) -> str:
        return f"ModelChoice(provider={self.provider!r}, model={self.model!r})"


class Budget(Value):
    steps: int = 90
    """Model calls in one turn."""
    seconds: float = 1800.0
    """A turn's deadline."""
    client_seconds: float = 600.0
    """How long a turn waits for the results of client tools."""


class AgentProfile(Value):
    id: AgentId
    home: str = ""
    workspace: str = ""
    """The folder that file tools stay inside."""
    model: ModelChoice | None = None
    """None until a model is configured: a turn then ends with how to do it."""
    budget: Budget = Budget()
    soul: str = ""
    """The persona, instead of the default identity."""
    instructions: str = ""
    """What the operator adds to it."""
    context_chars: int = 20_000
    """Characters of the workspace's context file that the model is shown."""
    ephemeral: str = ""
    """Said with every call, and stored nowhere; so are the next two."""
    channel_prompts: dict[str, str] = msgspec.field(default_factory=dict)
    """For single chats, by `platform:chat`."""
    prefill: tuple[Message, ...] = ()
    """Messages that stand before every conversation."""
    toolsets: tuple[str, ...] = ("default",)
    """What it may use: names of toolsets and of single tools."""
    platform_toolsets: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    """What it may use on a platform, instead of `toolsets`."""
    disabled_toolsets: tuple[str, ...] = ()
