"""Measures how late a sleeping task of an event loop wakes up."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import msgspec

EVERY = 0.01
"""Seconds that the task sleeps before each measurement."""


@asynccontextmanager
async def measured_delays(result: Path) -> AsyncIterator[None]:
    """Runs the measuring task until the block ends. Then writes a pair for each wake-up of the task
    to the file `result`: the time, and the number of seconds by which the task was late."""
    seen: list[tuple[float, float]] = []

    async def watch() -> None:
        while True:
            due = time.perf_counter() + EVERY
            await anyio.sleep(EVERY)
            now = time.perf_counter()
            seen.append((now, now - due))

    async with anyio.create_task_group() as group:
        group.start_soon(watch)
        yield
        group.cancel_scope.cancel()
    # The blocking write is harmless: the gateway is ending, so no other task needs the event loop.
    result.write_bytes(msgspec.json.encode(seen))  # noqa: ASYNC240


def read_delays(result: Path) -> list[tuple[float, float]]:
    return msgspec.json.decode(result.read_bytes(), type=list[tuple[float, float]])
