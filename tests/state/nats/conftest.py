"""A NATS server for all tests of this folder."""

from collections.abc import Iterator

import pytest

from hermes.state.nats import bus
from hermes.testing.nats import NatsProcess, running_nats


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives the first attempt to connect more time, so that it succeeds on a slow machine too."""
    monkeypatch.setattr(bus, "NATS_CONNECT_SECONDS", 30)


@pytest.fixture(scope="session")
def shared_server() -> Iterator[NatsProcess]:
    with running_nats() as server:
        yield server


@pytest.fixture
def server(shared_server: NatsProcess) -> Iterator[NatsProcess]:
    """A running server, which the test may stop."""
    try:
        yield shared_server
    finally:
        shared_server.start()
