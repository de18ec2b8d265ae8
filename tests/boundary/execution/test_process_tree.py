"""All processes that a process has started, directly or indirectly, are found and ended."""

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hermes.boundary.execution.process_tree import (
    descendants,
    end_descendants,
    find_process,
    process_table,
    send_signal,
)
from hermes.testing.commands import lives, no_process_left
from hermes.testing.running import until

SUBREAPER = """
import os, subprocess, sys, time
from hermes.boundary.execution.process_tree import adopt_orphans
adopt_orphans()
subprocess.run(["/bin/sh", "-c", sys.argv[1]])
print(os.getpid(), flush=True)
time.sleep(600)
"""


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    with no_process_left():
        yield


@contextmanager
def subreaper(command: str, folder: Path) -> Iterator[int]:
    """Starts a process that becomes the parent of orphans (a subreaper) and runs the command.
    Yields the pid of this process after the command has ended."""
    arguments = [sys.executable, "-c", SUBREAPER, command]
    with subprocess.Popen(arguments, cwd=folder, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout
            yield int(process.stdout.readline())
        finally:
            process.kill()


def test_the_process_table_contains_this_process() -> None:
    (entry,) = [one for one in process_table() if one.pid == os.getpid()]
    assert entry.parent == os.getppid()
    assert find_process(os.getpid()) == entry._replace(state=b"R")
    assert find_process(2**22 + 1) is None


async def test_the_descendants_of_a_subreaper_include_orphans_in_other_sessions(
    tmp_path: Path,
) -> None:
    orphan = "env -i setsid /bin/sh -c 'echo $$ > left; exec sleep 600' &"
    with subreaper(f"{orphan} until [ -s left ]; do :; done", tmp_path) as pid:
        away = int((tmp_path / "left").read_text())
        assert [one.pid for one in descendants(pid)] == [away]
        assert end_descendants(pid) == 1
        assert not lives(away)
        assert lives(pid)
        assert end_descendants(pid) == 0


async def test_descendants_that_multiply_are_ended(tmp_path: Path) -> None:
    spread = "for m in $(seq 500); do env -i setsid sleep 600 & echo >> begun; done"
    command = f"for n in 1 2; do ({spread}) & done; until [ -s begun ]; do :; done"
    with subreaper(command, tmp_path) as pid:
        begun = tmp_path / "begun"
        await until(lambda: len(begun.read_text()) > 20)
        assert end_descendants(pid) > 20
        assert [one for one in descendants(pid) if one.state != b"Z"] == []


def test_a_reused_number_is_not_signalled() -> None:
    with subprocess.Popen(["sleep", "600"]) as process:
        entry = find_process(process.pid)
        assert entry
        assert not send_signal(process.pid, entry.started - 1, signal.SIGKILL)
        assert process.poll() is None
        assert send_signal(process.pid, entry.started, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    assert not send_signal(process.pid, entry.started, signal.SIGKILL)


def test_a_kernel_without_pidfds_can_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(pid: int, flags: int = 0) -> int:
        raise OSError(errno.ENOSYS, "not implemented")

    monkeypatch.setattr(os, "pidfd_open", refuse)
    with subprocess.Popen(["sleep", "600"]) as process:
        entry = find_process(process.pid)
        assert entry
        assert not send_signal(process.pid, entry.started + 1, signal.SIGKILL)
        assert send_signal(process.pid, entry.started, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
