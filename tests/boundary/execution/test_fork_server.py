"""The fork server starts supervisors, and a supervisor starts and ends a command. The tests send
requests to the sockets of the fork server and the supervisors."""

import json
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import pytest

from hermes.boundary.execution import fork_server
from hermes.boundary.execution.launch import NO_RESTRICTIONS
from hermes.boundary.execution.process_tree import descendants, find_process
from hermes.boundary.execution.scripts import script
from hermes.testing.commands import lives, no_process_left
from hermes.testing.running import until

BASH = shutil.which("bash") or ""


class Server:
    """A fork server process, and the socket over which it gets requests."""

    def __init__(self) -> None:
        self.requests, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(script(fork_server), stdin=theirs.fileno(), env={})

    def start(self, command: str, folder: Path) -> "Controlled":
        return Controlled(self, command, folder)


class Controlled:
    """A command that the fork server has started. The test controls it over a socket."""

    def __init__(self, server: Server, command: str, folder: Path) -> None:
        self.control, theirs = socket.socketpair()
        self.output, written = os.pipe()
        socket.send_fds(server.requests, [b"+"], [theirs.fileno(), written])
        theirs.close()
        os.close(written)
        request = {
            "arguments": [BASH, "-c", command],
            "restrictions": NO_RESTRICTIONS.fields(),
            "folder": str(folder),
            "environment": {"PATH": os.defpath},
        }
        self.control.sendall(json.dumps(request).encode() + b"\n")
        self._lines: TextIO = self.control.makefile()
        word, *self.rest = self.line().split()
        self.ready = word == "ready"

    @property
    def supervisor(self) -> int:
        return int(self.rest[0])

    @property
    def shell(self) -> int:
        return int(self.rest[1])

    def line(self) -> str:
        return self._lines.readline()

    def order(self, word: bytes) -> None:
        self.control.sendall(word)

    def close(self) -> None:
        self._lines.close()
        self.control.close()
        os.close(self.output)


@pytest.fixture
def server() -> Iterator[Server]:
    with no_process_left():
        server = Server()
        with server.requests, server.process:
            yield server
            server.process.kill()


def test_a_command_begins_when_it_is_released_and_reports_how_it_ended(
    server: Server, tmp_path: Path
) -> None:
    command = server.start("pwd; exit 3", tmp_path)
    assert command.ready
    shell = find_process(command.shell)
    assert shell
    assert shell.parent == command.supervisor
    assert os.getsid(command.supervisor) == command.supervisor
    os.set_blocking(command.output, False)
    with pytest.raises(BlockingIOError):
        os.read(command.output, 100)
    os.set_blocking(command.output, True)
    command.order(b"go\n")
    assert command.line() == "ended 3 0 \n"
    assert command.line() == ""
    assert os.read(command.output, 100) == f"{tmp_path}\n".encode()
    assert os.read(command.output, 100) == b""
    command.close()


async def test_a_command_does_not_begin_if_the_gate_is_closed(
    server: Server, tmp_path: Path
) -> None:
    command = server.start("touch ran", tmp_path)
    command.close()
    await until(lambda: not (lives(command.supervisor) or lives(command.shell)))
    assert list(tmp_path.iterdir()) == []


async def test_a_gateway_that_dies_before_its_request_is_complete_leaves_no_supervisor(
    server: Server,
) -> None:
    control, theirs = socket.socketpair()
    with control, theirs:
        socket.send_fds(server.requests, [b"+"], [theirs.fileno(), theirs.fileno()])
        await until(lambda: descendants(server.process.pid))
    await until(lambda: not descendants(server.process.pid))


def test_a_missing_folder_is_reported(server: Server, tmp_path: Path) -> None:
    command = server.start("true", tmp_path / "missing")
    assert not command.ready
    assert command.rest[-1] == repr(f"{tmp_path}/missing")
    command.close()


async def test_the_remaining_processes_are_ended_on_request(server: Server, tmp_path: Path) -> None:
    away = "env -i setsid sleep 600 & sleep 600 & exit 4"
    command = server.start(away, tmp_path)
    command.order(b"go\n")
    assert command.line() == "shell 4\n"
    assert len(descendants(command.supervisor)) == 2
    command.order(b"kill\n")
    assert command.line() == "ended 4 2 \n"
    command.close()


async def test_the_remaining_processes_may_end_by_themselves(
    server: Server, tmp_path: Path
) -> None:
    waits = "(until [ -e go ]; do sleep 0.01; done) &"
    command = server.start(f"setsid bash -c '{waits}'; exit 5", tmp_path)
    command.order(b"go\n")
    assert command.line() == "shell 5\n"
    (tmp_path / "go").touch()
    assert command.line() == "ended 5 0 \n"
    command.close()


async def test_the_signals_that_end_a_command_do_not_end_its_supervisor(
    server: Server, tmp_path: Path
) -> None:
    command = server.start("sleep 600", tmp_path)
    command.order(b"go\n")
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        os.kill(server.process.pid, number)
        os.kill(command.supervisor, number)
    os.killpg(command.shell, signal.SIGTERM)
    assert command.line() == f"ended {-signal.SIGTERM} 0 \n"
    command.close()
    another = server.start("true", tmp_path)
    assert another.ready
    another.close()


async def test_the_server_ends_the_processes_of_a_supervisor_that_was_killed(
    server: Server, tmp_path: Path
) -> None:
    other = server.start("sleep 600", tmp_path)
    other.order(b"go\n")
    command = server.start("env -i setsid sleep 600 & env -i setsid sleep 600 & wait", tmp_path)
    command.order(b"go\n")
    await until(lambda: len(descendants(command.supervisor)) == 3)
    left = [entry.pid for entry in descendants(command.supervisor)]
    os.kill(command.supervisor, signal.SIGKILL)
    assert command.line() == ""
    await until(lambda: not any(map(lives, left)))
    assert lives(other.shell)
    other.close()
    command.close()


async def test_the_server_ends_after_its_supervisors(server: Server, tmp_path: Path) -> None:
    command = server.start("sleep 600", tmp_path)
    command.order(b"go\n")
    server.requests.close()
    with pytest.raises(subprocess.TimeoutExpired):
        server.process.wait(0.2)
    command.close()
    assert server.process.wait(5.0) == 0
    assert not lives(command.shell)
