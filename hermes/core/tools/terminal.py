"""The tool that runs shell commands."""

import posixpath
from functools import partial
from typing import Annotated

import msgspec
from msgspec.structs import replace

from hermes.core.approvals import fenced
from hermes.core.context_files import rename_watched, watched
from hermes.core.tools.judged import judged
from hermes.core.tools.process import process_tool
from hermes.types.approvals import ProposedAction
from hermes.types.danger import Verdict, VerdictOutcome
from hermes.types.errors import ToolFailed
from hermes.types.execution import CommandOutcome
from hermes.types.tools import AnyTool, Tool, ToolContext

_RANK: dict[VerdictOutcome, int] = {"run": 0, "ask": 1, "never": 2}
_HERE = "HERMES_END_OF_SCRIPT"
MOST_SCRIPTS = 5
"""Maximum number of scripts of one command whose content is judged."""
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


async def review_command(
    context: ToolContext, arguments: RunCommand, *, offline: bool
) -> ProposedAction | None:
    """Judges the command, and the scripts that it runs."""
    command, workdir = arguments.command, arguments.workdir
    verdict = await judged(command)
    verdict = await _with_scripts(context, workdir, verdict)
    leaves = verdict.leaves and not offline
    if verdict.outcome == "run" and not leaves:
        return None
    written = "" if verdict.resolved == command else f"As written:\n{fenced(command)}"
    later = "It keeps running in the background." if arguments.background else ""
    loads = "Files that these scripts load are not covered." if verdict.scripts else ""
    return ProposedAction(
        kind="run a command",
        shown=verdict.resolved or command,
        reason=verdict.reason,
        outcome=verdict.outcome,
        contained=verdict.contained,
        leaves=leaves,
        facts=(command, "background" if arguments.background else ""),
        remarks=tuple(filter(None, (written, later, loads))),
        locate=partial(context.sandbox.locate, workdir, verdict.scripts),
    )


async def _with_scripts(context: ToolContext, workdir: str, verdict: Verdict) -> Verdict:
    """Returns the worst of the verdict and the verdicts on the scripts in the workspace."""
    for script in verdict.scripts[:MOST_SCRIPTS]:
        path = posixpath.normpath(posixpath.join(workdir, script))
        try:
            text = (await context.sandbox.read(path)).decode()
        except (ToolFailed, UnicodeDecodeError):
            # The file is missing, outside the workspace or a program. It is only hashed.
            continue
        inner = await judged(_as_command(path, text))
        if _RANK[inner.outcome] > _RANK[verdict.outcome]:
            reason = f"{script}: {inner.reason}"
            verdict = replace(
                verdict, outcome=inner.outcome, reason=reason, contained=inner.contained
            )
        elif inner.outcome == verdict.outcome and not inner.contained:
            verdict = replace(verdict, contained=False)
        verdict = replace(verdict, leaves=verdict.leaves or inner.leaves)
    return verdict


def _as_command(path: str, text: str) -> str:
    """Returns a command that does the same as the script."""
    first = text.partition("\n")[0]
    if path.endswith(".py") or (first.startswith("#!") and "python" in first):
        return f"python3 - <<'{_HERE}'\n{text}\n{_HERE}\n"
    return text


def terminal_tools(timeout: float, isolation: str, *, offline: bool = False) -> tuple[AnyTool, ...]:
    """Returns the tools that run commands. `timeout` is the default for calls without a timeout.
    `offline` says whether commands have no network."""
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
        review=partial(review_command, offline=offline),
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
            process = await context.sandbox.start(command, workdir=workdir, place=context.place)
            await rename_watched(context.turn, context.call, process.id)
        return f"[started in the background as process {process.id}]"
    seconds = min(arguments.timeout or timeout, LONGEST_COMMAND)
    async with watched(context.turn, context.call):
        outcome = await context.sandbox.run(
            command, context, workdir=workdir, seconds=seconds, place=context.place
        )
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
