"""Lists the processes that use the same store, for `hermes gateway status`."""

import platform
from collections.abc import Collection

import anyio
import msgspec

from hermes import settings as configuration
from hermes.entry.cli.runtime import Runtime
from hermes.types.deployment import RunningGateway, StoreNode
from hermes.types.errors import HermesError
from hermes.types.value import Value


class NodeReport(Value):
    """The processes (nodes) that use a store which several machines share."""

    nodes: tuple[StoreNode, ...] = ()
    own: frozenset[str] = frozenset()
    """The ids of the nodes that are gateways of this home on this machine."""
    problem: str = ""
    """The reason why the nodes can't be listed; empty if they are listed."""

    def fields(self) -> list[dict[str, object]]:
        """Returns the nodes in a form for scripts."""
        return [
            {**msgspec.structs.asdict(node), "this": node.id in self.own} for node in self.nodes
        ]

    def lines(self) -> list[str]:
        """Returns the nodes as lines for people."""
        return [self._line(node) for node in self.nodes]

    def _line(self, node: StoreNode) -> str:
        if node.beat_age is None:
            state = "ended"
        elif node.alive:
            state = f"heartbeat {node.beat_age:.0f} s ago"
        else:
            state = f"dead, last heartbeat {node.beat_age:.0f} s ago"
        own = " (this home)" if node.id in self.own else ""
        return f"  {node.id}  {node.kind}  pid {node.pid} on {node.host}  {state}{own}"


def node_report(runtime: Runtime, running: Collection[RunningGateway]) -> NodeReport:
    """Lists the nodes of the home's store. `running` are the gateways of the home."""
    try:
        nodes = anyio.run(runtime.store_nodes, configuration.load())
    except HermesError as error:
        return NodeReport(problem=str(error))
    host, pids = platform.node(), {one.pid for one in running}
    own = frozenset(node.id for node in nodes if node.host == host and node.pid in pids)
    return NodeReport(nodes=tuple(nodes), own=own)
