"""The HTTP session of a chat platform's account."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import anyio

CLOSE_SECONDS = 5.0
"""Longest time to wait for connections to close, after the last use of the session."""


class ReusedSession:
    """An HTTP session without cookies. It is opened by the first `async with` block that uses it,
    and closed when the last of these blocks ends."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None
        self._users = 0

    @asynccontextmanager
    async def open(self) -> AsyncIterator[aiohttp.ClientSession]:
        if self._session is None:
            self._session = aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar())
        session = self._session
        self._users += 1
        try:
            yield session
        finally:
            self._users -= 1
            if not self._users:
                self._session = None
                with anyio.move_on_after(CLOSE_SECONDS, shield=True):
                    await session.close()
