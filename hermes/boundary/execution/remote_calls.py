"""Sends requests to the small agent that runs on a remote machine."""

import json
from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

import anyio
import msgspec

from hermes.boundary.execution.remote_bundle import (
    MISSING,
    agent_arguments,
    agent_bundle,
    install_arguments,
)
from hermes.types.errors import ToolFailed
from hermes.types.value import Value

REMOTE_ANSWER_SECONDS = 60.0
"""Seconds within which the remote machine must answer. If a request allows the machine to wait,
this waiting time is added."""

RECONNECT_PAUSES = (0.5, 2.0, 5.0)
"""Seconds to wait before each new attempt to reach a machine after its connection was lost."""

T = TypeVar("T")


class MachineUnreachable(ToolFailed):
    """Raised if it is unknown whether a request has reached the remote machine."""


class RemoteMachine(Protocol):
    """Runs programs on the machine of one sandbox."""

    async def exists(self) -> bool:
        """Returns whether the machine is running. On a machine that is not running, no command is
        running either."""
        ...

    async def start(self) -> str:
        """Starts the machine if it is not running. Returns the path of the workspace on the
        machine."""
        ...

    async def execute(self, arguments: Sequence[str], data: bytes, seconds: float) -> bytes:
        """Runs a program with `data` as its input, for at most `seconds`. Returns its output.

        Raises MachineUnreachable if it is unknown whether the program has run, and ToolFailed if it
        certainly has not run.
        """
        ...


class _Count(Value):
    count: int


class _Ended(Value):
    ended: bool


class _Reply(Value):
    answer: Mapping[str, object] | None = None
    failed: str | None = None


class RemoteCalls:
    """Sends requests to the agent on a remote machine. The agent is installed when it is first
    used."""

    def __init__(
        self, machine: RemoteMachine, shown: str, pauses: Sequence[float] = RECONNECT_PAUSES
    ) -> None:
        """`shown` is another path of the workspace, which the model may use instead of the real
        one."""
        self.machine = machine
        self.pauses = pauses
        self._shown = shown

    async def call(
        self, kind: str, answer: type[T], fields: Mapping[str, object], wait: float = 0.0
    ) -> T:
        """Returns the answer to a request. `wait` is the number of seconds that the machine is
        allowed to wait before it answers. Raises ToolFailed if the request fails."""
        root = await self.machine.start()
        request = {"do": kind, "root": root, "shown": self._shown or root, **fields}
        data = json.dumps(request).encode()
        output = await self._execute(agent_arguments(), data, wait)
        if output.strip() == MISSING:
            await self._execute(install_arguments(), agent_bundle(), 0.0)
            output = await self._execute(agent_arguments(), data, wait)
        # The answer is decoded with `json`, because msgspec can't decode names of files that are
        # not UTF-8.
        try:
            reply = msgspec.convert(json.loads(output), _Reply)
            if reply.failed is not None:
                raise ToolFailed(reply.failed)
            return msgspec.convert(reply.answer, answer)
        except (ValueError, msgspec.ValidationError) as error:
            raise ToolFailed(
                "The sandbox gave an invalid answer: its image must contain Python 3.11 or newer as"
                f" `python3`. The answer ends with {output[-300:].decode(errors='replace')!r}."
            ) from error

    async def _execute(self, arguments: Sequence[str], data: bytes, wait: float) -> bytes:
        seconds = REMOTE_ANSWER_SECONDS + wait
        try:
            with anyio.fail_after(seconds):
                return await self.machine.execute(arguments, data, seconds)
        except TimeoutError as error:
            raise MachineUnreachable(
                f"The sandbox did not answer within {seconds:g} s: try again, or reset it with"
                " `hermes sandbox reset`."
            ) from error

    async def running(self) -> int:
        """Returns the number of commands that are running."""
        if not await self.machine.exists():
            return 0
        return (await self.call("running", _Count, {})).count

    async def end(self, id: str) -> bool:
        """Ends a command. Returns False if it was not running."""
        if not await self.machine.exists():
            return False
        return (await self.call("end", _Ended, {"id": id})).ended
