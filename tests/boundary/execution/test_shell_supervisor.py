"""The scripts that run commands on another machine work in the shells of this machine."""

import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.boundary.execution.handles import CALL_MARK
from hermes.boundary.execution.process import end_marked
from hermes.boundary.execution.shell_supervisor import (
    LONGEST_SENT_COMMAND,
    SUPERVISOR,
    SUPERVISOR_NAME,
    TERMINATION,
    input_lines,
    orders,
)
from hermes.testing.commands import lives
from hermes.types.errors import ToolFailed
from hermes.types.identity import new_id

SHELLS = [name for name in ("bash", "dash") if shutil.which(name)]
DAEMON = (
    "setsid sh -c 'echo $$ > pid; exec sleep 600' >/dev/null 2>&1 & until [ -s pid ]; do :; done"
)


class Supervised:
    """A supervisor that runs on this machine."""

    def __init__(self, shell: str, command: str, folder: Path, kind: str = "foreground") -> None:
        self.mark = new_id()
        self.process = subprocess.Popen(
            [shell, "-c", SUPERVISOR, SUPERVISOR_NAME, self.mark, kind, "0"],
            env={CALL_MARK: self.mark, "PATH": "/usr/bin:/bin"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.send(orders(command, str(folder), {"GREETING": "a 'b'\n+c"}))

    def send(self, data: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def line(self) -> bytes:
        assert self.process.stdout
        return self.process.stdout.readline()

    def result(self) -> tuple[str, list[str]]:
        """Returns the output of the command, and the reports of the supervisor."""
        assert self.process.stdout
        assert self.process.stderr
        output, reports = self.process.stdout.read(), self.process.stderr.read()
        self.process.wait()
        prefix = f"hermes-{self.mark} "
        return output.decode(), [
            line.removeprefix(prefix) for line in reports.decode().splitlines()
        ]

    def close(self) -> None:
        end_marked(f"{CALL_MARK}={self.mark}")
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream
            stream.close()


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def started() -> Iterator[list[Supervised]]:
    made: list[Supervised] = []
    yield made
    for one in made:
        one.close()


@pytest.mark.parametrize(
    ("command", "output", "reports"),
    [
        ('echo "$GREETING"; exit 3', "a 'b'\n+c\n", ["ready", "begun", "ended 3 0"]),
        ("kill -9 $$", "", ["ready", "begun", "ended 137 0"]),
        ("cat; echo x; echo y >&2", "x\ny\n", ["ready", "begun", "ended 0 0"]),
        ("yes | head -n 1", "y\n", ["ready", "begun", "ended 0 0"]),
        ("sleep 600 & exit 0", "", ["ready", "begun", "ended 0 1"]),
    ],
)
def test_a_command_is_run_and_its_end_is_reported(
    started: list[Supervised],
    tmp_path: Path,
    shell: str,
    command: str,
    output: str,
    reports: list[str],
) -> None:
    started.append(Supervised(shell, command, tmp_path))
    started[0].send(b"go\n")
    assert started[0].result() == (output, reports)


def test_a_command_begins_only_when_the_supervisor_is_told_to_begin(
    started: list[Supervised], tmp_path: Path, shell: str
) -> None:
    started.append(Supervised(shell, "echo > ran", tmp_path))
    assert started[0].process.stderr
    assert started[0].process.stderr.readline().endswith(b" ready\n")
    started[0].send(b"kill\n")
    assert started[0].result() == ("", [])
    assert not (tmp_path / "ran").exists()


def test_a_missing_folder_is_reported(
    started: list[Supervised], tmp_path: Path, shell: str
) -> None:
    started.append(Supervised(shell, "echo > ran", tmp_path / "missing"))
    _, reports = started[0].result()
    assert reports == [f"failed the folder {tmp_path}/missing can't be opened"]


def test_the_end_of_the_input_ends_the_command_and_what_it_started(
    started: list[Supervised], tmp_path: Path, shell: str
) -> None:
    started.append(Supervised(shell, f"{DAEMON}; echo begun; sleep 600", tmp_path))
    started[0].send(b"go\n")
    assert started[0].line() == b"begun\n"
    assert started[0].process.stdin
    started[0].process.stdin.close()
    _, reports = started[0].result()
    assert reports[-1].startswith("ended 137 ")
    assert not lives(int((tmp_path / "pid").read_text()))


def test_a_command_can_clean_up_when_it_is_terminated(
    started: list[Supervised], tmp_path: Path, shell: str
) -> None:
    command = "trap 'echo clean; exit 7' TERM; echo begun; while :; do sleep 0.05; done"
    started.append(Supervised(shell, command, tmp_path))
    started[0].send(b"go\n")
    assert started[0].line() == b"begun\n"
    started[0].send(b"term\n")
    output, reports = started[0].result()
    assert "clean\n" in output
    assert reports[-1].startswith("ended 7 ")


def test_a_background_command_reads_its_input(
    started: list[Supervised], tmp_path: Path, shell: str
) -> None:
    data = "zwölf\\n $x\n\0end\n".encode()
    command = f"head -c {len(data)} > got; echo done"
    started.append(Supervised(shell, command, tmp_path, "background"))
    started[0].send(b"go\n" + b"".join(input_lines(data)))
    assert started[0].line() == b"done\n"
    started[0].process.wait(20)
    assert (tmp_path / "got").read_bytes() == data


def test_a_command_is_ended_by_its_mark(
    started: list[Supervised], tmp_path: Path, shell: str
) -> None:
    started.append(Supervised(shell, f"{DAEMON}; echo begun; sleep 600", tmp_path))
    started[0].send(b"go\n")
    assert started[0].line() == b"begun\n"
    line = [shell, "-c", TERMINATION, "hermes", started[0].mark, "0"]
    done = subprocess.run(line, capture_output=True, check=True, env={"PATH": "/usr/bin:/bin"})
    assert int(done.stdout) >= 2
    assert started[0].result()[1][-1].startswith("ended 137 ")
    assert not lives(int((tmp_path / "pid").read_text()))
    again = subprocess.run(line, capture_output=True, check=True, env={"PATH": "/usr/bin:/bin"})
    assert again.stdout == b"0\n"


def test_a_supervisor_that_the_command_has_stopped_is_ended_by_its_mark(
    started: list[Supervised], tmp_path: Path, shell: str
) -> None:
    command = "echo begun; kill -STOP $PPID; sleep 600"
    started.append(Supervised(shell, command, tmp_path))
    started[0].send(b"go\n")
    assert started[0].line() == b"begun\n"
    line = [shell, "-c", TERMINATION, "hermes", started[0].mark, "0"]
    subprocess.run(line, capture_output=True, check=True, env={"PATH": "/usr/bin:/bin"})
    deadline = time.monotonic() + 20
    while started[0].process.poll() is None:
        assert time.monotonic() < deadline
    assert end_marked(f"{CALL_MARK}={started[0].mark}") == 0


def test_commands_that_can_not_be_passed_on_are_refused() -> None:
    for command in ("a\0b", "x" * (LONGEST_SENT_COMMAND + 1)):
        with pytest.raises(ToolFailed):
            orders(command, "/", {})


def test_input_is_sent_in_short_lines() -> None:
    lines = input_lines(b"\n" * 5000)
    assert max(map(len, lines)) <= 4096
    assert input_lines(b"") == []
