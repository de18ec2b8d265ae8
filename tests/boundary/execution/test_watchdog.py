"""A watchdog ends sandboxed commands that exceed a limit."""

import os
import time
from pathlib import Path

import pytest

from hermes.boundary.execution.levels import Level
from hermes.boundary.execution.watchdog import (
    LIMIT_CHECK_SECONDS,
    deleted_files,
    folder_bytes,
)
from hermes.core.tools.call import scope_of
from hermes.core.tools.terminal import terminal_tools
from hermes.testing.commands import EMPTY_ENVIRONMENT, sandbox_backend
from hermes.testing.loop_delays import measured_delays, read_delays
from hermes.testing.resource_attacks import ResourceAttack, disk_filler, fork_bomb, memory_hog
from hermes.testing.sandbox_contract import RecordedCommand
from hermes.testing.turns import a_turn, use
from hermes.types.execution import BackendOptions, CommandLimits

LIMITS = CommandLimits(
    processes=60,
    memory=100_000_000,
    file_bytes=80_000_000,
    workspace_bytes=100_000_000,
    cpu_seconds=1,
)
HIDDEN_FILLER = (
    "exec 7> f; rm f; head -c 60000000 /dev/zero >&7;"
    " exec 8> f; rm f; head -c 60000000 /dev/zero >&8; sleep 600"
)
LARGE_FILE = "head -c 100000000 /dev/zero > large"
BUSY = "while :; do :; done"
# Without the pause, the fork bomb would start many more processes before a busy machine checks the
# limit.
ATTACKS = (fork_bomb(LIMITS, pause=0.05), memory_hog(LIMITS), disk_filler(LIMITS))
ENDED_WITHIN = 1.0
"""Seconds within which a command that exceeds a limit must be ended."""


@pytest.mark.parametrize(
    ("level", "command", "limit"),
    [
        ("bubblewrap", HIDDEN_FILLER, "workspace"),
        ("bubblewrap", LARGE_FILE, "file size"),
        ("landlock", LARGE_FILE, "file size"),
        ("landlock", BUSY, "CPU time"),
    ],
)
async def test_a_command_that_exceeds_a_limit_is_ended(
    tmp_path: Path, level: Level, command: str, limit: str
) -> None:
    (tmp_path / "work").mkdir()
    options = BackendOptions(
        processes=tmp_path / "processes",
        environment=EMPTY_ENVIRONMENT,
        sandboxes=tmp_path / "sandboxes",
        limits=LIMITS,
    )
    observer = RecordedCommand()
    with sandbox_backend(tmp_path, level, options) as backend:
        sandbox = await backend.open(scope_of(a_turn(workspace=tmp_path / "work")))
        ended = await sandbox.run(command, observer, seconds=60.0)
        assert not await backend.end(observer.handles[0])
    assert ended.exceeded == limit
    assert ended.code != 0
    assert not ended.timed_out


@pytest.mark.parametrize("level", ["bubblewrap", "landlock"])
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda one: one.limit)
async def test_an_attack_is_ended_within_a_second_after_it_has_exceeded_its_limit(
    tmp_path: Path, level: Level, attack: ResourceAttack
) -> None:
    (tmp_path / "work").mkdir()
    options = BackendOptions(
        processes=tmp_path / "processes",
        environment=EMPTY_ENVIRONMENT,
        sandboxes=tmp_path / "sandboxes",
        limits=LIMITS,
    )
    observer, delays = RecordedCommand(), tmp_path / "delays"
    with sandbox_backend(tmp_path, level, options) as backend:
        sandbox = await backend.open(scope_of(a_turn(workspace=tmp_path / "work")))
        async with measured_delays(delays):
            ended = await sandbox.run(attack.command, observer, seconds=60.0)
            ended_at = time.time()
        assert not await backend.end(observer.handles[0])
    assert (ended.exceeded, ended.timed_out) == (attack.limit, False)
    # A busy machine delays the watchdog, and delays a task of this process by about the same time.
    # So the test measures the delay of the task, and gives the watchdog more time.
    late = max(delay for _, delay in read_delays(delays))
    allowed = ENDED_WITHIN * (1 + late / LIMIT_CHECK_SECONDS)
    assert ended_at - attack.exceeded_at(tmp_path / "work") < allowed


async def test_a_background_process_that_exceeds_a_limit_is_ended(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    options = BackendOptions(
        processes=tmp_path / "processes",
        environment=EMPTY_ENVIRONMENT,
        sandboxes=tmp_path / "sandboxes",
        limits=LIMITS,
    )
    with sandbox_backend(tmp_path, "bubblewrap", options) as backend:
        sandbox = await backend.open(scope_of(a_turn(workspace=tmp_path / "work")))
        process = await sandbox.start(disk_filler(LIMITS).command)
        ended = await process.wait(60.0)
    assert (ended.running, ended.exceeded) == (False, "workspace")


def test_a_file_with_two_names_counts_once(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "f").write_bytes(b"x" * 100_000)
    before = folder_bytes(str(tmp_path))
    assert before >= 100_000
    (tmp_path / "g").hardlink_to(tmp_path / "inner" / "f")
    (tmp_path / "link").symlink_to("/usr")
    assert folder_bytes(str(tmp_path)) < before + 50_000
    assert folder_bytes(str(tmp_path / "missing")) == 0


def test_files_without_a_name_are_found(tmp_path: Path) -> None:
    before = deleted_files([os.getpid()])
    with (tmp_path / "f").open("wb") as file:
        file.write(b"x" * 100_000)
        file.flush()
        (tmp_path / "f").unlink()
        found = deleted_files([os.getpid()]).keys() - before.keys()
        known = os.fstat(file.fileno())
    assert found == {(known.st_dev, known.st_ino)}


async def test_the_tools_name_the_exceeded_limit(tmp_path: Path) -> None:
    options = BackendOptions(
        processes=tmp_path / "processes",
        environment=EMPTY_ENVIRONMENT,
        sandboxes=tmp_path / "sandboxes",
        limits=LIMITS,
    )
    turn = a_turn(workspace=tmp_path)
    with sandbox_backend(tmp_path, "bubblewrap", options) as backend:
        terminal, process = terminal_tools(60.0, backend.isolation)
        told = await use(terminal, turn, {"command": LARGE_FILE}, backend=backend)
        arguments = {"command": LARGE_FILE, "background": True}
        started = await use(terminal, turn, arguments, backend=backend)
        awaited = {"action": "wait", "id": started.split()[-1].rstrip("]"), "timeout": 60.0}
        ended = await use(process, turn, awaited, backend=backend)
    assert "it exceeded the limit for file size, which the operator can change]" in told
    assert "it exceeded the limit for file size]" in ended
