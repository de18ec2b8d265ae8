"""If a container can't be connected to the network, an error says why. The tests of the forwarder
cover containers that are connected."""

import os
from pathlib import Path

import pytest

from hermes.boundary.execution.container_engine import ContainerEngine
from hermes.boundary.execution.container_network import connect_container, network_finding
from hermes.testing.network_checks import OPEN_NETWORK
from hermes.types.errors import ToolFailed
from hermes.types.execution import NetworkPolicy


async def test_a_container_that_can_not_be_connected_is_explained(tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match=r"set terminal\.docker_program to podman"):
        await connect_container(tmp_path, "s1", 2**22 + 1)


async def test_an_engine_whose_containers_can_not_be_connected_is_an_error(tmp_path: Path) -> None:
    for name in ("podman", "docker"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
        engine = ContainerEngine(name, {"PATH": str(tmp_path)})
        assert await engine.find() == ""
        refused = name == "docker" and os.geteuid() != 0
        assert [one.level for one in network_finding(OPEN_NETWORK, engine)] == ["error"] * refused
        assert network_finding(NetworkPolicy(), engine) == ()
