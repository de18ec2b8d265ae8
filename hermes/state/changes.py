"""Tells readers that other processes have changed the store."""

from collections.abc import AsyncIterator

import anyio


class Changes:
    """Counts the commits of other processes that this process has noticed."""

    def __init__(self) -> None:
        self._count = 0
        self._news = anyio.Event()

    def notice(self) -> None:
        self._count += 1
        self._news.set()
        self._news = anyio.Event()

    async def noticed(self) -> AsyncIterator[None]:
        """Yields whenever there are new commits. Several commits may cause only one yield."""
        seen = 0
        while True:
            while seen == self._count:
                await self._news.wait()
            seen = self._count
            yield
