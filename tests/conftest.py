"""Fixtures for all tests."""

import gc
import os
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from hermes.testing.commands import note_earlier_children
from hermes.testing.containers import ContainerStage, container_stage
from hermes.testing.embedded import embedded_file
from hermes.testing.postgres import remove_shared_databases
from hermes.testing.ssh_server import SshServer, ssh_server
from hermes.testing.synapse import remove_shared_synapse
from hermes.types.errors import Disconnected

# A property test must not fail only because the machine is busy.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def earlier_children() -> None:
    note_earlier_children()


@pytest.fixture(scope="session", autouse=True)
def no_server_left() -> Iterator[None]:
    yield
    remove_shared_databases()
    remove_shared_synapse()


@pytest.fixture(scope="session")
def embedded_model() -> Path:
    """Returns the path of the embedded model's real file."""
    try:
        return embedded_file()
    except Disconnected as error:
        pytest.skip(str(error))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Excludes the modules and the collected tests from garbage collection. Otherwise each full
    collection during a test would check these half a million objects, which are never garbage."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session")
def containers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ContainerStage]:
    """A stage for containers. If this machine has no container engine, the tests that use the stage
    are skipped, except in CI."""
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
    """A running SSH server. If this machine has no program for it, the tests that use the server
    are skipped, except in CI."""
    try:
        server = ssh_server(tmp_path_factory.mktemp("ssh"))
    except Disconnected as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))
    server.start()
    yield server
    server.stop()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Puts slow tests at the beginning of each worker's share of the tests. At the end, one worker
    would run them one after the other while the other workers have nothing to do."""
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    slow = [item for item in items if item.get_closest_marker("slow")]
    rest = [item for item in items if not item.get_closest_marker("slow")]
    size = len(items) / workers
    ordered: list[pytest.Item] = []
    for number in range(workers):
        part = slow[number::workers]
        quick = round((number + 1) * size) - len(ordered) - len(part)
        ordered += [*part, *rest[:quick]]
        del rest[:quick]
    items[:] = ordered


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """In CI no test may be skipped: a run with a skipped test fails."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CI") == "true" and reporter and reporter.stats.get("skipped"):
        reporter.write_line("tests were skipped, and in CI that is a failure", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
