"""The tool that runs shell commands."""

import posixpath
from functools import partial
from typing import Annotated

import msgspec
from msgspec.structs import replace

from hermes.core.approvals import fenced
from hermes.core.context_files import rename_watched, watched
from hermes.core.tools.judged import judged, with_input
from hermes.core.tools.process import process_tool
from hermes.types.approvals import ProposedAction
from hermes.types.danger import ScriptLanguage, Verdict, VerdictOutcome
from hermes.types.errors import ToolFailed
from hermes.types.execution import CommandOutcome, Sandbox
from hermes.types.tools import AnyTool, Tool, ToolContext

_RANK: dict[VerdictOutcome, int] = {"run": 0, "ask": 1, "never": 2}
TEMPORARY_FOLDERS = ("/tmp/", "/var/tmp/", "/dev/shm/")  # noqa: S108
"""Folders outside of the workspace in which a command can store a script without an approval."""
_FOREIGN = Verdict(outcome="run", reason="", resolved="", leaves=True)
"""The verdict on a script that Hermes does not judge, such as a program in Ruby. The script may do
anything that the sandbox allows. An approval of the command is valid only for the present content
of the script."""
_UNCHECKED = Verdict(
    outcome="ask", reason="can't be checked", resolved="", effect="unclear", leaves=True
)
"""The verdict on a script whose content must be judged, but can't be."""
MOST_SCRIPTS = 5
"""Maximum number of scripts of one command that the danger detector reads."""
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
        contained=is_contained(verdict, context.sandbox),
        leaves=leaves,
        facts=(command, "background" if arguments.background else ""),
        remarks=tuple(filter(None, (written, later, loads))),
        locate=partial(context.sandbox.locate, workdir, verdict.scripts),
    )


def is_contained(verdict: Verdict, sandbox: Sandbox) -> bool:
    """Returns whether an isolated sandbox protects against all dangers of the command. A command
    that can't be understood may delete the files of the workspace. For such a command, the result
    is True only if these files belong to the sandbox alone."""
    return verdict.effect == "machine" or (verdict.effect == "unclear" and sandbox.private_files)


async def _with_scripts(context: ToolContext, workdir: str, verdict: Verdict) -> Verdict:
    """Returns the verdict on the command together with its scripts: the worst of `verdict` and the
    verdicts on the scripts."""
    for number, (script, language) in enumerate(
        zip(verdict.scripts, verdict.languages, strict=True)
    ):
        inner = _UNCHECKED
        if number < MOST_SCRIPTS:
            inner = await _script_verdict(context.sandbox, workdir, script, language)
        if _RANK[inner.outcome] > _RANK[verdict.outcome]:
            reason = f"{script}: {inner.reason}"
            verdict = replace(verdict, outcome=inner.outcome, reason=reason)
        if inner.outcome != "run":
            effect = inner.effect if verdict.effect == "machine" else verdict.effect
            verdict = replace(verdict, effect=effect)
        verdict = replace(verdict, leaves=verdict.leaves or inner.leaves)
    return verdict


async def _script_verdict(
    sandbox: Sandbox, workdir: str, script: str, language: ScriptLanguage
) -> Verdict:
    """Returns the verdict on a script that a command runs in `workdir`. Only scripts for a shell or
    for Python are judged. Programs in other languages are not judged, and neither are the programs
    that a build tool such as `make` runs."""
    path = posixpath.normpath(posixpath.join(workdir, script))
    try:
        if script.startswith("~") or await sandbox.stat(path) is None:
            return _FOREIGN
        data = await sandbox.read(path)
    except ToolFailed:
        return _UNCHECKED if path.startswith(TEMPORARY_FOLDERS) else _FOREIGN
    first, _, _ = data.partition(b"\n")
    if language == "program":
        language = _language_of(first)
    if language == "other":
        return _FOREIGN
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return _UNCHECKED
    if language == "several":
        return _UNCHECKED
    return await judged(text if language == "shell" else with_input("python3 -", text))


def _language_of(first_line: bytes) -> ScriptLanguage:
    """Returns the language of a program file. A text file without a `#!` line is a shell script,
    because a shell runs it."""
    if not first_line.startswith(b"#!"):
        return "other" if b"\0" in first_line else "shell"
    words = first_line[2:].decode(errors="replace").split()
    names = [posixpath.basename(word) for word in words if not word.startswith("-")]
    name = names[1] if names[:1] == ["env"] and names[1:] else "".join(names[:1])
    if name.startswith("python"):
        return "python"
    return "shell" if name.endswith("sh") else "other"


def terminal_tools(timeout: float, isolation: str, *, offline: bool = False) -> tuple[AnyTool, ...]:
    """Returns the tools that run commands. `timeout` applies to calls that set no timeout.
    `offline` says whether commands run without a network."""
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
        # A restart ends all commands whose handles are stored. A background command must survive a
        # restart, so `start` is not given the call's context, which would store the handle.
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
