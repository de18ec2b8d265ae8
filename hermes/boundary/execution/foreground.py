"""Runs a command on this machine until it ends, and then ends all processes that the command
started."""

import time

import anyio
import anyio.to_thread

from hermes.boundary.execution.launch import CommandLaunch
from hermes.boundary.execution.output import Output
from hermes.boundary.execution.process import KILL_GRACE
from hermes.boundary.execution.supervised import (
    CommandRequest,
    ForkServerClient,
    SupervisedCommand,
)
from hermes.types.errors import ToolFailed
from hermes.types.execution import CommandObserver, CommandOutcome
from hermes.types.identity import new_id

OUTPUT_GRACE = 0.5
"""Seconds that are allowed for the last output after the shell has ended."""
PROGRESS_SECONDS = 0.5


class Foreground:
    """Runs commands. The environment of each command also contains a variable with a unique mark,
    by which Hermes finds the processes of the command."""

    def __init__(self) -> None:
        self._server = ForkServerClient()

    async def run(
        self, launch: CommandLaunch, seconds: float, observer: CommandObserver
    ) -> CommandOutcome:
        """Runs the command for at most this many seconds. Raises ToolFailed if it can't be
        started."""
        try:
            supervised = await self._server.start(CommandRequest(launch=launch, mark=new_id()))
        except (OSError, ValueError) as error:
            raise ToolFailed(f"The command could not be started: {error}.") from error
        try:
            await observer.started(supervised.handle)
            await anyio.to_thread.run_sync(launch.check)
            await supervised.release()
            return await _attend(supervised, seconds, observer)
        finally:
            await supervised.aclose()

    def close(self) -> None:
        """Ends the fork server. The next command starts a new server."""
        self._server.close()


async def _attend(
    supervised: SupervisedCommand, seconds: float, observer: CommandObserver
) -> CommandOutcome:
    since, output, silent = time.monotonic(), Output(), anyio.Event()
    async with anyio.create_task_group() as group:
        group.start_soon(_read, supervised, output, silent)
        group.start_soon(report_progress, output, observer)
        with anyio.move_on_after(seconds) as limit:
            await supervised.shell_ended()
        if limit.cancelled_caught:
            supervised.terminate()
        # The wait is limited, because a process that outlives its command may keep the pipe open
        # forever.
        with anyio.move_on_after(KILL_GRACE if limit.cancelled_caught else OUTPUT_GRACE):
            await supervised.shell_ended()
            await silent.wait()
        ended = await supervised.end()
        with anyio.move_on_after(OUTPUT_GRACE):
            await silent.wait()
        group.cancel_scope.cancel()
    if ended is None:
        raise ToolFailed("The supervisor of the command was killed: the exit code is unknown.")
    return CommandOutcome(
        text=output.text(),
        code=ended.code,
        seconds=time.monotonic() - since,
        timed_out=limit.cancelled_caught,
        left=ended.left,
        exceeded=ended.exceeded,
    )


async def _read(supervised: SupervisedCommand, output: Output, silent: anyio.Event) -> None:
    while data := await supervised.output():
        output.add(data)
    silent.set()


async def report_progress(output: Output, observer: CommandObserver) -> None:
    """Tells the observer the last line of the output whenever this line has changed. Runs until it
    is cancelled."""
    shown = ""
    while True:
        await anyio.sleep(PROGRESS_SECONDS)
        line = output.last_line()
        if line and line != shown:
            observer.progress(line)
            shown = line
