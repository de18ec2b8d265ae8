"""The tool that runs shell commands."""

from functools import partial
from typing import Annotated

import msgspec

from hermes.core.context_files import rename_watched, watched
from hermes.core.tools.process import process_tool
from hermes.types.execution import CommandOutcome
from hermes.types.tools import AnyTool, Tool, ToolContext

LONGEST_COMMAND = 600.0
"""Longest timeout that a call can set, in seconds."""
LONG_SECONDS = 10.0
"""If a command took longer than this number of seconds, the result tells the model how long it
took."""


class RunCommand(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    command: str
    timeout: Annotated[float, msgspec.Meta(gt=0)] | None = None
    background: bool = False
    workdir: str = "."
    """A path relative to the workspace."""


def terminal_tools(timeout: float, isolation: str) -> tuple[AnyTool, ...]:
    """Returns the tools that run commands. `timeout` is the default for calls without a timeout."""
    where = f"in a sandbox ({isolation})."
    if isolation == "none":
        where = "on the user's machine, with the user's rights: there is no sandbox."
    terminal = Tool(
        name="terminal",
        description=f"Run a shell command {where}\n"
        "It runs in the workspace; stdout and stderr come together. `timeout` in seconds, up to"
        " 600. What it leaves running is ended with it; for servers and long jobs set `background`,"
        " which returns an id for `process` at once.",
        arguments=RunCommand,
        handler=partial(_terminal, timeout),
        toolset="terminal",
        risk="high",
    )
    return terminal, process_tool


async def _terminal(timeout: float, context: ToolContext, arguments: RunCommand) -> str:
    command, workdir = arguments.command, arguments.workdir
    if arguments.background:
        # No handle is committed, because recovery ends the commands whose handles it finds. A
        # background command must continue after a restart.
        async with watched(context.turn, context.call):
            process = await context.sandbox.start(command, workdir=workdir)
            await rename_watched(context.turn, context.call, process.id)
        return f"[started in the background as process {process.id}]"
    seconds = min(arguments.timeout or timeout, LONGEST_COMMAND)
    async with watched(context.turn, context.call):
        outcome = await context.sandbox.run(command, context, workdir=workdir, seconds=seconds)
    return _told(outcome)


def _told(result: CommandOutcome) -> str:
    lines = [result.text.rstrip("\n") or "[no output]"]
    if result.exceeded:
        lines.append(
            f"[ended after {result.seconds:.1f} s: it exceeded the limit for {result.exceeded},"
            " which the operator can change]"
        )
    elif result.timed_out:
        lines.append(
            f"[timed out and ended after {result.seconds:.1f} s; set `background` for longer"
            " commands]"
        )
    elif result.code or result.seconds >= LONG_SECONDS:
        lines.append(f"[exit code {result.code}, {result.seconds:.1f} s]")
    if result.left and not (result.timed_out or result.exceeded):
        lines.append("[the processes that it left running were ended; set `background` to keep it]")
    return "\n".join(lines)
