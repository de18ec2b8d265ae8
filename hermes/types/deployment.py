"""The gateways that run on this machine, and the processes that share a store."""

from typing import Protocol

from hermes.types.identity import FolderId, OwnerId
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


class StoreNode(Value):
    """A process that is registered in a store which several machines share."""

    id: OwnerId
    kind: str
    """`gateway` or `terminal`."""
    host: str
    """The name of its machine."""
    pid: int
    alive: bool
    """Whether it holds its lock. Otherwise another process takes its work over."""
    beat_age: float | None
    """Seconds since its last heartbeat, by the clock of the database; None if it has ended."""


class NodeFolder(Value):
    """The folder with the files of a node's agents: workspaces, memory, media, long results and
    lists of tasks."""

    id: FolderId
    path: str
    shared: bool = False
    """Whether other nodes may have the same folder."""
