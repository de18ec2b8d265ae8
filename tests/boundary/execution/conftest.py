"""Fixtures for tests of commands."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.boundary.execution.local import LocalBackend
from hermes.testing.commands import local_backend
from hermes.testing.containers import ContainerStage, container_stage
from hermes.testing.ssh_server import SshServer, ssh_server
from hermes.types.errors import Disconnected


@pytest.fixture
def local(tmp_path: Path) -> Iterator[LocalBackend]:
    with local_backend(tmp_path) as local:
        yield local


@pytest.fixture(scope="session")
def containers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ContainerStage]:
    """A stage for containers. Without an engine its tests are skipped, except in CI."""
    try:
        stage = container_stage(tmp_path_factory.mktemp("containers"))
    except Disconnected as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))
    yield stage
    stage.close()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    """A running SSH server. Without the program its tests are skipped, except in CI."""
    try:
        server = ssh_server(tmp_path_factory.mktemp("ssh"))
    except Disconnected as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))
    server.start()
    yield server
    server.stop()
