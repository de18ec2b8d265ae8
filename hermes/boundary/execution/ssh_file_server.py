"""Calls the program that reads and writes files on another machine."""

import contextlib
from collections.abc import Mapping
from typing import Any

import anyio
import msgspec
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from hermes.boundary.execution.file_program import file_program
from hermes.types.value import Value

_LONGEST_LINE = 20_000_000


class ServerLost(Exception):
    """Raised if the program has ended without an answer. The text is the error message of the
    program."""


class ServerAnswer(Value):
    """The answer to one request."""

    fields: Mapping[str, Any]
    content: bytes


class FileServers:
    """The running file programs of one connection. A program serves one request at a time. If a
    request is cancelled or fails, its program is ended and not used again."""

    def __init__(self) -> None:
        self._idle: list[FileServer] = []

    async def call(
        self, line: tuple[str, ...], environment: Mapping[str, str], request: bytes
    ) -> ServerAnswer:
        """Sends the request to an idle program. If no program is idle, starts a new program with
        the command line `line`. Raises ServerLost if the program ends."""
        server = self._idle.pop() if self._idle else await _started(line, environment)
        try:
            answer = await server.call(request)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await server.aclose()
            raise
        self._idle.append(server)
        return answer

    async def aclose(self) -> None:
        """Ends the programs."""
        while self._idle:
            await self._idle.pop().aclose()


class FileServer:
    """A running program that reads and writes files on the other machine."""

    def __init__(self, process: Process) -> None:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        self._process = process
        self._requests = process.stdin
        self._answers = BufferedByteReceiveStream(process.stdout)
        self._errors = process.stderr
        self._prepared = file_program()

    async def call(self, request: bytes) -> ServerAnswer:
        sent, self._prepared = self._prepared + request, b""
        try:
            await self._requests.send(sent)
            line = await self._answers.receive_until(b"\n", _LONGEST_LINE)
            fields: Mapping[str, Any] = msgspec.json.decode(line)
            content = await self._answers.receive_exactly(fields["length"])
        except (anyio.BrokenResourceError, anyio.IncompleteRead, anyio.EndOfStream) as error:
            raise ServerLost(await self._said()) from error
        return ServerAnswer(fields=fields, content=content)

    async def _said(self) -> str:
        with anyio.move_on_after(1), contextlib.suppress(anyio.EndOfStream):
            return (await self._errors.receive()).decode(errors="replace")
        return ""

    async def aclose(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        with anyio.CancelScope(shield=True):
            await self._process.aclose()


async def _started(line: tuple[str, ...], environment: Mapping[str, str]) -> FileServer:
    # If a cancellation interrupted the start, nobody would end the process.
    with anyio.CancelScope(shield=True):
        process = await anyio.open_process(line, env=environment, start_new_session=True)
    return FileServer(process)
