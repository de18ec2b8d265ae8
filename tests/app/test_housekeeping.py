"""Background work of a home: snapshots and deletions, which continue after an error."""

import os
import time
from pathlib import Path

import anyio

from hermes.app.builtins import all_plugins
from hermes.app.housekeeping import (
    RESULT_DAYS,
    delete_old_results,
    run_housekeeping,
    take_snapshots,
)
from hermes.app.stores import home_store
from hermes.control.maintenance import DAY
from hermes.hookspecs import hookimpl
from hermes.settings import Settings, load
from hermes.settings.sections import StoreSettings
from hermes.state import sessions
from hermes.state.paths import Home
from hermes.state.sqlite.snapshots import snapshots
from hermes.testing.rows import NOW, SOURCE, session
from hermes.testing.running import until
from hermes.types.agents import AgentHome
from hermes.types.identity import AgentId


async def test_a_snapshot_is_taken_if_there_is_none_yet(tmp_path: Path) -> None:
    home = Home(root=tmp_path)
    async with home_store(Settings(home=home)) as store:
        await store.run(sessions.touch, session(), SOURCE, None, "", NOW)
        async with anyio.create_task_group() as group:
            group.start_soon(take_snapshots, home, StoreSettings())
            await until(lambda: snapshots(home))
            group.cancel_scope.cancel()


class SecondAgent:
    @hookimpl
    def register_agents(self, home: Path) -> list[AgentHome]:
        return [AgentHome(id=AgentId("second"), home=home / "second")]


async def test_old_tool_results_of_every_agent_are_deleted(tmp_path: Path) -> None:
    plugins = all_plugins(added=[SecondAgent()])
    old = [Home(root=root).spill / "s" / "old" for root in (tmp_path, tmp_path / "second")]
    before = time.time() - (RESULT_DAYS + 1) * DAY
    for path in old:
        path.parent.mkdir(parents=True)
        path.write_text("x")
        os.utime(path, (before, before))
    async with home_store(Settings(home=Home(root=tmp_path))), anyio.create_task_group() as group:
        group.start_soon(run_housekeeping, load(tmp_path, {}), plugins)
        await until(lambda: not any(path.exists() for path in old))
        group.cancel_scope.cancel()


async def test_old_tool_results_are_deleted_and_new_tool_results_are_kept(tmp_path: Path) -> None:
    home = Home(root=tmp_path)
    folder = home.spill / "s"
    folder.mkdir(parents=True)
    old, new = folder / "old", folder / "new"
    for path in (old, new):
        path.write_text("x")
    before = time.time() - (RESULT_DAYS + 1) * DAY
    os.utime(old, (before, before))
    async with anyio.create_task_group() as group:
        group.start_soon(delete_old_results, home)
        await until(lambda: not old.exists())
        group.cancel_scope.cancel()
    assert new.exists()
