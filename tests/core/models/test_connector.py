"""Answers of many chunks, and answers that are read more slowly than they arrive."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import web

from hermes.core.models.connector import ModelConnector
from hermes.testing.running import until

SMALL = (b"data: word\n\n", 50)
LARGE = (b"x" * 100_000, 50)
"""More than aiohttp holds before it pauses the connection."""


@asynccontextmanager
async def serving(chunk: bytes, count: int) -> AsyncIterator[str]:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(count):
            await response.write(chunk)
        return response

    app = web.Application()
    app.router.add_get("/", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/"
    finally:
        await runner.cleanup()


@pytest.mark.parametrize(("chunk", "count"), [SMALL, LARGE], ids=["small", "large"])
async def test_every_answer_on_a_connection_arrives_whole(chunk: bytes, count: int) -> None:
    async with serving(chunk, count) as url, aiohttp.ClientSession(connector=ModelConnector()) as s:
        for _ in range(3):
            async with s.get(url) as response:
                found = b"".join([part async for part in response.content.iter_any()])
            assert found == chunk * count


async def test_an_answer_that_is_not_read_pauses_the_connection_until_it_is() -> None:
    chunk, count = LARGE
    async with serving(chunk, count) as url, aiohttp.ClientSession(connector=ModelConnector()) as s:
        async with s.get(url) as response:
            first = await response.content.readexactly(10)
            assert response.connection is not None
            protocol = response.connection.protocol
            assert protocol is not None
            await until(lambda: protocol._reading_paused)
            rest = await response.content.read()
        assert first + rest == chunk * count
