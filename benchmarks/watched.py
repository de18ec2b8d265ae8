"""Runs the `hermes` command, and measures how late a sleeping task of its event loop wakes up."""

import os
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from hermes.app.application import Application
from hermes.control.gateway import Gateway
from hermes.entry.cli.main import run
from hermes.settings import Settings
from hermes.testing.loop_delays import measured_delays

DELAYS = "HERMES_BENCHMARK_DELAYS"
"""The environment variable with the path of the file that gets the measured delays."""


class Watched(Application):
    def open_gateway(
        self, settings: Settings, *, terminal: bool
    ) -> AbstractAsyncContextManager[Gateway]:
        return watched(super().open_gateway(settings, terminal=terminal))


@asynccontextmanager
async def watched(opening: AbstractAsyncContextManager[Gateway]) -> AsyncIterator[Gateway]:
    async with opening as gateway, measured_delays(Path(os.environ[DELAYS])):
        yield gateway


if __name__ == "__main__":
    run(Watched())
