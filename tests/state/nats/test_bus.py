"""Processes send each other messages over NATS."""

import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path

import anyio
import anyio.abc
import pytest
from nats.aio.client import Client

from hermes.state.nats import bus
from hermes.state.nats.address import NatsAddress, nats_addresses
from hermes.state.nats.bus import NatsBus, open_nats_bus
from hermes.state.postgres.store import open_postgres
from hermes.testing.bus_contract import BusContract, BusProcesses, send_until_received, taken
from hermes.testing.gateway_process import free_port
from hermes.testing.nats import NatsProcess, running_nats
from hermes.testing.rows import put
from hermes.testing.running import until
from hermes.testing.stores import store_url, stores_on_postgres
from hermes.types.bus import Bus
from hermes.types.identity import OwnerId
from hermes.types.store import Store


class NatsProcesses(BusProcesses):
    def __init__(self, url: str, server: NatsProcess) -> None:
        self._url = url
        self._server = server

    def opened(self) -> AbstractAsyncContextManager[Store]:
        open_bus = partial(open_nats_bus, nats_addresses(self._server.url()))
        return open_postgres(self._url, "gateway", open_bus=open_bus)

    async def cut(self) -> None:
        self._server.stop()

    async def mend(self) -> None:
        self._server.start()


class TestNats(BusContract):
    @pytest.fixture
    def url(self, tmp_path: Path) -> Iterator[str]:
        with stores_on_postgres():
            yield store_url(tmp_path)

    @pytest.fixture
    def processes(self, url: str, server: NatsProcess) -> BusProcesses:
        return NatsProcesses(url, server)

    async def test_a_short_command_wakes_the_gateways_although_it_does_not_use_nats(
        self, url: str, processes: BusProcesses
    ) -> None:
        async with processes.opened() as gateway, open_postgres(url) as command:
            changes = gateway.changes()
            with anyio.move_on_after(1.0):
                async for _ in gateway.changes():
                    pass
            with anyio.fail_after(20):
                await anext(changes)
                await command.run(put, "a")
                await anext(changes)


def opened(
    server: NatsProcess, name: str, credentials: str = "", database: str = "db"
) -> AbstractAsyncContextManager[NatsBus]:
    return open_nats_bus(nats_addresses(server.url(credentials)), OwnerId(name), database)


async def next_commit(one: Bus) -> int:
    """Returns the number of the next announced commit. Ignores None, which means that announcements
    may be lost."""
    with anyio.fail_after(20):
        async for commit in one.announced():
            if commit is not None:
                return commit
    raise AssertionError("the bus was closed")


async def test_a_commit_is_announced_with_its_number(server: NatsProcess) -> None:
    async with opened(server, "one") as one, opened(server, "two") as two:
        await one.announce(7)
        assert await next_commit(two) == 7


async def test_databases_that_share_a_server_do_not_hear_each_other(server: NatsProcess) -> None:
    async with (
        opened(server, "one") as one,
        opened(server, "two") as two,
        opened(server, "one", database="another") as other,
    ):
        await other.send(["wrong"])
        await other.send(["wrong"], OwnerId("two"))
        await other.announce(1)
        await one.send(["right"])
        await one.announce(2)
        assert await taken(two.received(), 1) == ["right"]
        assert await next_commit(two) == 2


async def test_a_message_that_is_longer_than_the_server_permits_is_sent_in_pieces() -> None:
    text = "ä€😀" * 1000
    with running_nats("max_payload: 256") as server:
        async with opened(server, "one") as one, opened(server, "two") as two:
            await one.send([text, "end"])
            assert await taken(two.received(), 2) == [text, "end"]


async def test_messages_are_left_out_if_no_piece_fits() -> None:
    with running_nats("max_payload: 50") as server:
        async with opened(server, "one") as one, opened(server, "two") as two:
            await one.send(["left out"])
            await one.announce(3)
            assert await next_commit(two) == 3


async def test_messages_of_other_programs_are_ignored(server: NatsProcess) -> None:
    other = Client()
    await other.connect(server.url())
    try:
        async with opened(server, "one") as one, opened(server, "two") as two:
            for data in (b"", b"\xff\xfe", b"you one two three", b"you 1 x y text", b"you \xff"):
                for subject in ("commits", "all", "to.two"):
                    await other.publish(f"hermes.db.{subject}", data)
            await other.flush()
            await one.send(["message"])
            await one.announce(9)
            assert await taken(two.received(), 1) == ["message"]
            assert await next_commit(two) == 9
    finally:
        await other.close()


def complaints(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.message for one in caplog.records if one.levelno == logging.ERROR]


async def test_without_a_server_at_the_start_the_bus_connects_later(
    server: NatsProcess, caplog: pytest.LogCaptureFixture
) -> None:
    server.stop()
    async with opened(server, "one") as one, opened(server, "two") as two:
        gaps = two.announced()
        with anyio.fail_after(20):
            await one.send(["lost"])
            await one.announce(1)
            # None means that announcements may be lost, so that the reader must look for changes in
            # the store.
            assert [await anext(gaps) for _ in range(3)] == [None, None, None]
        server.start()
        await send_until_received(one, "again", two.received())
        await until(lambda: caplog.text.count("is connected to NATS") == 2, within=20)
    assert len(complaints(caplog)) == 2
    for line in complaints(caplog):
        assert f"127.0.0.1:{server.port} can't be reached" in line
        assert "is it running there, and is bus.url right?" in line


