"""The gateways that run on this machine."""

from typing import Protocol

from hermes.types.value import Value


class RunningGateway(Value):
    """A gateway process of a home."""

    pid: int
    port: int = 0
    url: str = ""
    """The address of its API; empty if it has no API or does not listen yet."""


class GatewayRegistration(Protocol):
    """The entry of this process in the list of running gateways."""

    def write(self, running: RunningGateway) -> None:
        """Replaces the content of the entry."""
        ...
