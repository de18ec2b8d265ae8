"""The supervisor of a background command starts the command. The supervisor ends when all processes
of the command have ended."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.boundary.execution import supervisor
from hermes.boundary.execution.launch import NO_RESTRICTIONS
from hermes.boundary.execution.process import end_marked
from hermes.boundary.execution.scripts import script
from hermes.testing.commands import lives
from hermes.testing.running import until

BASH = shutil.which("bash") or ""


class Attended:
    """A supervisor that starts its command when the test calls `begin`."""

    def __init__(self, folder: Path, command: str) -> None:
        self.folder = folder
        os.mkfifo(folder / "input")
        starter = subprocess.Popen(
            script(supervisor, str(folder), NO_RESTRICTIONS.text(), BASH, "-c", command),
            cwd=folder,
            env={"PATH": os.defpath, "MARK": str(folder)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert starter.stdin
        assert starter.stdout
        self.gate = starter.stdin
        with starter.stdout as stdout:
            self.pid = int(stdout.readline())
        assert starter.wait() == 0

    def begin(self) -> None:
        self.gate.write(b"[]\n")
        self.gate.close()

    def output(self) -> str:
        path = self.folder / "output.0"
        return path.read_text() if path.exists() else ""

    async def code(self) -> int:
        await until(lambda: not lives(self.pid))
        return int((self.folder / "exit").read_text())


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    end_marked(f"MARK={tmp_path}")


async def test_a_supervisor_waits_at_the_gate_and_writes_the_exit_code(folder: Path) -> None:
    attended = Attended(folder, "echo said; echo wrong >&2; exit 7")
    assert os.getsid(attended.pid) == attended.pid
    assert sorted(path.name for path in folder.iterdir()) == ["input"]
    attended.begin()
    assert await attended.code() == 7
    assert attended.output() == "said\nwrong\n"


async def test_a_command_does_not_begin_if_the_gate_is_closed(folder: Path) -> None:
    attended = Attended(folder, "touch ran")
    attended.gate.close()
    await until(lambda: not lives(attended.pid))
    assert sorted(path.name for path in folder.iterdir()) == ["input"]


async def test_a_supervisor_outlives_a_signal_to_its_command(folder: Path) -> None:
    attended = Attended(folder, "echo begun; sleep 600")
    attended.begin()
    await until(attended.output)
    os.killpg(attended.pid, signal.SIGTERM)
    assert await attended.code() == -signal.SIGTERM


@pytest.mark.parametrize(
    "far", ["setsid bash -c", "bash -c", "exec >/dev/null 2>&1; setsid bash -c"]
)
async def test_a_supervisor_stays_while_any_process_runs(folder: Path, far: str) -> None:
    wait = "touch begun; until [ -e go ]; do sleep 0.01; done; touch gone; exit 9"
    attended = Attended(folder, f"echo shell; ({far} '{wait}' &); exit 4")
    attended.begin()
    await until((folder / "begun").exists)
    with pytest.raises(AssertionError):
        await until((folder / "exit").exists, within=0.2)
    (folder / "go").touch()
    assert await attended.code() == 4
    assert attended.output() == "shell\n"
    assert (folder / "gone").exists()


async def test_orphans_are_reaped_while_the_command_runs(folder: Path) -> None:
    orphan = "bash -c '(until [ -e go ]; do :; done; echo $BASHPID > gone) & '"
    attended = Attended(folder, f"{orphan}; echo begun; until [ -e stop ]; do sleep 0.01; done")
    attended.begin()
    await until(attended.output)
    (folder / "go").touch()
    gone = folder / "gone"
    await until(lambda: gone.exists() and gone.read_text())
    await until(lambda: not Path(f"/proc/{gone.read_text().strip()}").exists())
    (folder / "stop").touch()
    assert await attended.code() == 0


async def test_a_command_that_writes_to_a_closed_pipe_ends_as_usual(folder: Path) -> None:
    attended = Attended(folder, "yes | head -n 1; echo ${PIPESTATUS[0]}")
    attended.begin()
    assert await attended.code() == 0
    assert attended.output() == f"y\n{128 + signal.SIGPIPE}\n"


async def test_a_command_ignores_no_signal_that_the_gateway_ignores(folder: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    attended = Attended(folder, "grep SigIgn /proc/self/status")
    signal.signal(signal.SIGHUP, before)
    attended.begin()
    assert await attended.code() == 0
    # Signals above 31 are left out of the check, because the C library reserves them and may ignore
    # them.
    assert int(attended.output().removeprefix("SigIgn:"), 16) % 2**31 == 0


async def test_the_input_pipe_never_ends(folder: Path) -> None:
    attended = Attended(folder, "read a; read b; echo $a $b")
    (folder / "input").write_text("one\n")
    attended.begin()
    await until((folder / "output.0").exists)
    (folder / "input").write_text("two\n")
    assert await attended.code() == 0
    assert attended.output() == "one two\n"
