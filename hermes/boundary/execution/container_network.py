"""The network of the commands in containers, which can reach the proxy and nothing else."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import anyio

from hermes.boundary.execution import container_forwarder
from hermes.boundary.execution.container_engine import ContainerEngine
from hermes.boundary.execution.scripts import script
from hermes.types.errors import ToolFailed
from hermes.types.execution import BackendFinding, NetworkPolicy

NETWORK_ADVICE = (
    "terminal.network needs Linux, and Podman or a gateway that runs as root: set"
    " terminal.docker_program to podman, or terminal.network to none."
)


async def connect_container(folder: Path, sandbox: str, process: int) -> None:
    """Connects the network of a container with the proxy whose socket is in the folder. `process`
    is the first process of the container. Raises ToolFailed if the container can't be connected."""
    line = script(container_forwarder, str(folder), sandbox, str(process))
    done = await anyio.run_process(
        line, stdin=subprocess.DEVNULL, check=False, start_new_session=True
    )
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip()[-200:]
        raise ToolFailed(f"Commands can't have a network here. {NETWORK_ADVICE} {reason}".strip())


def network_finding(policy: NetworkPolicy, engine: ContainerEngine) -> Sequence[BackendFinding]:
    """Returns a finding if containers can't have the network that the policy allows. Without this
    network, all commands are refused."""
    if policy.mode == "none" or engine.is_podman or os.geteuid() == 0:
        return ()
    text = "Commands are refused, because their containers can't be connected with the network."
    return (BackendFinding(level="error", text=text, hint=NETWORK_ADVICE),)
