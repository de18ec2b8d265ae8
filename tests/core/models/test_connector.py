"""A connection is paused while its reader is slow, and is resumed later."""

import aiohttp
import pytest

from hermes.core.models.connector import ModelConnector
from hermes.testing.running import until
from hermes.testing.upstream import answering

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
WORDS = b"a few words. " * 200
CHUNK = b"%x\r\n%b\r\n" % (len(WORDS), WORDS)
END = b"0\r\n\r\n"


@pytest.mark.parametrize("count", [3, 2000])
async def test_an_answer_of_any_length_is_read_to_its_end(count: int) -> None:
    async with (
        answering(HEAD + CHUNK * count + END) as url,
        aiohttp.ClientSession(connector=ModelConnector()) as session,
        session.post(url, data=b"{}") as response,
    ):
        found = [data async for data in response.content.iter_any()]
    assert b"".join(found) == WORDS * count


async def test_a_slow_reader_pauses_the_connection_and_gets_the_whole_answer() -> None:
    async with (
        answering(HEAD + CHUNK * 2000 + END) as url,
        aiohttp.ClientSession(connector=ModelConnector()) as session,
        session.post(url, data=b"{}") as response,
    ):
        assert response.connection is not None
        protocol = response.connection.protocol
        assert protocol is not None
        await until(lambda: protocol._reading_paused)
        assert response.content.total_bytes < len(WORDS) * 2000
        assert await response.read() == WORDS * 2000