async def test_the_log_repeats_at_most_once_a_minute_that_there_is_no_server(
    server: NatsProcess, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(bus, "NATS_PAUSE_SECONDS", 0.01)
    attempts = 0

    class CountedConnection(bus.NatsConnection):
        async def open(self) -> None:
            nonlocal attempts
            attempts += 1
            await super().open()

    monkeypatch.setattr(bus, "NatsConnection", CountedConnection)
    server.stop()
    async with opened(server, "one"):
        await until(lambda: attempts > 10, within=20)
        assert len(complaints(caplog)) == 1
    monkeypatch.setattr(bus, "COMPLAINT_SECONDS", 0.0)
    async with opened(server, "one"):
        await until(lambda: len(complaints(caplog)) > 3, within=20)


async def test_another_server_is_used_if_the_first_one_fails(server: NatsProcess) -> None:
    url = f"nats://127.0.0.1:{free_port()},{server.url()}"
    async with (
        open_nats_bus(nats_addresses(url), OwnerId("one"), "db") as one,
        opened(server, "two") as two,
    ):
        await send_until_received(one, "found", two.received())


@pytest.mark.parametrize(
    ("config", "credentials"),
    [
        (
            'authorization: {timeout: 30, user: "hermes", password: "p@ss/word"}',
            "hermes:p%40ss%2Fword",
        ),
        ('authorization: {timeout: 30, token: "secret token"}', "secret%20token"),
    ],
)
async def test_the_address_may_contain_credentials(config: str, credentials: str) -> None:
    with running_nats(config) as server:
        async with (
            opened(server, "one", credentials) as one,
            opened(server, "two", credentials) as two,
        ):
            await one.send(["hello"])
            assert await taken(two.received(), 1) == ["hello"]


@pytest.mark.parametrize("credentials", ["hermes:wrong-password", "wrong-token", ""])
async def test_wrong_credentials_are_explained_and_not_shown(
    credentials: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    config = 'authorization: {timeout: 30, user: "hermes", password: "right-password"}'
    with running_nats(config) as server:
        async with opened(server, "one", credentials) as one:
            await one.send(["lost"])
    (line,) = complaints(caplog)
    assert "refuses the user or the password of bus.url: correct HERMES_BUS_URL in .env" in line
    assert "wrong" not in caplog.text


@pytest.mark.parametrize("kind", ["publish", "subscribe"])
async def test_missing_permissions_are_explained(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    users = f'{{user: "a", password: "b", permissions: {{{kind}: "elsewhere.>"}}}}'
    with running_nats(f"authorization: {{timeout: 30, users: [{users}]}}") as server:
        async with opened(server, "one", "a:b") as one:
            await one.announce(1)
            await until(lambda: complaints(caplog), within=20)
    assert "permit it to publish and to subscribe to hermes.>" in complaints(caplog)[0]


async def test_a_server_of_another_kind_is_not_an_error(caplog: pytest.LogCaptureFixture) -> None:
    async def serve(client: anyio.abc.SocketStream) -> None:
        async with client:
            await client.send(b"HTTP/1.1 400 Bad Request\r\n\r\n" + b"x" * 100_000)

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, serve)
        address = NatsAddress(host="127.0.0.1", port=port)
        async with open_nats_bus([address], OwnerId("one"), "db") as one:
            await one.send(["lost"])
        group.cancel_scope.cancel()
    assert f"127.0.0.1:{port} can't be reached" in caplog.text


async def test_the_bus_stops_trying_a_server_that_does_not_answer(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(bus, "NATS_CONNECT_SECONDS", 0.1)
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    async with listener:
        address = NatsAddress(host="127.0.0.1", port=port)
        async with open_nats_bus([address], OwnerId("one"), "db") as one:
            await one.announce(1)
    assert "there was no answer in time" in caplog.text


async def test_a_server_that_hangs_counts_as_lost(
    server: NatsProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bus, "PING_SECONDS", 0.1)
    async with opened(server, "one") as one, opened(server, "two") as two:
        gaps = two.announced()
        with anyio.fail_after(20):
            await anext(gaps)
            server.pause()
            try:
                for _ in range(5):
                    await anext(gaps)
                await one.send(["lost" * 100_000] * 20)
            finally:
                server.wake()
        await send_until_received(one, "again", two.received())


async def test_the_error_of_the_caller_is_not_wrapped(server: NatsProcess) -> None:
    with pytest.raises(KeyError):
        async with opened(server, "one"):
            raise KeyError


async def iterated(items: AsyncIterator[object]) -> list[object]:
    return [item async for item in items]


async def test_the_readers_end_with_the_bus(server: NatsProcess) -> None:
    async with anyio.create_task_group() as group:
        async with opened(server, "one") as one:
            group.start_soon(iterated, one.received())
            group.start_soon(iterated, one.announced())
            await anyio.wait_all_tasks_blocked()
