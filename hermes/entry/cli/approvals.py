"""`hermes approvals`: explains which commands of the agent need approval."""

import sys
from collections.abc import Iterator

import click
import msgspec

from hermes.entry.cli.main import Commands
from hermes.entry.cli.runtime import Runtime
from hermes.entry.output import say, say_json, say_unwrapped
from hermes.types.danger import Verdict

NOT_A_STRING = "this line is not a JSON string"


@click.command(cls=Commands)
def approvals() -> None:
    """Explain which commands need approval.

    \b
    hermes approvals explain 'git push --force'
    """


@approvals.command(context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[COMMAND]")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print JSON objects. Without COMMAND, read one JSON string per line from standard input.",
)
@click.pass_obj
def explain(runtime: Runtime, words: tuple[str, ...], as_json: bool) -> None:
    """Show whether the shell command COMMAND would run, and why. The command is not run.

    This only explains: the tools of the agent do not ask for approvals yet.

    \b
    run    the command needs no approval
    ask    the command needs approval
    never  the command is refused, even if all approvals are switched off

    "resolved" lists the programs that the command would start, and "scripts" the files whose
    content decides what these programs do.

    \b
    hermes approvals explain 'find . -name "*.log" -delete'
    echo '"rm -rf build"' | hermes approvals explain --json
    """
    if len(words) > 1:
        raise click.UsageError("put the whole command in quotes, so that it is one argument")
    if words:
        verdict = runtime.judge_command(words[0])
        say_json(_json(verdict)) if as_json else _show(verdict)
        return
    if not as_json:
        raise click.UsageError("name a command in quotes, or read commands from a pipe with --json")
    mistakes = 0
    for command in _commands():
        mistakes += command is None
        say_json(_json(None if command is None else runtime.judge_command(command)))
    if mistakes:
        raise SystemExit(2)


def _commands() -> Iterator[str | None]:
    """Yields the strings on standard input; None for a line that is not a JSON string."""
    for line in sys.stdin:
        if line.strip():
            try:
                yield msgspec.json.decode(line.encode("utf-8", "surrogateescape"), type=str)
            except (msgspec.DecodeError, UnicodeError):
                yield None


def _json(verdict: Verdict | None) -> str:
    if verdict is None:
        return msgspec.json.encode({"error": NOT_A_STRING}).decode()
    fields = {
        "verdict": verdict.outcome,
        "reason": verdict.reason,
        "resolved": verdict.resolved,
        "scripts": verdict.scripts,
    }
    return msgspec.json.encode(fields).decode()


def _show(verdict: Verdict) -> None:
    say(f"verdict   {verdict.outcome}")
    say(f"reason    {verdict.reason}")
    for position, line in enumerate(verdict.resolved.split("\n")):
        say_unwrapped(f"{'resolved' if not position else '':<10}{line}")
    for path in verdict.scripts:
        say_unwrapped(f"script    {path!a}")
