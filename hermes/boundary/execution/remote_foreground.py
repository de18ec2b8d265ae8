"""Runs a command on a remote machine and follows it to its end."""

from collections.abc import Mapping

import anyio

from hermes.boundary.execution.output import Output
from hermes.boundary.execution.remote_calls import MachineUnreachable, RemoteCalls
from hermes.types.errors import ToolFailed
from hermes.types.execution import CommandObserver
from hermes.types.value import Value

FOLLOW_SECONDS = 10.0
"""Maximum number of seconds for which the remote machine waits for output before it answers."""


class RemoteResult(Value):
    """How a command ended."""

    code: int | None
    left: int
    timed_out: bool


class _News(Value):
    data: bytes
    piece: int
    position: int
    lost: bool
    result: RemoteResult | None


class RemoteForeground:
    """Follows one command to its end."""

    def __init__(self, calls: RemoteCalls, id: str, observer: CommandObserver) -> None:
        self.output = Output()
        self._calls = calls
        self._id = id
        self._observer = observer
        self._piece = self._position = 0
        self._shown = ""

    async def follow(self, launch: Mapping[str, object]) -> RemoteResult:
        """Starts the command, follows it to its end and returns the result. `launch` has the fields
        of the request that starts the command."""
        pauses = iter(self._calls.pauses)
        try:
            news = await self._ask("start", launch)
        except MachineUnreachable:
            news = None
        while news is None or not (result := self._taken(news)):
            try:
                place = {"piece": self._piece, "position": self._position}
                news = await self._ask("follow", place)
            except MachineUnreachable:
                pause = next(pauses, None)
                if pause is None:
                    raise
                await anyio.sleep(pause)
                news = None
        if result.code is None:
            raise ToolFailed("The supervisor of the command was killed: the exit code is unknown.")
        return result

    async def end(self) -> None:
        """Ends the command. Without this call, the command would run until its time is up."""
        try:
            await self._calls.end(self._id)
        except ToolFailed:
            return

    async def _ask(self, kind: str, fields: Mapping[str, object]) -> _News:
        named = {"id": self._id, **fields, "wait": FOLLOW_SECONDS}
        return await self._calls.call(kind, _News, named, FOLLOW_SECONDS)

    def _taken(self, news: _News) -> RemoteResult | None:
        """Adds the new output to the output so far. Returns the result of the command; None if the
        command still runs."""
        if news.lost:
            self.output.add(b"\n[output is left out here]\n")
        self.output.add(news.data)
        self._piece, self._position = news.piece, news.position
        line = self.output.last_line()
        if line and line != self._shown and news.result is None:
            self._observer.progress(line)
            self._shown = line
        return news.result
