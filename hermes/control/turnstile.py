"""Limits how many tasks continue in one round of the event loop, so that a burst can't block it."""

import asyncio
from collections import deque

PER_ROUND = 8
"""Number of tasks that continue in one round of the event loop."""


class Turnstile:
    """Lets a limited number of tasks continue in each round. The other tasks wait for later rounds,
    in order."""

    def __init__(self) -> None:
        self._passed = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._turning = False

    async def enter(self) -> None:
        self._turn_later()
        if self._passed < PER_ROUND and not self._waiting:
            self._passed += 1
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        await waiter

    def _turn_later(self) -> None:
        if not self._turning:
            self._turning = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        self._turning = False
        self._passed = 0
        while self._waiting and self._passed < PER_ROUND:
            waiter = self._waiting.popleft()
            if not waiter.done():
                self._passed += 1
                waiter.set_result(None)
        if self._waiting:
            self._turn_later()
