"""Background work for a home: takes snapshots, deletes old tool results, refreshes model lists."""

import logging
import math
import time
from functools import partial

import anyio
import anyio.to_thread

from hermes.app.builtins import configured_models
from hermes.app.gateway import agent_settings, http_session
from hermes.control.maintenance import DAY, HOUR
from hermes.core.models.model_discovery import ModelDiscovery
from hermes.core.models.offers import OfferedModels
from hermes.plugins import Plugins
from hermes.settings import Settings
from hermes.settings.sections import StoreSettings
from hermes.state.paths import Home
from hermes.state.spill import Spill
from hermes.state.sqlite.file_watch import FileWatch
from hermes.state.sqlite.snapshots import database_size, take_due_snapshot
from hermes.types.errors import HermesError

log = logging.getLogger(__name__)

SNAPSHOT_CHECK_SECONDS = 30.0
"""Seconds between two checks whether a snapshot is due."""
SNAPSHOT_ERROR_SECONDS = 600.0
"""Minimum number of seconds between two log messages about failed snapshots."""
RESULT_DAYS = 7


async def run_housekeeping(settings: Settings, plugins: Plugins) -> None:
    """Takes snapshots, deletes old results and refreshes the model lists, until it is cancelled."""
    async with anyio.create_task_group() as group, http_session() as session:
        if not settings.store.url:
            group.start_soon(take_snapshots, settings.home, settings.store)
        for own in agent_settings(settings, plugins).values():
            group.start_soon(delete_old_results, own.files)
        models = configured_models(settings, plugins)
        discovery = ModelDiscovery(session, models.wires, models.cache)
        group.start_soon(discovery.refresh, OfferedModels(models).endpoints())
        await anyio.sleep_forever()


async def delete_old_results(home: Home) -> None:
    """Deletes stored tool results after a few days."""
    while True:
        forget = partial(Spill(home.spill).forget, time.time() - RESULT_DAYS * DAY)
        try:
            await anyio.to_thread.run_sync(forget, abandon_on_cancel=True)
        except OSError as error:
            log.error("old results of tools can't be deleted: %s", error)
        await anyio.sleep(HOUR)


async def take_snapshots(home: Home, settings: StoreSettings) -> None:
    """Copies the store every few minutes, so that a copy can replace a damaged store.

    The store must be open. If another program replaces the files of the store while this function
    runs, no more snapshots are taken.
    """
    watch = FileWatch(home.store)

    def snapshot() -> None:
        age = settings.snapshot_seconds(database_size(home))
        take_due_snapshot(home, watch, age)

    told_at = -math.inf
    while True:
        try:
            await anyio.to_thread.run_sync(snapshot, abandon_on_cancel=True)
            told_at = -math.inf
        except (HermesError, OSError) as error:
            if time.monotonic() - told_at >= SNAPSHOT_ERROR_SECONDS:
                told_at = time.monotonic()
                log.error("no snapshot could be taken: %s", error)
        await anyio.sleep(SNAPSHOT_CHECK_SECONDS)
