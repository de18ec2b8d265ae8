"""Shell commands, for the agent."""

from functools import partial
from typing import Annotated

import anyio.to_thread
import msgspec

from hermes.boundary.execution.local import Ended, LocalExecution, folder_in
from hermes.core.tools.process import background_tool
from hermes.types.errors import ToolFailed
from hermes.types.tools import Tool, ToolContext

MOST_SECONDS = 600.0
LONG_SECONDS = 10.0
"""A command that took longer is told how long."""

DESCRIPTION = (
    "Run a shell command on the user's machine, with the user's rights: there is no sandbox.\n"
    "It runs in the workspace; stdout and stderr come together. `timeout` in seconds, up to 600."
    " What it leaves running is ended with it; for servers and long jobs set `background`, which"
    " returns an id for `process` at once."
)


class Terminal(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    command: str
    timeout: Annotated[float, msgspec.Meta(gt=0)] | None = None
    background: bool = False
    workdir: str = "."
    """Relative to the workspace."""


def terminal_tools(local: LocalExecution, timeout: float) -> tuple[Tool, ...]:
    """Tools that run commands on this machine; `timeout` is for those that name none."""
    terminal = Tool(
        name="terminal",
        description=DESCRIPTION,
        arguments=Terminal,
        handler=partial(_terminal, local, timeout),
        toolset="terminal",
        risk="high",
    )
    return terminal, background_tool(local.background)


async def _terminal(
    local: LocalExecution, timeout: float, context: ToolContext, arguments: msgspec.Struct
) -> str:
    assert isinstance(arguments, Terminal)
    if "\0" in arguments.command + arguments.workdir:
        # uvloop would run what stands before it.
        raise ToolFailed("A command can't hold a NUL character.")
    folder = await anyio.to_thread.run_sync(folder_in, context.workspace, arguments.workdir)
    if arguments.background:
        # Not told to `context.running`: what is told there ends with a turn that was cut.
        turn = context.turn
        started = await local.background.start(arguments.command, folder, turn.session, turn.agent)
        return f"[started in the background as process {started.id}]"
    seconds = min(arguments.timeout or timeout, MOST_SECONDS)
    return _told(await local.run(arguments.command, folder, seconds, context))


def _told(ended: Ended) -> str:
    lines = [ended.text.rstrip("\n") or "[no output]"]
    if ended.timed_out:
        lines.append(
            f"[timed out and ended after {ended.seconds:.1f} s; set `background` for what takes"
            " longer]"
        )
    elif ended.code or ended.seconds >= LONG_SECONDS:
        lines.append(f"[exit code {ended.code}, {ended.seconds:.1f} s]")
    if ended.left and not ended.timed_out:
        lines.append("[what it left running was ended; set `background` to keep it]")
    return "\n".join(lines)
