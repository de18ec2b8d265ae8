"""Background commands, for the agent."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Literal, assert_never

import anyio.to_thread
import msgspec

from hermes.boundary.execution.background import Background, Kept, Status
from hermes.boundary.execution.output import plain
from hermes.types.tools import Tool, ToolContext

MOST_SECONDS = 600.0
LATEST = 20
"""Lines that are shown beside the state."""
RECENT = 100_000
"""Bytes in which they are looked for."""
WIDTH = 2000
COMMAND = 100

DESCRIPTION = (
    "Look after background commands of this conversation.\n"
    "list; poll (state, last lines); log (`limit` lines from `offset`); wait (for the end, up to"
    " `timeout` seconds); kill; write (`text` to its input)."
)


Hide = Callable[[str], str]
"""Takes secrets out of a text."""


class ProcessAction(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    action: Literal["list", "poll", "log", "wait", "kill", "write"]
    id: str = ""
    offset: int = 1
    """The first line, from 1."""
    limit: int = 200
    timeout: Annotated[float, msgspec.Meta(gt=0)] = 60.0
    text: str = ""
    newline: bool = True


def background_tool(background: Background) -> Tool:
    return Tool(
        name="process",
        description=DESCRIPTION,
        arguments=ProcessAction,
        handler=partial(_process, background),
        toolset="terminal",
        risk="high",
    )


async def _process(background: Background, context: ToolContext, arguments: msgspec.Struct) -> str:
    assert isinstance(arguments, ProcessAction)
    id, session = arguments.id, context.turn.session
    match arguments.action:
        case "list":
            found = await anyio.to_thread.run_sync(background.of, session)
            return "\n".join(map(_line, found)) or "[no background processes]"
        case "log":
            kept = await anyio.to_thread.run_sync(background.output, id, session)
            return await anyio.to_thread.run_sync(_excerpt, kept, arguments, context.hide)
        case "write":
            data = arguments.text.encode() + b"\n" * arguments.newline
            await anyio.to_thread.run_sync(background.write, id, session, data)
            return f"[wrote {len(data)} bytes]"
        case "poll":
            status = await anyio.to_thread.run_sync(background.find, id, session)
        case "wait":
            status = await background.wait(id, session, min(arguments.timeout, MOST_SECONDS))
        case "kill":
            status = await background.kill(id, session)
        case _ as never:
            assert_never(never)
    kept = await anyio.to_thread.run_sync(background.output, id, session)
    return f"{_latest(kept, context.hide)}\n[{_state(status)}]"


def _line(status: Status) -> str:
    command = " ".join(status.record.command.split())
    shown = command if len(command) <= COMMAND else command[: COMMAND - 1] + "…"
    return f"{status.record.id}  {_state(status)}  {shown}"


def _state(status: Status) -> str:
    seconds = f"{status.seconds:.1f} s"
    if status.running:
        return f"running, {seconds}"
    if status.code is None:
        return f"ended, exit code unknown, {seconds}"
    return f"exit code {status.code}, {seconds}"


def _latest(kept: Kept, hide: Hide) -> str:
    recent = kept.data[-RECENT:]
    if len(recent) < len(kept.data):
        # The first line is not whole.
        recent = recent[recent.find(b"\n") + 1 :]
    lines = plain(recent).rstrip("\n").splitlines()
    return "\n".join(_narrow(line, hide) for line in lines[-LATEST:]) or "[no output]"


def _excerpt(kept: Kept, arguments: ProcessAction, hide: Hide) -> str:
    lines = kept.data.removesuffix(b"\n").split(b"\n") if kept.data else []
    first = max(arguments.offset, 1)
    chosen = lines[first - 1 : first - 1 + max(arguments.limit, 1)]
    last = first - 1 + len(chosen)
    note = f"[lines {first}-{last} of {len(lines)}" if chosen else f"[{len(lines)} lines"
    if not kept.whole:
        note += "; earlier output is no longer kept"
    return "\n".join([*(_narrow(plain(line), hide) for line in chosen), note + "]"])


def _narrow(line: str, hide: Hide) -> str:
    return line if len(line) <= WIDTH else hide(line)[:WIDTH] + "…"
