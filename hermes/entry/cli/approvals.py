"""`hermes approvals`: decides what the agent may do, and lists and revokes the lasting rules."""

import sys
import time
from collections.abc import Callable, Iterator
from typing import ParamSpec, TypeVar

import anyio
import click
import msgspec

from hermes import settings as configuration
from hermes.control import approval_records
from hermes.control.approval_records import ApprovalRule, OpenApproval
from hermes.entry.cli.main import Commands, plainly
from hermes.entry.cli.runtime import Runtime
from hermes.entry.output import say, say_json, say_line, say_unwrapped
from hermes.streaming.approval_prompt import barred
from hermes.text.console import visible
from hermes.text.durations import rounded_duration
from hermes.types.approvals import Grant, short_id
from hermes.types.danger import Verdict
from hermes.types.store import Work

T = TypeVar("T")
P = ParamSpec("P")

NOT_A_STRING = "this line is not a JSON string"
NO_GATEWAY = (
    "No gateway runs here. Unless the conversation is open in a terminal, the turn continues with"
    " `hermes chat --continue`, or when a gateway starts."
)
LASTING: dict[Grant, str] = {
    "once": "once",
    "session": "for this conversation",
    "always": "always",
}
INTERNAL = ("digest", "lasting_digest")
"""Fields of an approval that are not shown."""


@click.command(cls=Commands, default="list")
def approvals() -> None:
    """Decide what the agent may do. Without a command: `hermes approvals list`.

    An action that needs approval waits until somebody decides, also across restarts. The person who
    runs this command is the operator, and may decide every approval. A running gateway continues
    the turn at once. If no gateway runs, the next start of Hermes continues it.

    \b
    hermes approvals list
    hermes approvals approve 9f3a2b1c
    hermes approvals deny 9f3a2b1c use the trash instead
    """


@approvals.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
@click.pass_obj
@plainly
def list_(runtime: Runtime, as_json: bool) -> None:
    """List the actions that wait for a decision, and then the rules.

    A rule is an approval that lasts for longer than one action. Each action is shown exactly as it
    would be done.

    \b
    hermes approvals list
    hermes approvals list --json | jq -r 'select(.state == "open") | .id'
    """
    waiting, rules = _run(runtime, approval_records.listed)
    now = time.time()
    for one in waiting:
        _print_json("open", one) if as_json else _show_open(one, now)
    if as_json or rules:
        _show_rules(rules, now, as_json=as_json)
    if not waiting and not as_json:
        say("No action waits for a decision.")


@approvals.command(name="approve")
@click.argument("id")
@click.option("--session", "grant", flag_value="session", help="Also later in this conversation.")
@click.option("--always", "grant", flag_value="always", help="Also in all later conversations.")
@click.pass_obj
@plainly
def approve(runtime: Runtime, id: str, grant: Grant | None) -> None:
    """Approve the action with this ID. The turn that waits for it continues.

    `hermes approvals list` shows the ID. `--session` and `--always` store a rule: exactly this
    action needs no further approval if the same person requests it. `hermes approvals revoke`
    deletes the rule. The exit code is 2 if no such action waits.

    \b
    hermes approvals approve 9f3a2b1c
    hermes approvals approve 9f3a2b1c --always
    """
    _decide(runtime, id, grant or "once", "")


@approvals.command(name="deny")
@click.argument("id")
@click.argument("reason", nargs=-1)
@click.pass_obj
@plainly
def deny(runtime: Runtime, id: str, reason: tuple[str, ...]) -> None:
    """Deny the action with this ID. The agent gets the REASON, and its turn continues.

    `hermes approvals list` shows the ID. The exit code is 2 if no such action waits.

    \b
    hermes approvals deny 9f3a2b1c
    hermes approvals deny 9f3a2b1c use the trash instead
    """
    _decide(runtime, id, None, " ".join(reason))


@approvals.command(name="rules")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
@click.pass_obj
@plainly
def show_rules(runtime: Runtime, as_json: bool) -> None:
    """List the rules: actions that were approved for a conversation or for good."""
    _, rules = _run(runtime, approval_records.listed)
    _show_rules(rules, time.time(), as_json=as_json)
    if not rules and not as_json:
        say("There are no rules: every approval was for one time.")


@approvals.command(name="revoke")
@click.argument("rule")
@click.pass_obj
@plainly
def revoke(runtime: Runtime, rule: str) -> None:
    """Delete a RULE, so that the action needs approval again. RULE is the id of the rule.

    \b
    hermes approvals rules
    hermes approvals revoke 4c81d0e7
    """
    found = _run(runtime, approval_records.revoke, rule)
    say("revoked; this action needs approval again:")
    _show_action(found.detail)


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

    The command is judged as if it ran on this machine. In a sandbox, fewer commands need approval.

    \b
    run    the command needs no approval
    ask    the command needs approval
    never  the command is refused, even if all approvals are switched off

    "resolved" lists the programs that the command would start, and "scripts" the files whose
    content decides what these programs do.

    \b
    hermes approvals explain 'find . -name "*.log" -delete'
    echo '"rm -rf photos"' | hermes approvals explain --json
    """
    if len(words) > 1:
        raise click.UsageError("put the whole command in quotes, so that it is one argument")
    if words:
        verdict = runtime.judge_command(words[0])
        say_json(_json(verdict)) if as_json else _show(verdict)
        return
    if not as_json:
        raise click.UsageError(
            "give a command in quotes, or use --json and send commands to standard input"
        )
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


def _decide(runtime: Runtime, id: str, grant: Grant | None, reason: str) -> None:
    found = _run(runtime, approval_records.decide, id, grant, reason, time.time())
    say(f"{found.short_id} is " + ("denied:" if grant is None else f"approved {LASTING[grant]}:"))
    _show_action(found.detail)
    if not runtime.running_gateways(configuration.load().home.run):
        say(NO_GATEWAY)


def _show_open(one: OpenApproval, now: float) -> None:
    left = one.expires_at - now
    until = f"expires in {rounded_duration(left)}" if left > 0 else "has expired"
    asked = f"asked {_ago(now - one.asked_at)}"
    say_line(f"{one.short_id}  {asked}, {until}; for {one.person or 'nobody'} in {one.session}")
    _show_action(one.detail)


def _show_rules(rules: list[ApprovalRule], now: float, *, as_json: bool) -> None:
    for one in rules:
        if as_json:
            _print_json("rule", one)
            continue
        where = f"in {one.session}" if one.session else "always"
        given = f"by {one.granted_by}, {_ago(now - one.granted_at)}"
        say_line(f"rule {short_id(one.id)}  {where}, for {one.person}; {given}")
        _show_action(one.detail)


def _show_action(detail: str) -> None:
    """Prints the whole action. No line of it can be mistaken for other output."""
    say_unwrapped(barred(visible(detail)))


def _print_json(state: str, one: OpenApproval | ApprovalRule) -> None:
    fields = {"state": state, **msgspec.structs.asdict(one)}
    say_json(msgspec.json.encode({k: v for k, v in fields.items() if k not in INTERNAL}).decode())


def _ago(seconds: float) -> str:
    return f"{rounded_duration(max(0.0, seconds))} ago"


def _run(
    runtime: Runtime, transaction: Callable[P, Work[T]], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Runs one transaction on the home's store."""

    async def run() -> T:
        async with runtime.open_store(configuration.load()) as store:
            return await store.run(transaction, *args, **kwargs)

    return anyio.run(run)
