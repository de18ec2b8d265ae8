"""The limits of sandboxed commands."""

import os
from pathlib import Path

import pytest

from hermes.boundary.execution.levels import Level
from hermes.boundary.execution.watchdog import deleted_files, folder_bytes
from hermes.core.tools.call import scope_of
from hermes.core.tools.terminal import terminal_tools
from hermes.testing.commands import EMPTY_ENVIRONMENT, sandbox_backend
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
# Without the pause, the bomb would have thousands of processes before a busy machine checks it.
FORK_BOMB = "bomb() { sleep 0.05; bomb | bomb & }; bomb; sleep 600"
MEMORY_HOG = "x=$(head -c 30000000 /dev/zero | tr '\\0' x); y=$x$x$x$x; sleep 600"
DISK_FILLER = "for n in 1 2 3 4; do head -c 40000000 /dev/zero > f$n; done; sleep 600"
HIDDEN_FILLER = (
    "exec 7> f; rm f; head -c 60000000 /dev/zero >&7;"
    " exec 8> f; rm f; head -c 60000000 /dev/zero >&8; sleep 600"
)
LARGE_FILE = "head -c 100000000 /dev/zero > large"
BUSY = "while :; do :; done"


@pytest.mark.parametrize(
    ("level", "command", "limit"),
    [
        ("bubblewrap", FORK_BOMB, "processes"),
        ("bubblewrap", MEMORY_HOG, "memory"),
        ("bubblewrap", DISK_FILLER, "workspace"),
        ("bubblewrap", HIDDEN_FILLER, "workspace"),
        ("bubblewrap", LARGE_FILE, "file size"),
        ("landlock", FORK_BOMB, "processes"),
        ("landlock", MEMORY_HOG, "memory"),
        ("landlock", DISK_FILLER, "workspace"),
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
        process = await sandbox.start(DISK_FILLER)
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
