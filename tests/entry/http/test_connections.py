"""The table of connections closes connections after a time limit, or to make room for new
clients."""

import logging

import anyio
import pytest

from hermes.entry.http.connections import (
    FULL_SECONDS,
    SWEEP_SECONDS,
    ClientLimits,
    ClientState,
    ConnectionTable,
)
from hermes.testing.asgi import FakeConnection
from hermes.testing.running import until

LIMITS = ClientLimits(idle=60.0, sending=10.0, unread=30.0)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Clients:
    """A table of connections with a clock that the test sets."""

    def __init__(self, most: int = 100) -> None:
        self.clock = Clock()
        self.table = ConnectionTable(most, LIMITS, self.clock)

    def connect(self, state: ClientState | None) -> FakeConnection:
        self.clock.now += 1
        connection = FakeConnection()
        assert self.table.enter(connection)
        self.table.move(connection, None, state)
        return connection

    def pass_time(self, seconds: float) -> None:
        self.clock.now += seconds
        self.table.sweep()


def closed(*connections: FakeConnection) -> list[bool]:
    return [connection.was_cut.is_set() for connection in connections]


@pytest.mark.parametrize(("state", "seconds"), [("idle", 60), ("sending", 10), ("unread", 30)])
def test_each_state_of_a_connection_has_a_time_limit(state: ClientState, seconds: float) -> None:
    clients = Clients()
    connection = clients.connect(state)
    clients.pass_time(seconds - 1)
    assert closed(connection) == [False]
    clients.pass_time(1)
    assert closed(connection) == [True]


@pytest.mark.parametrize("state", [None, "body"])
def test_a_request_that_runs_is_never_closed(state: ClientState | None) -> None:
    clients = Clients()
    connection = clients.connect(state)
    clients.pass_time(10_000)
    assert closed(connection) == [False]


def test_the_time_is_reset_when_the_state_changes() -> None:
    clients = Clients()
    connection = clients.connect("idle")
    clients.pass_time(59)
    clients.table.move(connection, "idle", None)
    clients.table.move(connection, None, "idle")
    clients.pass_time(59)
    assert closed(connection) == [False]
    clients.pass_time(1)
    assert closed(connection) == [True]


def test_the_connection_that_was_idle_longest_is_closed_for_a_new_client() -> None:
    clients = Clients(most=3)
    busy, first, second = clients.connect(None), clients.connect("idle"), clients.connect("idle")
    clients.table.move(first, "idle", None)
    clients.table.move(first, None, "idle")
    third = clients.connect("idle")
    assert closed(busy, first, second, third) == [False, False, True, False]
    assert len(clients.table) == 3


def test_if_no_connection_is_idle_a_slow_client_is_disconnected_for_a_new_one() -> None:
    clients = Clients(most=4)
    states: list[ClientState] = ["unread", "body", "sending", "idle"]
    slow = {state: clients.connect(state) for state in states}
    order = []
    for _ in range(4):
        clients.connect(None)
        order.append([state for state, one in slow.items() if one.was_cut.is_set()])
    assert [len(one) for one in order] == [1, 2, 3, 4]
    assert order[:3] == [["idle"], ["sending", "idle"], ["body", "sending", "idle"]]


def test_a_new_client_is_refused_while_every_connection_has_a_request(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clients = Clients(most=2)
    first, second = clients.connect(None), clients.connect(None)
    with caplog.at_level(logging.WARNING):
        for _ in range(5):
            assert not clients.table.enter(FakeConnection())
        assert len(caplog.records) == 1
        clients.pass_time(FULL_SECONDS)
        assert not clients.table.enter(FakeConnection())
    assert len(caplog.records) == 2
    clients.table.leave(first, None)
    clients.connect(None)
    assert closed(first, second) == [False, False]


async def test_expired_connections_are_closed_periodically() -> None:
    clients = Clients()
    connection = clients.connect("idle")
    clients.clock.now += 61
    async with anyio.create_task_group() as group:
        group.start_soon(clients.table.watch)
        await until(connection.was_cut.is_set, within=5 * SWEEP_SECONDS)
        group.cancel_scope.cancel()
