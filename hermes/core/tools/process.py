"""The tool that controls background commands."""

from typing import Annotated, Literal, assert_never

import anyio.to_thread
import msgspec

from hermes.core.approvals import fenced
from hermes.core.context_files import end_watching
from hermes.core.tools.judged import judged, with_input
from hermes.core.tools.results import Redact
from hermes.text.console import console_text
from hermes.text.quantity import counted
from hermes.types.approvals import ProposedAction
from hermes.types.execution import ProcessOutput, ProcessStatus
from hermes.types.tools import Tool, ToolContext

LONGEST_WAIT = 600.0
"""Longest time in seconds for which a call waits for a process."""
LATEST_LINES = 20
"""Number of output lines that are shown together with the state of a process."""
LATEST_BYTES = 100_000
"""Number of bytes that are read from the end of the output to find the last LATEST_LINES lines."""
LOG_WIDTH = 2000
"""Maximum number of characters of an output line. The rest of a longer line is not shown."""
COMMAND_WIDTH = 100
"""Maximum number of characters of a command in the list of processes."""


class ProcessAction(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    action: Literal["list", "poll", "log", "wait", "kill", "write"]
    id: str = ""
    offset: int = 1
    """Number of the first output line to show. The first line has the number 1."""
    limit: int = 200
    timeout: Annotated[float, msgspec.Meta(gt=0)] = 60.0
    text: str = ""
    newline: bool = True


async def _process(context: ToolContext, arguments: ProcessAction) -> str:
    if arguments.action == "list":
        found = await context.sandbox.processes()
        await end_watching(context.turn, *(one.id for one in found if not one.running))
        return "\n".join(map(_line, found)) or "[no background processes]"
    process = await context.sandbox.process(arguments.id)
    match arguments.action:
        case "log":
            output = await process.output()
            return await anyio.to_thread.run_sync(_excerpt, output, arguments, context.redact)
        case "write":
            data = arguments.text.encode() + b"\n" * arguments.newline
            await process.write(data)
            return f"[wrote {counted(len(data), 'byte')}]"
        case "poll":
            status = await process.status()
        case "wait":
            status = await process.wait(min(arguments.timeout, LONGEST_WAIT))
        case "kill":
            status = await process.kill()
        case _ as never:
            assert_never(never)
    if not status.running:
        await end_watching(context.turn, status.id)
    return f"{_latest(await process.output(), context.redact)}\n[{_state(status)}]"


async def review_input(context: ToolContext, arguments: ProcessAction) -> ProposedAction | None:
    """Judges the text that is sent to a process. The text is judged as a command, because the
    process may be a shell."""
    text = arguments.text
    if arguments.action != "write":
        return None
    process = await (await context.sandbox.process(arguments.id)).status()
    verdict = await judged(text)
    # The process may also be an interpreter that reads code from its input. So the text is judged a
    # second time, as the input of the command that started the process.
    script = await judged(with_input(process.command, text))
    if verdict.outcome == "run" and (await judged(process.command)).outcome == "run":
        verdict = script
    whole = arguments.newline or text.endswith("\n")
    if verdict.outcome == "run" and whole:
        return None
    return ProposedAction(
        kind="send input to a running command",
        shown=text,
        reason=verdict.reason
        if verdict.outcome != "run"
        else "a later input can complete this one",
        # If the process is not a shell, a person can approve even the input `rm -rf /`, because
        # the process does not run its input as a command.
        outcome="never" if script.outcome == "never" else "ask",
        contained=whole and verdict.effect == "machine",
        facts=(process.id, "line" if arguments.newline else "text"),
        remarks=(f"The command is:\n{fenced(process.command)}",),
    )


def _line(status: ProcessStatus) -> str:
    command = " ".join(status.command.split())
    shown = command if len(command) <= COMMAND_WIDTH else command[: COMMAND_WIDTH - 1] + "…"
    return f"{status.id}  {_state(status)}  {shown}"


def _state(status: ProcessStatus) -> str:
    seconds = f"{status.seconds:.1f} s"
    if status.running:
        return f"running, {seconds}"
    if status.exceeded:
        return f"ended after {seconds}: it exceeded the limit for {status.exceeded}"
    if status.code is None:
        return f"ended, exit code unknown, {seconds}"
    return f"exit code {status.code}, {seconds}"


def _latest(output: ProcessOutput, redact: Redact) -> str:
    recent = output.data[-LATEST_BYTES:]
    if len(recent) < len(output.data):
        # The first line may be incomplete, so it is dropped.
        recent = recent[recent.find(b"\n") + 1 :]
    lines = console_text(recent).rstrip("\n").splitlines()
    return "\n".join(_narrow(line, redact) for line in lines[-LATEST_LINES:]) or "[no output]"


def _excerpt(output: ProcessOutput, arguments: ProcessAction, redact: Redact) -> str:
    lines = output.data.removesuffix(b"\n").split(b"\n") if output.data else []
    first = max(arguments.offset, 1)
    chosen = lines[first - 1 : first - 1 + max(arguments.limit, 1)]
    last = first - 1 + len(chosen)
    note = f"[lines {first}-{last} of {len(lines)}" if chosen else f"[{counted(len(lines), 'line')}"
    if not output.whole:
        note += "; earlier output is no longer kept"
    return "\n".join([*(_narrow(console_text(line), redact) for line in chosen), note + "]"])


def _narrow(line: str, redact: Redact) -> str:
    return line if len(line) <= LOG_WIDTH else redact(line)[:LOG_WIDTH] + "…"


process_tool = Tool(
    name="process",
    description="Look after background commands of this conversation.\n"
    "list; poll (state, last lines); log (`limit` lines from `offset`); wait (for the end, up to"
    " `timeout` seconds); kill; write (`text` to its input).",
    arguments=ProcessAction,
    handler=_process,
    review=review_input,
    toolset="terminal",
    risk="high",
)
