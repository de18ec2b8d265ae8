"""Background work of a home: copies, deletions, and errors that must not stop it."""

import os
import time
from pathlib import Path

import anyio

from hermes.app.gateway import home_store
from hermes.app.housekeeping import RESULT_DAYS, forget_results, keep_snapshots
from hermes.control.upkeep import DAY
from hermes.state import sessions
from hermes.state.paths import Home
from hermes.state.sqlite.snapshots import snapshots
from hermes.testing.rows import NOW, SOURCE, session
from hermes.testing.running import until


async def test_a_snapshot_is_taken_of_a_store_that_has_none(tmp_path: Path) -> None:
    home = Home(root=tmp_path)
    async with home_store(home) as store:
        await store.run(sessions.touch, session(), SOURCE, None, "", NOW)
        async with anyio.create_task_group() as group:
            group.start_soon(keep_snapshots, home)
            await until(lambda: snapshots(home))
            group.cancel_scope.cancel()


async def test_old_tool_results_are_deleted_and_new_ones_kept(tmp_path: Path) -> None:
    home = Home(root=tmp_path)
    folder = home.spill / "s"
    folder.mkdir(parents=True)
    old, new = folder / "old", folder / "new"
    for path in (old, new):
        path.write_text("x")
    before = time.time() - (RESULT_DAYS + 1) * DAY
    os.utime(old, (before, before))
    async with anyio.create_task_group() as group:
        group.start_soon(forget_results, home)
        await until(lambda: not old.exists())
        group.cancel_scope.cancel()
    assert new.exists()
