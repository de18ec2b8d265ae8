"""Gateways that run on this machine, as the commands that start and stop them see them."""

from typing import Protocol

from hermes.types.value import Value


class RunningGateway(Value):
    """A gateway process that runs for a home."""

    pid: int
    port: int = 0
    url: str = ""
    """The address of its API; empty before it listens, and if it has none."""


class GatewayRegistration(Protocol):
    """The entry of this process in the list of running gateways."""

    def write(self, running: RunningGateway) -> None:
        """Replaces the content of the entry."""
        ...
