"""Answers one request of the gateway on a remote machine: a file operation, or a request to start,
follow or end a command.

The request is read from stdin and the answer is written to stdout, both as JSON. This module runs
on the remote machine, so it imports only the standard library.
"""

import base64
import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hermes.boundary import scan
from hermes.boundary.execution.command_place import PLACE_CHANGED, ScriptFiles, VisibleFolder
from hermes.boundary.execution.output_files import OUTPUT_PIECE
from hermes.boundary.execution.remote_command import (
    TERM_GRACE,
    CommandFolder,
    CommandOrder,
    end,
    folders,
    start,
)
from hermes.boundary.workspace import Workspace
from hermes.types.errors import ToolFailed

MOST_OUTPUT = 1_000_000
"""Maximum number of bytes of output in one answer."""
ALL_OUTPUT = 2 * OUTPUT_PIECE
"""Maximum number of bytes of a command's output that are kept."""
PIECE_SECONDS = 0.5
"""Number of seconds after which new output is sent, even if more may follow."""
LOOK_SECONDS = 0.02

AgentAnswer = Mapping[str, object]


class RemoteAgent:
    """The operations on one workspace. Each method answers one kind of request."""

    def __init__(self, home: Path, root: str, shown: str) -> None:
        """`root` is the path of the workspace on the remote machine, where this program runs.
        `shown` is another path that the gateway may use for the workspace."""
        self._commands = home / ".hermes-commands"
        self._root = Path(root)
        self._workspace = Workspace(self._root, None, Path(shown))
        real = self._root.resolve()
        self._scripts = ScriptFiles(str(home), [VisibleFolder(shown=real, real=real)])

    def read(self, path: str) -> AgentAnswer:
        return {"data": _encoded(self._workspace.read(path))}

    def write(self, path: str, data: str, expected: str | None) -> AgentAnswer:
        known = None if expected is None else base64.b64decode(expected)
        return {"new": self._workspace.write(path, base64.b64decode(data), known)}

    def list(self, path: str) -> AgentAnswer:
        return {"entries": [_fields(info) for info in self._workspace.list(path)]}

    def stat(self, path: str) -> AgentAnswer:
        info = self._workspace.stat(path)
        return {"entry": None if info is None else _fields(info)}

    def remove(self, path: str) -> AgentAnswer:
        self._workspace.remove(path)
        return {}

    def search(self, path: str, task: Mapping[str, object]) -> AgentAnswer:
        place = self._workspace.open(path)
        named = {**task, "path": "/".join(self._workspace.parts(path))}
        command = [sys.executable, "-I", "-S", scan.__file__, str(place), json.dumps(named)]
        done = subprocess.run(  # noqa: S603  # the arguments are ours
            command, stdin=subprocess.DEVNULL, capture_output=True, pass_fds=(place,), check=False
        )
        return {"code": done.returncode, "output": _encoded(done.stdout)}

    def locate(self, workdir: str, scripts: Sequence[str]) -> AgentAnswer:
        """Finds the real path of a folder, and the paths and hashes of scripts."""
        os.close(self._folder(workdir))
        folder = self._path(workdir)
        found = [self._scripts.find(folder, script)[0] for script in scripts]
        return {"folder": folder, "scripts": [[one.path, one.digest] for one in found]}

    def start(
        self, id: str, workdir: str, order: CommandOrder, place: AgentAnswer | None, wait: float
    ) -> AgentAnswer:
        """Starts a command. If `place` is given, the command starts only if its folder and its
        scripts are the same as in `place`. Answers when the command has ended or has new output, at
        the latest after `wait` seconds."""
        if place is not None:
            self._check_place(workdir, place["folder"], place["scripts"])
        descriptor = self._folder(workdir)
        try:
            folder = start(self._commands, id, descriptor, order)
        finally:
            os.close(descriptor)
        return self._news(folder, 0, 0, wait) if wait else {}

    def follow(self, id: str, piece: int, position: int, wait: float) -> AgentAnswer:
        """Waits for new output or for the end of a command."""
        folder = CommandFolder(self._commands / id)
        if folder.record() is None:
            raise ToolFailed("The command was not started.")
        return self._news(folder, piece, position, wait)

    def end(self, id: str) -> AgentAnswer:
        self._commands.mkdir(mode=0o700, parents=True, exist_ok=True)
        return {"ended": end(CommandFolder(self._commands / id), 0.0)}

    def running(self) -> AgentAnswer:
        """Counts the commands that are running."""
        return {"count": sum(one.result() is None for one, _ in folders(self._commands))}

    def processes(self, owner: str) -> AgentAnswer:
        found = [
            _status(folder)
            for folder, record in folders(self._commands)
            if record["background"] and record["owner"] == owner
        ]
        return {"processes": sorted(found, key=lambda one: one["began_at"])}

    def process(self, id: str, owner: str, wait: float) -> AgentAnswer:
        """Waits until a background process ends, for at most `wait` seconds."""
        folder = self._process(id, owner)
        _until(lambda: folder.result() is not None, wait)
        return {"process": _status(folder)}

    def output(self, id: str, owner: str) -> AgentAnswer:
        data, *_, lost = self._process(id, owner).output(0, 0, ALL_OUTPUT)
        return {"data": _encoded(data), "whole": not lost}

    def input(self, id: str, owner: str, data: str) -> AgentAnswer:
        folder, given = self._process(id, owner), base64.b64decode(data)
        taken = 0
        try:
            if folder.result() is not None:
                raise BrokenPipeError
            pipe = os.open(folder.path / "input", os.O_WRONLY | os.O_NONBLOCK)
            with contextlib.suppress(BlockingIOError), os.fdopen(pipe, "wb", buffering=0) as file:
                taken = file.write(given) or 0
        except OSError as error:
            raise ToolFailed(f"Process {id} takes no input: it has ended.") from error
        if taken < len(given):
            raise ToolFailed(
                f"Process {id} took only the first {taken} of {len(given)} bytes: it does not read"
                " its input."
            )
        return {}

    def kill(self, id: str, owner: str) -> AgentAnswer:
        folder = self._process(id, owner)
        end(folder, TERM_GRACE)
        return {"process": _status(folder)}

    def prepare(self) -> None:
        """Creates the workspace."""
        self._root.mkdir(parents=True, exist_ok=True)

    def _path(self, workdir: str) -> str:
        return str(Path(self._root.resolve(), *self._workspace.parts(workdir)))

    def _check_place(self, workdir: str, folder: Any, scripts: Any) -> None:
        """Raises ToolFailed if the folder or a script is not the approved one."""
        if self._path(workdir) != folder:
            raise ToolFailed(PLACE_CHANGED.format("the folder"))
        for path, digest in scripts:
            if self._scripts.find("/", path)[0].digest != digest:
                raise ToolFailed(PLACE_CHANGED.format(path))

    def _folder(self, workdir: str) -> int:
        """Opens the folder in which a command begins."""
        place = self._workspace.open(workdir)
        try:
            os.close(os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=place))
        except NotADirectoryError as error:
            os.close(place)
            raise ToolFailed(f"workdir {workdir!r} is not a folder of the workspace.") from error
        return place

    def _process(self, id: str, owner: str) -> CommandFolder:
        folder = CommandFolder(self._commands / id) if id.isalnum() else None
        record = folder.record() if folder else None
        if not folder or not record or not record["background"] or record["owner"] != owner:
            raise ToolFailed(
                f"There is no process {id!r} in this conversation: `list` shows all processes."
            )
        return folder

    def _news(self, folder: CommandFolder, piece: int, position: int, wait: float) -> AgentAnswer:
        since = time.monotonic()
        while True:
            waited = time.monotonic() - since
            # The result is read before the output. Otherwise the command could write its last
            # output and end between the two reads.
            result = folder.result()
            data, next_piece, next_position, lost = folder.output(piece, position, MOST_OUTPUT)
            if result or waited >= wait or (data and waited >= PIECE_SECONDS):
                break
            time.sleep(LOOK_SECONDS)
        return {
            "data": _encoded(data),
            "piece": next_piece,
            "position": next_position,
            "lost": lost,
            "result": result if len(data) < MOST_OUTPUT else None,
        }


