"""An agent as configuration: its home, model, limits and voice."""

from typing import Literal

import msgspec

from hermes.types.identity import AgentId
from hermes.types.messages import Message
from hermes.types.value import Value

Wire = Literal["chat", "responses", "anthropic"]
"""What an endpoint speaks: OpenAI's chat completions or responses, or Anthropic's messages."""


class Price(Value):
    """Dollars for a million tokens."""

    input: float
    output: float
    cached: float | None = None
    """Read from the provider's cache; None where that costs the same."""


class ModelChoice(Value):
    """Which model answers, and where it is reached."""

    provider: str
    model: str
    base_url: str
    api_key: str = ""
    wire: Wire = "chat"
    context_length: int | None = None
    """Tokens that it can read at once; None where we don't know."""
    max_tokens: int | None = None
    """The longest answer; None leaves it to the provider."""
    price: Price | None = None
    tools: bool = True
    """Whether it can drive tools; the embedded demo model can't."""

    def __repr__(self) -> str:
        return f"ModelChoice(provider={self.provider!r}, model={self.model!r})"


class Budget(Value):
    steps: int = 90
    """Model calls in one turn."""
    seconds: float = 1800.0
    """A turn's deadline."""


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
