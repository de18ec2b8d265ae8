"""A gateway can find and end processes that were started before its restart."""

import os
import signal
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from hermes.boundary.execution.process import (
    ProcessGroup,
    end_group,
    end_marked,
    runs,
    signal_group,
    spawn_gated,
    start_time,
)
from hermes.testing.commands import lives
from hermes.testing.running import until


async def test_a_command_does_not_run_before_it_is_released(tmp_path: Path) -> None:
    gated = await spawn_gated(["touch", "ran"], tmp_path, {})
    assert start_time(gated.record.group) == gated.record.started
    assert not (tmp_path / "ran").exists()
    gated.release()
    assert await gated.process.wait() == 0
    await gated.end()
    assert (tmp_path / "ran").exists()


async def test_a_command_that_was_not_released_never_runs(tmp_path: Path) -> None:
    gated = await spawn_gated(["touch", "ran"], tmp_path, {})
    os.close(gated._gate)
    gated._gate = -1
    assert await gated.process.wait() != 0
    await gated.end()
    assert not (tmp_path / "ran").exists()


async def test_the_whole_process_group_is_ended(tmp_path: Path) -> None:
    command = ["/bin/sh", "-c", "sleep 600 & echo $! > child; wait"]
    gated = await spawn_gated(command, tmp_path, {})
    gated.release()
    child = tmp_path / "child"
    await until(lambda: child.exists() and child.read_text())
    await gated.end()
    assert gated.process.returncode == -signal.SIGKILL
    state = Path(f"/proc/{child.read_text().strip()}/stat")
    await until(lambda: not state.exists() or ") Z " in state.read_text())


async def test_a_reused_process_number_is_not_killed(tmp_path: Path) -> None:
    gated = await spawn_gated(["sleep", "600"], tmp_path, {})
    gated.release()
    stranger = replace(gated.record, started=gated.record.started - 1)
    assert not end_group(stranger)
    assert gated.process.returncode is None
    await gated.end()
    await until(lambda: not end_group(gated.record))
    assert start_time(gated.record.group) is None


async def test_a_missing_folder_leaves_no_descriptor_open(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(FileNotFoundError):
        await spawn_gated(["true"], tmp_path / "missing", {})
    assert len(list(Path("/proc/self/fd").iterdir())) == before


async def test_a_process_group_can_be_terminated_with_sigterm(tmp_path: Path) -> None:
    gated = await spawn_gated(["sleep", "600"], tmp_path, {})
    stranger = replace(gated.record, started=gated.record.started - 1)
    assert not signal_group(stranger, signal.SIGTERM)
    assert signal_group(gated.record, signal.SIGTERM)
    assert await gated.process.wait() == -signal.SIGTERM
    await gated.end()


async def test_processes_are_found_by_their_complete_mark_in_every_group(tmp_path: Path) -> None:
    marked = {"MARK": f"{tmp_path}", "PATH": os.defpath}
    command = ["/bin/sh", "-c", "setsid sleep 600 & echo $! > child; wait"]
    gated = await spawn_gated(command, tmp_path, marked)
    gated.release()
    child = tmp_path / "child"
    await until(lambda: child.exists() and child.read_text())
    away = int(child.read_text())
    await until(lambda: os.getpgid(away) == away)
    assert end_marked(f"MARK={tmp_path.parent}") == 0
    assert end_marked(f"ARK={tmp_path}") == 0
    assert end_marked(f"MARK={tmp_path}", gated.record.group) == 1
    await until(lambda: not lives(away))
    assert await gated.process.wait() == 0
    await gated.end()


async def test_processes_with_the_mark_are_ended_even_if_they_keep_forking(tmp_path: Path) -> None:
    marked = {"MARK": f"{tmp_path}", "PATH": os.defpath}
    spread = "for n in 1 2 3; do (while :; do setsid sleep 600 & echo >> begun; done) & done; wait"
    gated = await spawn_gated(["/bin/sh", "-c", spread], tmp_path, marked)
    gated.release()
    begun = tmp_path / "begun"
    await until(lambda: begun.exists() and len(begun.read_text()) > 20)
    assert end_marked(f"MARK={tmp_path}") > 10
    await gated.end()
    assert end_marked(f"MARK={tmp_path}") == 0


async def test_a_zombie_does_not_count_as_running() -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child:
        process = ProcessGroup(group=child.pid, started=start_time(child.pid) or 0)
        assert runs(process)
        assert not runs(replace(process, started=process.started + 1))
        child.kill()
        await until(lambda: not runs(process))
        assert start_time(child.pid) == process.started
    assert start_time(child.pid) is None
    assert not runs(process)
