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
from hermes.boundary.execution.process_tree import descendants, find_process
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


async def test_a_handle_of_another_backend_or_an_invalid_handle_ends_nothing(
    sleeping: Gated,
) -> None:
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


SANDBOXED = """
import sys
from pathlib import Path
import anyio
from hermes.boundary.execution.sandbox import SandboxBackend
from hermes.core.tools.call import scope_of
from hermes.testing.commands import EMPTY_ENVIRONMENT
from hermes.testing.turns import a_turn
from hermes.types.execution import BackendOptions

class Observer:
    async def started(self, handle):
        print(handle, flush=True)

    def progress(self, text):
        pass

async def main():
    folder = Path(sys.argv[1])
    options = BackendOptions(
        processes=folder / "processes",
        environment=EMPTY_ENVIRONMENT,
        sandboxes=folder / "sandboxes",
    )
    backend = SandboxBackend(options, sys.argv[3])
    sandbox = await backend.open(scope_of(a_turn(workspace=folder)))
    await sandbox.run(sys.argv[2], Observer(), seconds=600.0)

anyio.run(main)
"""
RUNNING = """
import sys
from pathlib import Path
import anyio
from hermes.boundary.execution.foreground import Foreground
from hermes.testing.commands import shell_launch

class Observer:
    async def started(self, handle):
        print(handle, flush=True)

    def progress(self, text):
        pass

async def main():
    launch = shell_launch(sys.argv[2], Path(sys.argv[1]))
    await Foreground().run(launch, 600.0, Observer())

anyio.run(main)
"""
ESCAPE = "env -i setsid /bin/sh -c 'echo $$ > left; exec sleep 600' & exec sleep 600"


@contextmanager
def gateway(folder: Path, level: str = "") -> Iterator[tuple["subprocess.Popen[bytes]", str]]:
    """Starts a process that runs a command like a gateway, in a sandbox if a level is given. The
    command starts a hidden process, which has its own session and no environment variables. Yields
    the process that runs the command, and the handle of the command."""
    code = SANDBOXED if level else RUNNING
    command = [sys.executable, "-c", code, str(folder), ESCAPE, level]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout
        yield process, process.stdout.readline().decode().strip()
        process.kill()


async def left_in(folder: Path) -> int:
    """Waits until the hidden process of the command has started, and returns the id of this
    process."""
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


def tree_of(handle: str) -> set[int]:
    """Returns the ids of the supervisor and of all processes that it has started."""
    supervisor = int(handle.split(":")[5])
    return {supervisor, *(one.pid for one in descendants(supervisor))}


@pytest.mark.parametrize("level", ["bubblewrap", "landlock"])
async def test_the_sandboxed_commands_of_a_killed_gateway_end(tmp_path: Path, level: str) -> None:
    with gateway(tmp_path, level) as (process, handle):
        await left_in(tmp_path)
        running = tree_of(handle)
        process.kill()
        await until(lambda: not any(map(lives, running)))
        assert not end_handle(handle)
    assert (tmp_path / "left").exists()


@pytest.mark.parametrize("level", ["bubblewrap", "landlock"])
async def test_a_restart_ends_sandboxed_commands_whose_supervisor_hangs(
    tmp_path: Path, level: str
) -> None:
    with gateway(tmp_path, level) as (process, handle):
        await left_in(tmp_path)
        running = tree_of(handle)
        os.kill(int(handle.split(":")[5]), signal.SIGSTOP)
        process.kill()
        process.wait()
        assert end_handle(handle)
        await until(lambda: not any(map(lives, running)))


async def test_a_namespace_ends_with_its_supervisor(tmp_path: Path) -> None:
    with gateway(tmp_path, "bubblewrap") as (process, handle):
        await left_in(tmp_path)
        running = tree_of(handle)
        supervisor = find_process(int(handle.split(":")[5]))
        assert supervisor
        # The fork server would also end the processes, so it is killed too.
        os.kill(supervisor.parent, signal.SIGKILL)
        os.kill(supervisor.pid, signal.SIGKILL)
        await until(lambda: not any(map(lives, running)))
        process.kill()
