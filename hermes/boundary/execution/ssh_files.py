"""The files of a workspace on another machine."""

import json
from collections.abc import Callable, Sequence

import anyio.to_thread
import msgspec

from hermes.boundary.execution.file_program import LOADER
from hermes.boundary.execution.ssh_connection import SshConnection
from hermes.boundary.execution.ssh_file_server import ServerLost
from hermes.boundary.search import search_result, search_task
from hermes.types.errors import ToolFailed
from hermes.types.execution import LARGEST_FILE, FileInfo, Script, SearchQuery, SearchResult


class SshFiles:
    """Implements `SandboxFiles` and `SandboxPlaces` with a program that runs on the machine. The
    program opens each folder of a path in turn and follows no symbolic link."""

    def __init__(
        self,
        connection: SshConnection,
        root: str,
        shown: str,
        prepare: Callable[[], None] = lambda: None,
    ) -> None:
        """`root` is the path of the workspace on the other machine. `shown` is another path of the
        workspace, which the model may use. `prepare` is called before each request, and records
        that the workspace is used now."""
        self._prepare = prepare
        self._connection = connection
        self._root = root
        self._shown = shown

    async def read(self, path: str) -> bytes:
        return (await self._call("read", path=path))[1]

    async def write(self, path: str, data: bytes, *, expected: bytes | None = None) -> bool:
        if len(data) > LARGEST_FILE:
            raise ToolFailed(f"That is more than {LARGEST_FILE} bytes for {path!r}; write less.")
        size = None if expected is None else len(expected)
        new, _ = await self._call("write", data + (expected or b""), path=path, expected=size)
        return bool(new)

    async def list(self, path: str) -> Sequence[FileInfo]:
        found, _ = await self._call("list", path=path)
        return msgspec.convert(found, list[FileInfo])

    async def stat(self, path: str) -> FileInfo | None:
        found, _ = await self._call("stat", path=path)
        return msgspec.convert(found, FileInfo | None)

    async def remove(self, path: str) -> None:
        await self._call("remove", path=path)

    async def search(self, query: SearchQuery) -> SearchResult:
        task = search_task(query)._asdict()
        code, found = await self._call("search", path=query.path, task=task)
        return search_result(query, msgspec.convert(code, int), found)

    async def folder(self, workdir: str) -> str:
        found, _ = await self._call("folder", path=workdir)
        return msgspec.convert(found, str)

    async def scripts(self, folder: str, names: Sequence[str]) -> tuple[Script, ...]:
        found, _ = await self._call("scripts", path=folder, names=list(names))
        pairs = msgspec.convert(found, list[tuple[str, str]])
        return tuple(Script(path=path, digest=digest) for path, digest in pairs)

    async def delete(self) -> bool:
        """Deletes the workspace. Returns False if it did not exist."""
        existed, _ = await self._call("delete")
        return bool(existed)

    async def _call(
        self, operation: str, data: bytes = b"", **fields: object
    ) -> tuple[object, bytes]:
        request = {
            "operation": operation,
            "root": self._root,
            "shown": self._shown,
            "length": len(data),
            **fields,
        }
        line = json.dumps(request).encode() + b"\n"
        connection = self._connection
        await connection.prepare()
        await anyio.to_thread.run_sync(self._prepare)
        try:
            answer = await connection.file_servers.call(
                connection.python(LOADER), connection.environment, line + data
            )
        except ServerLost as error:
            raise connection.failure(str(error)) from error
        if "failed" in answer.fields:
            raise ToolFailed(answer.fields["failed"])
        return answer.fields["result"], answer.content
