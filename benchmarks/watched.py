"""Runs the `hermes` command, and measures how late a sleeping task of its event loop wakes up."""

import json
import os
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import anyio

from hermes.app.application import Application
from hermes.control.gateway import Gateway
from hermes.entry.cli.main import run
from hermes.settings import Settings

EVERY = 0.01
DELAYS = "HERMES_BENCHMARK_DELAYS"
"""The environment variable with the path of the result file."""


class Watched(Application):
    def open_gateway(
        self, settings: Settings, *, terminal: bool
    ) -> AbstractAsyncContextManager[Gateway]:
        return watched(super().open_gateway(settings, terminal=terminal))


@asynccontextmanager
async def watched(opening: AbstractAsyncContextManager[Gateway]) -> AsyncIterator[Gateway]:
    """Records (time, seconds late) of every wake-up until the gateway ends."""
    seen: list[tuple[float, float]] = []

    async def watch() -> None:
        while True:
            due = time.perf_counter() + EVERY
            await anyio.sleep(EVERY)
            now = time.perf_counter()
            seen.append((now, now - due))

    async with opening as gateway, anyio.create_task_group() as group:
        group.start_soon(watch)
        yield gateway
        group.cancel_scope.cancel()
    Path(os.environ[DELAYS]).write_text(json.dumps(seen))


if __name__ == "__main__":
    run(Watched())
