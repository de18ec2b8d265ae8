"""With the handle of a command, a later gateway ends all processes of this command and no
others."""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hermes.boundary.execution.handles import CALL_MARK, boot_id, end_handle, handle_of
from hermes.boundary.execution.process import Gated, ProcessGroup, spawn_gated, start_time
from hermes.testing.commands import lives, no_process_left
from hermes.testing.running import until

MARK = "0191-mark"


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    with no_process_left():
        yield


@pytest.fixture
async def sleeping(tmp_path: Path) -> AsyncIterator[Gated]:
    """A command that runs without a supervisor. Its child process has left the process group."""
    environment = {CALL_MARK: MARK, "PATH": os.defpath}
    command = ["/bin/sh", "-c", "setsid sleep 600 & echo $! > away; wait"]
    gated = await spawn_gated(command, tmp_path, environment)
    gated.release()
    away = tmp_path / "away"
    await until(lambda: away.exists() and away.read_text().endswith("\n"))
    await until(lambda: os.getpgid(int(away.read_text())) == int(away.read_text()))
    yield gated
    end_handle(old_handle(gated))
    await gated.end()


def old_handle(gated: Gated) -> str:
    """Returns a handle in the format of versions in which commands had no supervisors."""
    return f"local:{boot_id()}:{gated.record.group}:{gated.record.started}:{MARK}"


async def test_the_process_group_and_all_processes_that_left_it_are_ended(
    sleeping: Gated, tmp_path: Path
) -> None:
    away = int((tmp_path / "away").read_text())
    assert end_handle(old_handle(sleeping))
    await until(lambda: not lives(away))
    assert await sleeping.process.wait() != 0
    assert not end_handle(old_handle(sleeping))


async def test_the_process_group_is_ended_even_if_its_supervisor_was_killed(
    sleeping: Gated,
) -> None:
    gone = ProcessGroup(group=os.getpid(), started=(start_time(os.getpid()) or 0) - 1)
    handle = handle_of(sleeping.record, MARK, gone)
    assert handle == f"{old_handle(sleeping)}:{gone.group}:{gone.started}"
    assert end_handle(handle)
    assert await sleeping.process.wait() != 0


async def test_a_handle_without_a_boot_id_is_from_an_older_version(sleeping: Gated) -> None:
    record = sleeping.record
    assert end_handle(f"local::{record.group}:{record.started}:{MARK}")
    assert await sleeping.process.wait() != 0


async def test_a_handle_without_a_container_is_from_an_older_version(sleeping: Gated) -> None:
    record, machine = sleeping.record, Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert end_handle(f"local:{machine}:{record.group}:{record.started}:{MARK}")
    assert await sleeping.process.wait() != 0


async def test_a_process_of_another_container_of_the_machine_is_left_alone(
    sleeping: Gated,
) -> None:
    record, machine = sleeping.record, Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert not end_handle(f"local:{machine}-1:{record.group}:{record.started}:{MARK}")
    assert sleeping.process.returncode is None


async def test_any_other_handle_ends_nothing(sleeping: Gated) -> None:
    record = sleeping.record
    for wrong in (
        f"local:another-boot:{record.group}:{record.started}:{MARK}",
        f"local:{boot_id()}:{record.group}:{record.started - 1}:another mark",
        f"docker:{boot_id()}:{record.group}:{record.started}:{MARK}",
        f"local:{boot_id()}:{record.group}:{record.started}",
        f"local:{boot_id()}:{record.group}:{record.started}:",
        f"local:{boot_id()}:{record.group}:{record.started}:{MARK}:1:1",
        f"local:{boot_id()}:{record.group}:{record.started}:{MARK}:{record.group}",
        f"local:{boot_id()}:{record.group}:{record.started}:{MARK}:{record.group}:x",
        f"local:{boot_id()}:-{record.group}:{record.started}:{MARK}",
        f"local:{boot_id()}:0:0:{MARK}",
        f"local:{boot_id()}:1:1:{MARK}",
        "local",
        "",
    ):
        assert not end_handle(wrong), wrong
    assert sleeping.process.returncode is None


RUNNING = """
import sys
from pathlib import Path
import anyio
from hermes.boundary.execution.foreground import Foreground

class Observer:
    async def started(self, handle):
        print(handle, flush=True)

    def progress(self, text):
        pass

async def main():
    foreground = Foreground("/bin/sh", {"PATH": "/usr/bin:/bin"})
    await foreground.run(sys.argv[2], Path(sys.argv[1]), 600.0, Observer())

anyio.run(main)
"""
ESCAPE = "env -i setsid /bin/sh -c 'echo $$ > left; exec sleep 600' & exec sleep 600"


@contextmanager
def gateway(folder: Path) -> Iterator[tuple["subprocess.Popen[bytes]", str]]:
    """Starts a process that runs a command, as a gateway does. The command starts a hidden process,
    which has left the session and cleared its environment. Yields the gateway process and the
    handle of the command."""
    command = [sys.executable, "-c", RUNNING, str(folder), ESCAPE]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout
        yield process, process.stdout.readline().decode().strip()
        process.kill()


async def left_in(folder: Path) -> int:
    """Waits until the hidden process has started, and returns its process id."""
    path = folder / "left"
    await until(lambda: path.exists() and path.read_text().endswith("\n"))
    return int(path.read_text())


async def test_the_commands_of_a_killed_gateway_end(tmp_path: Path) -> None:
    with gateway(tmp_path) as (process, handle):
        left = await left_in(tmp_path)
        process.kill()
        await until(lambda: not lives(left))
        supervisor, shell = (int(handle.split(":")[at]) for at in (5, 2))
        await until(lambda: not (lives(shell) or lives(supervisor)))
        assert not end_handle(handle)


async def test_a_restart_ends_processes_that_left_their_session(tmp_path: Path) -> None:
    with gateway(tmp_path) as (process, handle):
        left = await left_in(tmp_path)
        supervisor, shell = (int(handle.split(":")[at]) for at in (5, 2))
        # The supervisor is stopped, so that it does not notice the death of the gateway.
        os.kill(supervisor, signal.SIGSTOP)
        process.kill()
        process.wait()
        assert lives(left)
        assert end_handle(handle)
        assert not lives(left)
        assert not lives(shell)
        await until(lambda: not lives(supervisor))
