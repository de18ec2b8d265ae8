"""The contract of every bus: messages and announcements of commits between processes of one
store."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager

import anyio
import pytest

from hermes.testing.rows import put
from hermes.types.bus import Bus
from hermes.types.identity import OwnerId
from hermes.types.store import Store


class BusProcesses(ABC):
    """Opens stores that share a database and a bus. `cut` interrupts the bus, and `mend` restores
    it."""

    @abstractmethod
    def opened(self) -> AbstractAsyncContextManager[Store]:
        """Opens another store, as if in another process, and connects it to the bus."""

    @abstractmethod
    async def cut(self) -> None:
        """Ends all connections to the bus, and prevents new connections."""

    @abstractmethod
    async def mend(self) -> None:
        """Permits connections again."""


def bus_of(store: Store) -> Bus:
    assert store.bus is not None
    return store.bus


async def taken(messages: AsyncIterator[str], count: int) -> list[str]:
    with anyio.fail_after(20):
        return [await anext(messages) for _ in range(count)]


async def send_until_received(sender: Bus, text: str, messages: AsyncIterator[str]) -> None:
    """Sends the text again and again until it arrives."""

    async def send() -> None:
        while True:
            await sender.send([text])
            await anyio.sleep(0.05)

    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            group.start_soon(send)
            while await anext(messages) != text:
                pass
            group.cancel_scope.cancel()


class BusContract:
    """Tests of any bus. A test class derives from this class and has a fixture `processes`."""

    async def test_a_message_reaches_one_process_or_all_others_complete_and_in_order(
        self, processes: BusProcesses
    ) -> None:
        long = "ä€😀" * 30_000
        async with (
            processes.opened() as one,
            processes.opened() as two,
            processes.opened() as three,
        ):
            first, second, third = (bus_of(store).received() for store in (one, two, three))
            await bus_of(one).send(["for all", "for all", "last"])
            assert await taken(second, 3) == ["for all", "for all", "last"]
            assert await taken(third, 3) == ["for all", "for all", "last"]
            await bus_of(one).send([long, "", "short"], three.owner)
            assert await taken(third, 3) == [long, "", "short"]
            await bus_of(three).send(["answer"], one.owner)
            await bus_of(three).send(["end"])
            # No process receives its own messages, or messages to another process.
            assert sorted(await taken(first, 2)) == ["answer", "end"]
            assert await taken(second, 1) == ["end"]

    @pytest.mark.parametrize("owner", ["nobody", "*", ">", "all", "a b", "x\r\ny", ".", "ä", ""])
    async def test_a_message_to_an_unknown_process_reaches_nobody(
        self, processes: BusProcesses, owner: str
    ) -> None:
        async with processes.opened() as one, processes.opened() as two:
            await bus_of(one).send(["for nobody"], OwnerId(owner))
            await bus_of(one).send(["for all"])
            assert await taken(bus_of(two).received(), 1) == ["for all"]

    async def test_messages_that_nobody_reads_do_not_pile_up(self, processes: BusProcesses) -> None:
        async with processes.opened() as one, processes.opened() as two:
            messages = bus_of(two).received()
            for _ in range(30):
                await bus_of(one).send(["x"] * 100)
            await send_until_received(bus_of(one), "end", messages)

    async def test_a_commit_is_announced_to_others_and_not_to_its_own_process(
        self, processes: BusProcesses
    ) -> None:
        async with processes.opened() as one, processes.opened() as two:
            # A store that has just connected may report several changes, so the test reads these
            # reports first.
            with anyio.move_on_after(1.0):
                async for _ in one.changes():
                    pass
            here, there = one.changes(), two.changes()
            with anyio.fail_after(20):
                await anext(here)
                await anext(there)
                await one.run(put, "a")
                await anext(there)
            with anyio.move_on_after(0.5) as quiet:
                await anext(here)
            assert quiet.cancelled_caught

    async def test_without_connections_changes_are_polled_and_messages_are_lost(
        self, processes: BusProcesses
    ) -> None:
        async with processes.opened() as one, processes.opened() as two:
            changes, messages = two.changes(), bus_of(two).received()
            with anyio.fail_after(20):
                await anext(changes)
            await processes.cut()
            await one.run(put, "a")
            with anyio.fail_after(20):
                await bus_of(one).send(["lost"])
                for _ in range(3):
                    await anext(changes)
            await processes.mend()
            await send_until_received(bus_of(one), "again", messages)
            with anyio.fail_after(20):
                await one.run(put, "b")
                await anext(changes)
