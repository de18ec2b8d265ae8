"""Platforms in another process can be stopped at any moment without an error."""

import asyncio
import socket
from collections.abc import Mapping

import anyio
import anyio.abc

from hermes.testing.remote import PlatformConnection, RemoteWire, Rooms, serve_rooms
from hermes.testing.running import until
from hermes.types.messages import Content


async def test_an_adapter_reaches_its_platform_through_a_socket() -> None:
    rooms = {"plain": Rooms()}
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            port = await group.start(serve_rooms, rooms)
            async with await anyio.connect_tcp("127.0.0.1", port) as stream:
                connection = PlatformConnection(stream)
                group.start_soon(connection.run)
                wire = RemoteWire(connection, "plain")
                id = await wire.send("chat", Content(text="hi"), "key")
                await wire.edit(id, Content(text="hello"))
                assert [message.text for message in rooms["plain"].shown("chat")] == ["hello"]
                group.cancel_scope.cancel()


async def test_a_stop_at_the_moment_when_data_arrives_raises_no_error() -> None:
    loop = asyncio.get_running_loop()
    broken: list[Mapping[str, object]] = []
    loop.set_exception_handler(lambda _, context: broken.append(context))
    for _ in range(20):
        async with anyio.create_task_group() as group:
            port = await group.start(serve_rooms, {"plain": Rooms()})
            with socket.create_connection(("127.0.0.1", port)) as client:
                await until_served(len(asyncio.all_tasks()))
                # In the next iteration of the event loop, data is ready to be read, but the reading
                # task is cancelled first.
                client.send(b"x")
                loop.call_soon(group.cancel_scope.cancel)
                await anyio.sleep_forever()
    assert broken == []


async def until_served(tasks: int) -> None:
    """Waits until the server has started a task for the connection."""
    await until(lambda: len(asyncio.all_tasks()) > tasks)
