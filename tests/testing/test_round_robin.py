"""The proxy passes each connection to the next of several servers."""

from contextlib import AsyncExitStack

import anyio
import anyio.abc

from hermes.testing.round_robin import round_robin


async def test_each_connection_goes_to_the_next_server_and_dead_servers_are_skipped() -> None:
    async with AsyncExitStack() as opened, anyio.create_task_group() as group:
        ports = []
        for name in (b"one", b"two"):
            listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
            await opened.enter_async_context(listener)
            ports.append(listener.extra(anyio.abc.SocketAttribute.local_port))

            async def answer(client: anyio.abc.SocketStream, name: bytes = name) -> None:
                async with client:
                    await client.send(name + b" " + await client.receive())

            group.start_soon(listener.serve, answer)
        async with await anyio.create_tcp_listener(local_host="127.0.0.1") as closed:
            free = closed.extra(anyio.abc.SocketAttribute.local_port)
        async with round_robin([*ports, free]) as proxy:
            answers = [await asked(proxy.port) for _ in range(4)]
        async with round_robin([free]) as nowhere:
            assert await asked(nowhere.port) == b""
        group.cancel_scope.cancel()
    assert set(answers) == {b"one hi", b"two hi"}


async def asked(port: int) -> bytes:
    async with await anyio.connect_tcp("127.0.0.1", port) as stream:
        try:
            await stream.send(b"hi")
            return await stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return b""
