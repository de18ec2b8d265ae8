"""Commands on this machine, with the rights of this process: nothing fences them in."""

import shutil
import signal
import time
from collections.abc import Mapping
from pathlib import Path

import anyio
import anyio.to_thread
from anyio.abc import ByteReceiveStream

from hermes.boundary.execution.background import Background
from hermes.boundary.execution.output import Output
from hermes.boundary.execution.process import (
    CALL_MARK,
    GRACE,
    Gated,
    end_group,
    end_marked,
    signal_group,
    spawn_gated,
)
from hermes.types.errors import ToolFailed
from hermes.types.tools import ToolContext
from hermes.types.value import Value

LINGER = 0.5
"""Seconds that the last output gets after the shell has ended."""
PROGRESS_SECONDS = 0.5


class Ended(Value):
    """How a command ended."""

    text: str
    """What it printed."""
    code: int
    """Negative for the signal that ended it."""
    seconds: float
    timed_out: bool
    left: int
    """Processes that were still there when it should have ended; they are no more."""


class LocalExecution:
    """Runs a call's command; what a foreground command started ends with it."""

    def __init__(self, environment: Mapping[str, str], processes: Path) -> None:
        self._environment = environment
        self._shell = shutil.which("bash", path=environment.get("PATH")) or "/bin/sh"
        self.background = Background(processes, self._shell, environment)

    async def run(self, command: str, folder: Path, seconds: float, context: ToolContext) -> Ended:
        """Runs it to its end, for so many seconds at the most. ToolFailed if it can't begin."""
        environment = {**self._environment, CALL_MARK: context.call}
        try:
            gated = await spawn_gated([self._shell, "-c", command], folder, environment)
        except (OSError, ValueError) as error:
            raise ToolFailed(f"The command could not be started: {error}.") from error
        mark = f"{CALL_MARK}={context.call}"
        try:
            await context.running(gated.record)
            gated.release()
            return await _attend(gated, mark, seconds, context)
        except BaseException:
            end_group(gated.record)
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(end_marked, mark)
            raise
        finally:
            await gated.end()


async def _attend(gated: Gated, mark: str, seconds: float, context: ToolContext) -> Ended:
    since, output, silent = time.monotonic(), Output(), anyio.Event()
    assert gated.process.stdout
    async with anyio.create_task_group() as group:
        group.start_soon(_read, gated.process.stdout, output, silent)
        group.start_soon(_report, output, context)
        with anyio.move_on_after(seconds) as limit:
            await gated.process.wait()
        if limit.cancelled_caught:
            signal_group(gated.record, signal.SIGTERM)
        # What it left behind may keep the pipe open for ever.
        await _quiet(gated, silent, GRACE if limit.cancelled_caught else LINGER)
        left = await anyio.to_thread.run_sync(end_marked, mark)
        end_group(gated.record)
        await _quiet(gated, silent, LINGER)
        group.cancel_scope.cancel()
    return Ended(
        text=output.text(),
        code=await gated.process.wait(),
        seconds=time.monotonic() - since,
        timed_out=limit.cancelled_caught,
        left=left,
    )


async def _quiet(gated: Gated, silent: anyio.Event, seconds: float) -> None:
    with anyio.move_on_after(seconds):
        await gated.process.wait()
        await silent.wait()


async def _read(stream: ByteReceiveStream, output: Output, silent: anyio.Event) -> None:
    async for data in stream:
        output.add(data)
    silent.set()


async def _report(output: Output, context: ToolContext) -> None:
    shown = ""
    while True:
        await anyio.sleep(PROGRESS_SECONDS)
        line = output.last_line()
        if line and line != shown:
            context.progress(line)
            shown = line


def folder_in(workspace: Path, wanted: str) -> Path:
    """The folder that a command begins in; it may `cd` wherever it likes."""
    try:
        folder = Path(workspace, wanted).resolve()
        is_folder = folder.is_dir()
    except (OSError, RuntimeError) as error:
        raise ToolFailed(
            f"workdir {wanted[:80]!r} can't be a folder: too long, or links in a circle."
        ) from error
    if not folder.is_relative_to(workspace.resolve()):
        raise ToolFailed(f"workdir {wanted!r} is outside the workspace {workspace}.")
    if not is_folder:
        raise ToolFailed(f"workdir {wanted!r} is not a folder of the workspace {workspace}.")
    return folder
