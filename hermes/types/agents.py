"""The agents that a gateway hosts, and the functions that the gateway calls for them."""

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
"""A function that is called with an ended conversation and the time of its end. It may be called
more than once for the same conversation."""
WriteTitle = Callable[[Turn, str], Awaitable[str]]
"""Returns a title for a conversation, from its first turn and the answer of this turn; "" for no
title."""

FindModel = Callable[[str], ModelChoice]
"""Finds a model by the name that a person typed. An empty name means the agent's own model. If the
model can't be used, raises a ConfigError that says why."""

CheckRequest = Callable[[Asked], None]
"""Raises a HermesError if the agent's model can't accept the request. This function is called
before the request is stored."""


def own_model_only(name: str) -> ModelChoice:
    """Raises ConfigError for every name. This function is the `FindModel` of an agent that has only
    its own model."""
    raise ConfigError("This agent has no other models.")


class AgentHome(Value):
    """An agent and its folder, which holds its configuration, persona, memory and workspace."""

    id: AgentId
    home: Path


class HostedAgent(Value):
    """One agent of a gateway, with the objects that belong to it alone."""

    profile: AgentProfile
    runner: AgentRunner
    backend: ExecutionBackend
    """Runs the commands and file operations of the agent's tools."""
    end_session: EndSession
    write_title: WriteTitle | None
    """Writes the title of a conversation. If it is None, the title is the first words of the
    conversation."""
    check_request: CheckRequest = lambda asked: None
    find_model: FindModel = own_model_only
    idle_seconds: float = 300.0
    """Number of seconds after which an unused sandbox of the agent is shut down."""
