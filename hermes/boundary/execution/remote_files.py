"""Reads and writes the files of a workspace on another machine. The gateway sends this program to
that machine. The program reads requests from stdin and writes the answers to stdout. Each request
and each answer is a line of JSON, followed by data. The program needs only the standard library and
the modules `workspace` and `scan`, which the gateway sends with it (`file_program`).
"""

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypedDict

from hermes.boundary import scan
from hermes.boundary.workspace import Workspace
from hermes.types.errors import ToolFailed


class FileRequest(TypedDict, total=False):
    """A request. Most operations use only some of the fields."""

    operation: str
    root: str
    """The path of the workspace. A relative path begins in the home folder of the account."""
    shown: str
    """The path under which the model knows the workspace. Requests may use this path, too."""
    path: str
    names: list[str]
    length: int
    """Number of bytes of data after the request."""
    expected: int | None
    """The length in bytes of the content that the file must have before a write. The data of the
    request ends with this content. None if the file may have any content."""
    task: dict[str, object]


FileAnswer = tuple[object, bytes]
"""The result of an operation, and the data that follows it."""


def main() -> None:
    """Answers requests until the gateway closes stdin."""
    while line := sys.stdin.buffer.readline():
        request: FileRequest = json.loads(line)
        data = sys.stdin.buffer.read(request["length"])
        root = Path.home() / request["root"]
        try:
            result, content = OPERATIONS[request["operation"]](root, request, data)
            answer: dict[str, object] = {"result": result, "length": len(content)}
        except (ToolFailed, OSError) as error:
            answer, content = {"failed": str(error), "length": 0}, b""
        sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n" + content)
        sys.stdout.buffer.flush()


def _workspace(root: Path, request: FileRequest) -> Workspace:
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    return Workspace(root, None, Path(request["shown"]))


def _read(root: Path, request: FileRequest, data: bytes) -> FileAnswer:
    return None, _workspace(root, request).read(request["path"])


def _write(root: Path, request: FileRequest, data: bytes) -> FileAnswer:
    size, expected = request["expected"], None
    if size is not None:
        data, expected = data[: len(data) - size], data[len(data) - size :]
    return _workspace(root, request).write(request["path"], data, expected), b""


def _list(root: Path, request: FileRequest, data: bytes) -> FileAnswer:
    return [vars(one) for one in _workspace(root, request).list(request["path"])], b""


def _stat(root: Path, request: FileRequest, data: bytes) -> FileAnswer:
    found = _workspace(root, request).stat(request["path"])
    return found and vars(found), b""


def _remove(root: Path, request: FileRequest, data: bytes) -> FileAnswer:
    _workspace(root, request).remove(request["path"])
    return None, b""


def _search(root: Path, request: FileRequest, data: bytes) -> FileAnswer:
    """Searches in a separate process, because a search that takes too long can only be stopped by
    ending its process."""
    workspace = _workspace(root, request)
    place = workspace.open(request["path"])
    task = {**request["task"], "path": "/".join(workspace.parts(request["path"]))}
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.dup2(writing, 1)
            sys.argv = ["scan", str(place), json.dumps(task)]
            scan.main()
            sys.stdout.flush()
            os._exit(0)
        finally:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        found = file.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), found


def _folder(root: Path, request: FileRequest, data: bytes) -> FileAnswer:
    """Returns the real path of the folder in which a command begins."""
    wanted = request["path"]
    _workspace(root, request)
    root = root.resolve()
    if "\0" in wanted:
        raise ToolFailed("a folder can't have NUL in its name.")
    if Path(wanted).is_relative_to(request["shown"]):
        wanted = str(Path(wanted).relative_to(request["shown"]))
    folder = Path(root, wanted).resolve()
    if not folder.is_relative_to(root):
        raise ToolFailed(f"workdir {wanted!r} is outside the workspace {root}.")
    if not folder.is_dir():
        raise ToolFailed(f"workdir {wanted!r} is not a folder of the workspace {root}.")
    return str(folder), b""


def _scripts(root: Path, request: FileRequest, data: bytes) -> FileAnswer:
    """Returns the path and the hash of each script; an empty hash if there is no such file. In the
    workspace no link is followed, because a command could have made the link."""
    workspace, root = _workspace(root, request), root.resolve()
    found: list[tuple[str, str]] = []
    for name in request["names"]:
        joined = os.path.join(request["path"], os.path.expanduser(name))  # noqa: PTH111, PTH118
        path = os.path.normpath(joined)
        if Path(path).is_relative_to(root):
            content = None if workspace.stat(path) is None else workspace.read(path)
        else:
            path = os.path.realpath(joined)
            if os.path.exists(path) and not os.path.isfile(path):  # noqa: PTH110, PTH113
                raise ToolFailed(f"The script {name!r} is not a file.")
            content = Path(path).read_bytes() if os.path.exists(path) else None  # noqa: PTH110
        digest = "" if content is None else hashlib.sha256(content).hexdigest()
        found.append((path, digest))
    return found, b""


def _delete(root: Path, request: FileRequest, data: bytes) -> FileAnswer:
    """Deletes the workspace with all files."""
    existed = root.is_dir() and not root.is_symlink()
    if existed:
        shutil.rmtree(root)
    return existed, b""


OPERATIONS: dict[str, Callable[[Path, FileRequest, bytes], FileAnswer]] = {
    "read": _read,
    "write": _write,
    "list": _list,
    "stat": _stat,
    "remove": _remove,
    "search": _search,
    "folder": _folder,
    "scripts": _scripts,
    "delete": _delete,
}
