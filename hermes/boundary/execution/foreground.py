"""Runs a command on this machine to its end, and ends everything that it started."""

import signal
import time
from collections.abc import Mapping
from pathlib import Path

import anyio
import anyio.to_thread
from anyio.abc import ByteReceiveStream

from hermes.boundary.execution.handles import CALL_MARK, handle_of
from hermes.boundary.execution.output import Output
from hermes.boundary.execution.process import (
    KILL_GRACE,
    Gated,
    end_group,
    end_marked,
    signal_group,
    spawn_gated,
)
from hermes.types.errors import ToolFailed
from hermes.types.execution import CommandObserver, CommandOutcome
from hermes.types.identity import new_id

OUTPUT_GRACE = 0.5
"""Seconds that the last output gets after the shell has ended."""
PROGRESS_SECONDS = 0.5


class Foreground:
    """Runs commands in a shell, each with this environment and a mark of its own."""

    def __init__(self, shell: str, environment: Mapping[str, str]) -> None:
        self._shell = shell
        self._environment = environment

    async def run(
        self, command: str, folder: Path, seconds: float, observer: CommandObserver
    ) -> CommandOutcome:
        """Runs it for so many seconds at most. ToolFailed if it can't begin."""
        mark = new_id()
        environment = {**self._environment, CALL_MARK: mark}
        try:
            gated = await spawn_gated([self._shell, "-c", command], folder, environment)
        except (OSError, ValueError) as error:
            raise ToolFailed(f"The command could not be started: {error}.") from error
        marked = f"{CALL_MARK}={mark}"
        try:
            await observer.started(handle_of(gated.record, mark))
            gated.release()
            return await _attend(gated, marked, seconds, observer)
        except BaseException:
            end_group(gated.record)
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(end_marked, marked)
            raise
        finally:
            await gated.end()


async def _attend(
    gated: Gated, marked: str, seconds: float, observer: CommandObserver
) -> CommandOutcome:
    since, output, silent = time.monotonic(), Output(), anyio.Event()
    assert gated.process.stdout
    async with anyio.create_task_group() as group:
        group.start_soon(_read, gated.process.stdout, output, silent)
        group.start_soon(_report, output, observer)
        with anyio.move_on_after(seconds) as limit:
            await gated.process.wait()
        if limit.cancelled_caught:
            signal_group(gated.record, signal.SIGTERM)
        # A process that the command left behind may keep the pipe open forever.
        await _quiet(gated, silent, KILL_GRACE if limit.cancelled_caught else OUTPUT_GRACE)
        left = await anyio.to_thread.run_sync(end_marked, marked)
        end_group(gated.record)
        await _quiet(gated, silent, OUTPUT_GRACE)
        group.cancel_scope.cancel()
    return CommandOutcome(
        text=output.text(),
        code=await gated.process.wait(),
        seconds=time.monotonic() - since,
        timed_out=limit.cancelled_caught,
        left=left,
    )


async def _quiet(gated: Gated, silent: anyio.Event, seconds: float) -> None:
    """Returns when the shell and its output have ended, or after so many seconds."""
    with anyio.move_on_after(seconds):
        await gated.process.wait()
        await silent.wait()


async def _read(stream: ByteReceiveStream, output: Output, silent: anyio.Event) -> None:
    async for data in stream:
        output.add(data)
    silent.set()


async def _report(output: Output, observer: CommandObserver) -> None:
    shown = ""
    while True:
        await anyio.sleep(PROGRESS_SECONDS)
        line = output.last_line()
        if line and line != shown:
            observer.progress(line)
            shown = line
