"""The processes of a database send each other messages as notifications."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import anyio
import pytest

from hermes.state.postgres.bus import BUS_CHANNEL, PostgresBus
from hermes.state.postgres.pool import Pool, Server
from hermes.state.postgres.store import open_postgres
from hermes.testing.bus_contract import BusContract, BusProcesses, taken
from hermes.testing.cutting_proxy import CuttingProxy, cutting_proxy
from hermes.testing.postgres import shared_databases
from hermes.types.store import Store


class NotifiedProcesses(BusProcesses):
    """Processes whose direct connections (for locks and notifications) go through a proxy, so that
    the test can cut them."""

    def __init__(self, url: str, direct_url: str, proxy: CuttingProxy) -> None:
        self._url = url
        self._direct_url = direct_url
        self._proxy = proxy

    def opened(self) -> AbstractAsyncContextManager[Store]:
        return open_postgres(self._url, "gateway", self._direct_url)

    async def cut(self) -> None:
        self._proxy.refusing = True
        self._proxy.cut_all()

    async def mend(self) -> None:
        self._proxy.refusing = False


class TestNotifications(BusContract):
    @pytest.fixture
    async def processes(self, tmp_path: Path, url: str) -> AsyncIterator[BusProcesses]:
        databases = shared_databases()
        async with cutting_proxy(databases.server.socket) as proxy:
            yield NotifiedProcesses(url, proxy.url(databases.name_of(tmp_path)), proxy)


async def test_messages_to_one_process_and_to_all_arrive_in_the_order_of_sending(url: str) -> None:
    async with open_postgres(url, "gateway") as one, open_postgres(url, "gateway") as two:
        await one.bus.send(["for all"])
        await one.bus.send(["for two", "for two"], two.owner)
        await one.bus.send(["last"])
        assert await taken(two.bus.received(), 4) == ["for all", "for two", "for two", "last"]


async def test_a_message_that_cannot_be_sent_is_lost_without_an_error(url: str) -> None:
    pool = Pool(Server(url))
    await pool.close()
    sender = PostgresBus(pool, "me")
    await sender.send(["lost"])
    await sender.announce(1)
    sender.close()


async def test_notifications_of_other_programs_are_ignored(url: str) -> None:
    receiver = PostgresBus(Pool(Server(url)), "me")
    for payload in ("", "hello", "you one two three four", "you 1 1 1"):
        receiver.take(BUS_CHANNEL, payload)
        receiver.take("hermes", payload)
    receiver.take(BUS_CHANNEL, "you 1 1 1 message")
    receiver.take("hermes", "you 7")
    with anyio.fail_after(5):
        assert await anext(receiver.received()) == "message"
        assert await anext(receiver.announced()) == 7
    receiver.close()
