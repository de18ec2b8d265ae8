"""A fake of the machine on which a provider runs a remote sandbox. It really runs programs, in a
folder of this machine."""

import io
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import weakref
import zipfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import anyio
import anyio.abc

from hermes.boundary.execution.process import end_marked
from hermes.boundary.execution.remote_bundle import agent_bundle, agent_folder
from hermes.testing import remote_programs

HOST_MARK = "REMOTE_HOST"
FAKE_HOST_PYTHON = ("python3", "-I", "-S", "-c")
PIPE_READ = 65_536


class RemoteHost:
    """Runs programs with another home directory. All other paths are those of this machine."""

    def __init__(self, folder: Path) -> None:
        self.home = folder
        cache = self.home / ".cache/hermes"
        cache.mkdir(parents=True, exist_ok=True)
        # The modules that Hermes installs on a remote machine are linked here from the start,
        # because each installation takes time.
        cache.joinpath(agent_folder()).symlink_to(_programs().folder)

    async def run(self, arguments: Sequence[str], data: bytes) -> bytes:
        """Runs a program with `data` as its input. Returns the program's output, or its error
        messages if there is no output."""
        environment = {
            "HOME": str(self.home),
            "PATH": f"{Path(sys.executable).parent}:{os.defpath}",
            HOST_MARK: str(self.home),
        }
        if tuple(arguments[:4]) == FAKE_HOST_PYTHON:
            return await _forked(arguments[4], data, environment)
        done = await anyio.run_process(
            arguments, input=data, env=environment, cwd=self.home, check=False
        )
        return done.stdout or done.stderr

    def stop(self) -> None:
        """Kills the commands that run on the machine."""
        end_marked(f"{HOST_MARK}={self.home}")


class HostMachine:
    """A machine that is always running. Implements `RemoteMachine`."""

    def __init__(self, folder: Path) -> None:
        self.host = RemoteHost(folder / "host")
        self.root = str(folder / "work")

    async def exists(self) -> bool:
        return True

    async def start(self) -> str:
        return self.root

    async def execute(self, arguments: Sequence[str], data: bytes, seconds: float) -> bytes:
        return await self.host.run(arguments, data)


async def _forked(code: str, data: bytes, environment: Mapping[str, str]) -> bytes:
    """Runs a Python program in a fork of another process, which has already imported the modules
    that the program needs."""
    # A fork starts with the environment of the process from which it was forked.
    code = f"from os import environ; environ.update({environment!r}); {code}"
    request = json.dumps({"code": code, "folder": environment["HOME"]}).encode()
    ours, theirs = socket.socketpair()
    output, writing = os.pipe()
    with ours, theirs, tempfile.TemporaryFile() as problems, os.fdopen(output, "rb") as reading:
        _programs().send(request, (theirs.fileno(), writing, problems.fileno()))
        theirs.close()
        os.close(writing)
        pieces: list[bytes] = []
        async with anyio.create_task_group() as group:
            group.start_soon(_send, ours, data)
            await anyio.wait_readable(reading)
            while piece := os.read(output, PIPE_READ):
                pieces.append(piece)
                await anyio.wait_readable(reading)
            group.cancel_scope.cancel()
        problems.seek(0)
        return b"".join(pieces) or problems.read()


async def _send(stream: socket.socket, data: bytes) -> None:
    stream.setblocking(False)
    rest = memoryview(data)
    while rest:
        await anyio.wait_writable(stream)
        try:
            rest = rest[stream.send(rest) :]
        except BrokenPipeError:
            return
    stream.shutdown(socket.SHUT_WR)


class _Programs:
    """The process that is forked for each program. It ends when this process ends."""

    def __init__(self) -> None:
        self.folder = folder = tempfile.mkdtemp(prefix="hermes-programs-")
        with zipfile.ZipFile(io.BytesIO(agent_bundle())) as bundle:
            bundle.extractall(folder)
        source = remote_programs.__file__
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            process = subprocess.Popen(  # noqa: S603  # the arguments are ours
                [sys.executable, "-I", "-S", source, folder], stdin=theirs.fileno(), env={}
            )
        weakref.finalize(self, _end, self._requests, process, folder)

    def send(self, request: bytes, streams: Sequence[int]) -> None:
        socket.send_fds(self._requests, [request], streams)


def _end(requests: socket.socket, process: "subprocess.Popen[bytes]", folder: str) -> None:
    requests.close()
    process.wait()
    shutil.rmtree(folder, ignore_errors=True)


@cache
def _programs() -> _Programs:
    return _Programs()
