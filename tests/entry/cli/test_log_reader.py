"""The command `hermes logs` shows and follows the log file."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from anyio.streams.text import TextReceiveStream
from click.testing import CliRunner, Result

from hermes.entry.cli.log_reader import LevelFilter, LogTail, logs
from hermes.testing.running import until

LINES = [
    "2026-05-03 14:02:11,042 INFO    hermes.a: one",
    "2026-05-03 14:02:12,042 ERROR   hermes.a: two",
    "    | Traceback of two",
    "2026-05-03 14:02:13,042 WARNING hermes.a: three",
    "2026-05-03 14:02:14,042 INFO    hermes.a: four",
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "logs" / "hermes.log"
    made.parent.mkdir()
    made.write_text("".join(f"{line}\n" for line in LINES))
    return made


def run(home: Path, *args: str) -> Result:
    return CliRunner(env={"HERMES_HOME": str(home)}).invoke(logs, args)


def test_the_last_lines_are_shown(path: Path, tmp_path: Path) -> None:
    assert run(tmp_path).stdout.splitlines() == LINES
    assert run(tmp_path, "-n", "2").stdout.splitlines() == LINES[-2:]
    assert run(tmp_path, "-n", "0").stdout == ""


def test_a_level_selects_records_with_their_tracebacks(path: Path, tmp_path: Path) -> None:
    assert run(tmp_path, "--level", "warning").stdout.splitlines() == LINES[1:4]
    assert run(tmp_path, "--level", "error", "-n", "1").stdout.splitlines() == LINES[2:3]
    path.write_text('{"time": "t", "level": "INFO"}\n{"time": "t", "level":"ERROR"}\n')
    assert run(tmp_path, "--level", "ERROR").stdout == '{"time": "t", "level":"ERROR"}\n'


def test_without_a_log_the_error_names_the_command_that_writes_one(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert done.exit_code == 1
    assert "`hermes gateway` writes it to" in done.stderr


async def test_ctrl_c_ends_a_followed_log_without_an_error(path: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hermes", "logs", "--follow"]
    environment = {**os.environ, "HERMES_HOME": str(tmp_path)}
    async with await anyio.open_process(command, env=environment) as process:
        assert process.stdout
        assert process.stderr
        with anyio.fail_after(30):
            seen = ""
            async for part in TextReceiveStream(process.stdout):
                seen += part
                if "four" in seen:
                    break
            process.send_signal(signal.SIGINT)
            assert await process.wait() == 0
        assert [part async for part in process.stderr] == []


@pytest.fixture
def seen(path: Path) -> Iterator[list[str]]:
    """Yields the lines of a log that is followed in a thread, until `the end` is written."""
    found: list[str] = []

    def follow() -> None:
        for line in LogTail(path, follow=True).last(1, LevelFilter("DEBUG")):
            found.append(line)
            if line == "the end":
                return

    thread = threading.Thread(target=follow)
    thread.start()
    yield found
    with path.open("a") as file:
        file.write("the end\n")
    thread.join(20)
    assert not thread.is_alive()


async def test_new_lines_are_followed_through_a_rotation(path: Path, seen: list[str]) -> None:
    await until(lambda: seen == LINES[-1:])
    with path.open("a") as file:
        file.write("half")
        file.flush()
        file.write(" a line\n")
    await until(lambda: seen[-1] == "half a line")
    with path.open("a") as file:
        file.write("the last of the old file\n")
    path.rename(path.with_name("hermes.log.1"))
    path.write_text("the first of the new file\n")
    await until(lambda: seen[-1] == "the first of the new file")
    assert seen[1:] == ["half a line", "the last of the old file", "the first of the new file"]
