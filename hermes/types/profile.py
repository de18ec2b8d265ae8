"""An agent as configuration: its home, model, limits and voice."""

from hermes.types.identity import DEFAULT_AGENT, AgentId
from hermes.types.value import Value


class ModelChoice(Value):
    """Which model answers, and where it is reached."""

    provider: str
    model: str
    base_url: str
    api_key: str = ""
    context_length: int | None = None

    def __repr__(self) -> str:
        return f"ModelChoice(provider={self.provider!r}, model={self.model!r})"


class Budget(Value):
    steps: int = 90
    """Model calls in one turn."""
    seconds: float = 1800.0
    """A turn's deadline."""


class AgentProfile(Value):
    id: AgentId = DEFAULT_AGENT
    home: str = ""
    workspace: str = ""
    """The folder that file tools stay inside."""
    model: ModelChoice | None = None
    """None until a model is configured: a turn then ends with how to do it."""
    budget: Budget = Budget()
    soul: str = ""
    """The persona, instead of the default identity."""
    toolsets: tuple[str, ...] = ("default",)
