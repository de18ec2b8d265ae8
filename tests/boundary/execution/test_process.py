"""Processes that a restart can find and end."""

import os
import signal
from pathlib import Path

import pytest
from msgspec.structs import replace

from hermes.boundary.execution.process import end_group, spawn_gated, start_time
from hermes.testing.running import until


async def test_nothing_runs_before_it_is_released(tmp_path: Path) -> None:
    gated = await spawn_gated(["touch", "ran"], tmp_path, {})
    assert start_time(gated.record.group) == gated.record.started
    assert not (tmp_path / "ran").exists()
    gated.release()
    assert await gated.process.wait() == 0
    await gated.end()
    assert (tmp_path / "ran").exists()


async def test_what_was_never_released_never_runs(tmp_path: Path) -> None:
    gated = await spawn_gated(["touch", "ran"], tmp_path, {})
    os.close(gated._gate)
    gated._gate = -1
    assert await gated.process.wait() != 0
    await gated.end()
    assert not (tmp_path / "ran").exists()


async def test_the_end_takes_the_whole_group_with_it(tmp_path: Path) -> None:
    command = ["/bin/sh", "-c", "sleep 600 & echo $! > child; wait"]
    gated = await spawn_gated(command, tmp_path, {})
    gated.release()
    child = tmp_path / "child"
    await until(lambda: child.exists() and child.read_text())
    await gated.end()
    assert gated.process.returncode == -signal.SIGKILL
    state = Path(f"/proc/{child.read_text().strip()}/stat")
    await until(lambda: not state.exists() or ") Z " in state.read_text())


async def test_a_number_that_belongs_to_somebody_else_by_now_is_left_alone(tmp_path: Path) -> None:
    gated = await spawn_gated(["sleep", "600"], tmp_path, {})
    gated.release()
    stranger = replace(gated.record, started=gated.record.started - 1)
    assert not end_group(stranger)
    assert gated.process.returncode is None
    await gated.end()
    await until(lambda: not end_group(gated.record))
    assert start_time(gated.record.group) is None


async def test_a_folder_that_is_missing_leaves_nothing_open(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(FileNotFoundError):
        await spawn_gated(["true"], tmp_path / "missing", {})
    assert len(list(Path("/proc/self/fd").iterdir())) == before