def _until(condition: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(LOOK_SECONDS)


def _status(folder: CommandFolder) -> dict[str, Any]:
    record, result = folder.record(), folder.result()
    assert record is not None
    return {
        "id": record["id"],
        "command": record["command"],
        "running": result is None,
        "code": result["code"] if result else None,
        "seconds": max(0.0, (result["ended_at"] if result else time.time()) - record["began_at"]),
        "began_at": record["began_at"],
    }


def _fields(info: Any) -> AgentAnswer:
    return {
        "name": info.name,
        "kind": info.kind,
        "size": info.size,
        "modified_at": info.modified_at,
    }


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


REQUESTS = frozenset(
    {"read", "write", "list", "stat", "remove", "search", "locate", "start", "follow", "end"}
    | {"running", "processes", "process", "output", "input", "kill"}
)


def answer(home: Path, request: dict[str, Any]) -> AgentAnswer:
    """Answers one request. If the request fails, the answer contains the reason."""
    kind, root, shown = request.pop("do"), request.pop("root"), request.pop("shown")
    agent = RemoteAgent(home, root, shown)
    assert kind in REQUESTS, kind
    try:
        agent.prepare()
        given: AgentAnswer = getattr(agent, kind)(**request)
    except ToolFailed as error:
        return {"failed": str(error)}
    except OSError as error:
        return {"failed": f"The sandbox failed: {error}."}
    return {"answer": given}


def main() -> None:
    request = json.loads(sys.stdin.buffer.read())
    with os.fdopen(1, "wb", closefd=False) as output:
        output.write(json.dumps(answer(Path.home(), request)).encode())
