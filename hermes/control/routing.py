"""Chooses the agent that answers a message."""

from collections.abc import Callable, Collection

from hermes.types.errors import HermesError
from hermes.types.identity import AgentId
from hermes.types.messages import MessageEvent

DEFAULT_AGENT = AgentId("main")

Route = Callable[[MessageEvent], AgentId]
SelectAgent = Callable[[MessageEvent], AgentId | None]
"""Returns the agent that a plugin chooses for a message; None if no plugin chooses an agent."""


class RoutingFailed(HermesError):
    """Raised if the agent for a message can't be determined. No other agent then answers the
    message."""


class Router:
    """Calls the `select_agent` hook. Uses the default agent if the hook chooses no agent."""

    def __init__(
        self,
        agents: Collection[AgentId],
        select: SelectAgent = lambda event: None,
        default: AgentId = DEFAULT_AGENT,
    ) -> None:
        self._agents = agents
        self._select = select
        self._default = default

    def __call__(self, event: MessageEvent) -> AgentId:
        """Returns the agent for the message. Raises RoutingFailed if the hook fails or chooses an
        unknown agent."""
        try:
            selected = self._select(event) or self._default
        except Exception as error:
            raise RoutingFailed(
                f"the plugin that chooses agents failed for a message of {event.source.account}:"
                f" {error!r}: correct the plugin or uninstall it"
            ) from error
        if selected not in self._agents:
            known = ", ".join(sorted(self._agents))
            raise RoutingFailed(
                f"a message of {event.source.account} was routed to the agent {selected!r}, which"
                f" is not hosted here: the agents are {known}"
            )
        return selected
