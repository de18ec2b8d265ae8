"""The network of the commands in sandboxes: runs the proxy, and lets commands reach it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from hermes.boundary.execution import forwarder
from hermes.boundary.execution.forwarder import proxy_environment
from hermes.boundary.execution.levels import Level
from hermes.boundary.execution.scripts import script
from hermes.types.execution import BackendFinding, NetworkPolicy

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from hermes.boundary.egress_proxy import EgressProxy
    from hermes.types.identity import SessionKey

log = logging.getLogger(__name__)

NETWORK_LEVEL: Level = "bubblewrap"
"""The only isolation level at which commands can have a network. The other levels can't keep a
command away from the programs that listen on this machine."""
SHOWN_HOSTS = 10
"""Maximum number of hosts in a description."""


class SandboxNetwork:
    """The network of all sandboxes of a backend. Commands have no network if the policy allows
    none. Commands without a network namespace of their own also have no network, because nothing
    would keep them away from the programs that listen on this machine."""

    def __init__(
        self,
        policy: NetworkPolicy,
        folder: Path,
        *,
        separate: bool,
        proxy: EgressProxy | None = None,
    ) -> None:
        """`folder` is the folder that contains the socket of the proxy. `separate` says whether
        commands have a network namespace of their own."""
        self._policy = policy
        self.folder = folder
        self._missing = policy.mode != "none" and not separate
        used = policy.mode != "none" and separate
        self._proxy = (proxy or _proxy(policy)) if used else None

    @property
    def description(self) -> str:
        """The network in words for people and for the model."""
        if self._proxy is None:
            return "no network"
        if self._policy.mode == "open":
            return "network: public web servers, through the proxy in http_proxy"
        hosts = self._policy.hosts
        more = ", …" if len(hosts) > SHOWN_HOSTS else ""
        shown = ", ".join(hosts[:SHOWN_HOSTS])
        return f"network: only {shown}{more}, through the proxy in http_proxy"

    def findings(self) -> Sequence[BackendFinding]:
        if self._proxy is not None:
            return (BackendFinding(level="ok", text=f"Commands have a {self.description}."),)
        if not self._missing:
            return ()
        text = f"Commands have no network: terminal.network needs {NETWORK_LEVEL}."
        hint = f"Install {NETWORK_LEVEL}, or set terminal.network to none."
        return (BackendFinding(level="warning", text=text, hint=hint),)

    async def start(self) -> None:
        """Starts the proxy, if it is needed and not started yet. Call this before a command
        starts."""
        if self._proxy is not None:
            try:
                await self._proxy.start(self.folder)
            except OSError as error:
                # The error is only logged, because file tools and commands that need no network
                # still work.
                log.error("commands have no network, because the proxy can't start: %s", error)

    @property
    def used(self) -> bool:
        """Whether commands have a network."""
        return self._proxy is not None

    def connected(self, arguments: tuple[str, ...], session: SessionKey) -> tuple[str, ...]:
        """Returns the command line that runs bubblewrap with these arguments, and connects the
        network namespace of bubblewrap with the proxy."""
        if self._proxy is None:
            return arguments
        return tuple(script(forwarder, str(self.folder), str(session), *arguments))

    def environment(self) -> dict[str, str]:
        """Returns the variables that tell commands where the proxy is."""
        return {} if self._proxy is None else proxy_environment()

    def remark(self, sandbox: str) -> str:
        """Returns a sentence for the model about the hosts that the proxy has refused to the
        sandbox since the last call of this method; empty if the proxy has refused no host."""
        refused = self._proxy.take_refused(sandbox) if self._proxy else ()
        if not refused:
            return ""
        return (
            f"[Connections to {', '.join(refused[:SHOWN_HOSTS])} were refused. The operator can"
            " allow these hosts with the setting terminal.network.]"
        )

    async def aclose(self) -> None:
        """Ends the proxy and its connections."""
        if self._proxy is not None:
            await self._proxy.aclose()


def _proxy(policy: NetworkPolicy) -> EgressProxy:
    # aiohttp is slow to import, and most commands of `hermes` start no proxy.
    from hermes.boundary.egress_proxy import EgressProxy  # noqa: PLC0415

    return EgressProxy(policy)
