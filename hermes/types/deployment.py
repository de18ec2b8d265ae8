"""The gateways that run on this machine, and the processes that share a store."""

from typing import Protocol

from hermes.types.accounts import AccountStatus
from hermes.types.identity import FolderId, OwnerId
from hermes.types.value import Value


class RunningGateway(Value):
    """A gateway process of a home."""

    pid: int
    port: int = 0
    url: str = ""
    """The address of the gateway's API; empty if the gateway has no API or does not listen yet."""
    accounts: tuple[AccountStatus, ...] = ()
    """The states of the gateway's chat accounts."""


class GatewayRegistration(Protocol):
    """The entry of this process in the list of running gateways."""

    def write(self, running: RunningGateway) -> None:
        """Replaces the content of the entry."""
        ...


class StoreNode(Value):
    """A process that is registered in a store which several machines share."""

    id: OwnerId
    kind: str
    """The kind of process: `gateway` or `terminal`."""
    host: str
    """The name of the machine that the process runs on."""
    pid: int
    alive: bool
    """Whether the process holds the lock that proves that it is alive. If not, another process
    takes over its work."""
    beat_age: float | None
    """Seconds since the last heartbeat of the process, by the clock of the database. None if the
    process has ended."""


class NodeFolder(Value):
    """The folder with the files of a node's agents: workspaces, memory, media, long results and
    lists of tasks."""

    id: FolderId
    path: str
    shared: bool = False
    """Whether other nodes may have the same folder."""
