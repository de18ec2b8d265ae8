"""Fixtures with a NATS server for the tests of this folder."""

from collections.abc import Iterator

import pytest

from hermes.state.nats import bus
from hermes.testing.nats import NatsProcess, running_nats


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives a bus more time for its first attempt to connect, so that the attempt also succeeds on
    a slow machine."""
    monkeypatch.setattr(bus, "NATS_CONNECT_SECONDS", 30)


@pytest.fixture(scope="session")
def shared_server() -> Iterator[NatsProcess]:
    with running_nats() as server:
        yield server


@pytest.fixture
def server(shared_server: NatsProcess) -> Iterator[NatsProcess]:
    """A running NATS server, which the test may stop. It is started again after the test."""
    try:
        yield shared_server
    finally:
        shared_server.start()
