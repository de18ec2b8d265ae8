"""Shuts down the sandboxes that nobody has used for a while. The next use starts them again."""

import logging
from collections.abc import Collection

import anyio

from hermes.types.agents import HostedAgent
from hermes.types.errors import HermesError

log = logging.getLogger(__name__)

IDLE_LOOK_SECONDS = 60.0
"""Seconds between two searches for idle sandboxes."""


class IdleSandboxes:
    """The idle sandboxes of the agents of one gateway."""

    def __init__(self, agents: Collection[HostedAgent]) -> None:
        self._agents = agents

    async def run(self) -> None:
        while True:
            await anyio.sleep(IDLE_LOOK_SECONDS)
            for agent in self._agents:
                await self.close(agent)

    async def close(self, agent: HostedAgent) -> None:
        """Shuts down the idle sandboxes of one agent."""
        try:
            closed = await agent.backend.close_idle(agent.idle_seconds)
        except HermesError as error:
            log.error("idle sandboxes of agent %s still run: %s", agent.profile.id, error)
        except Exception:
            # A backend may come from a plugin, and an error in the plugin must not end the gateway.
            log.exception("idle sandboxes of agent %s still run", agent.profile.id)
        else:
            if closed:
                log.info("%d idle sandboxes of agent %s were shut down", closed, agent.profile.id)
