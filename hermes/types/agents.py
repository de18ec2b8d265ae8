"""An agent as the gateway hosts it: its profile, and everything that acts in its name."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from hermes.types.errors import ConfigError
from hermes.types.execution import ExecutionBackend
from hermes.types.identity import AgentId
from hermes.types.messages import Asked
from hermes.types.profile import AgentProfile, ModelChoice
from hermes.types.protocols import AgentRunner
from hermes.types.turns import Turn
from hermes.types.value import Value

EndSession = Callable[[Turn, float], Awaitable[None]]
"""Called with a conversation that is over, and the time of its end. May be called again."""
WriteTitle = Callable[[Turn, str], Awaitable[str]]
"""Returns a title for the conversation that a turn and its answer began; empty for none."""

FindModel = Callable[[str], ModelChoice]
"""Returns the model that a person's name for one means, or the agent's own for an empty name.
ConfigError says why it can't be used."""

CheckRequest = Callable[[Asked], None]
"""Raises one of our errors if the agent's model can't be given the request, before it is stored."""


def own_model_only(name: str) -> ModelChoice:
    """Finds no model, for an agent that has no others."""
    raise ConfigError("This agent has no other models.")


class AgentHome(Value):
    """An agent by its folder, which holds its configuration, persona, memory and workspace."""

    id: AgentId
    home: Path


class HostedAgent(Value):
    """One agent of a gateway, with everything that is its own."""

    profile: AgentProfile
    runner: AgentRunner
    backend: ExecutionBackend
    """The machine that its tools act on."""
    end_session: EndSession
    write_title: WriteTitle | None
    """None if its conversations keep their first words as their titles."""
    check_request: CheckRequest = lambda asked: None
    find_model: FindModel = own_model_only
