"""`hermes audit`: shows who sent a message, which agent answered it, and what was done."""

from collections.abc import Iterator
from datetime import datetime

import anyio
import click
import msgspec

from hermes import settings as configuration
from hermes.control.audit import AuditedToolCall, AuditTrail, find_trail
from hermes.entry.cli.main import plainly
from hermes.entry.cli.runtime import Runtime
from hermes.entry.output import say_json, say_line
from hermes.text.quantity import counted

LONGEST_ARGUMENTS = 200
"""Number of characters of a call's arguments that are shown."""


@click.command()
@click.argument("name", metavar="MESSAGE|TURN")
@click.option("--json", "as_json", is_flag=True, help="Print the whole trail as a JSON object.")
@click.pass_obj
@plainly
def audit(runtime: Runtime, name: str, as_json: bool) -> None:
    """Trace a message from its sender to the answer.

    Shows the person, the agent, the model calls, the tool calls with decisions, and the deliveries.

    MESSAGE is the id of a message in the log, or the message of a platform: telegram:CHAT:ID for
    Telegram, and matrix:EVENT for Matrix.
    """

    async def read() -> AuditTrail:
        async with runtime.open_store(configuration.load()) as store:
            return await store.read(find_trail, name)

    trail = anyio.run(read)
    if as_json:
        say_json(msgspec.json.encode(trail).decode())
        return
    for line in lines_of(trail):
        say_line(line)


def lines_of(trail: AuditTrail) -> Iterator[str]:
    """Yields the trail as lines for people."""
    for message in trail.messages:
        yield f"message   {message.id} ({message.dedupe_key}), {message.state}"
        yield f"received  {_when(message.received_at)}"
        yield f"person    {message.person or 'unknown'}"
        yield f"sent by   user {message.user_id} in chat {message.chat_id} of {message.account}"
    first = trail.messages[0] if trail.messages else trail.turn
    if first is not None:
        yield f"agent     {first.agent}"
        yield f"session   {first.session}"
    yield from _turn_lines(trail)
    for call in trail.model_calls:
        said = counted(len(call.text), "character")
        wanted = counted(len(call.calls), "tool call")
        yield f"model     {_when(call.at)}  step {call.step + 1}: {said}, {wanted}"
        for tool in call.calls:
            yield from _tool_lines(tool)
    for one in trail.deliveries:
        ended = f" at {_when(one.finished_at)}" if one.finished_at else ""
        sent = f", messages {', '.join(one.receipts)}" if one.receipts else ""
        why = f": {one.error}" if one.error else ""
        where = f"chat {one.chat_id} of {one.account}"
        tries = counted(one.attempts, "attempt")
        yield f"delivery  {one.id} to {where}: {one.state}{ended}, {tries}{sent}{why}"


def _turn_lines(trail: AuditTrail) -> Iterator[str]:
    turn = trail.turn
    if turn is None:
        yield "turn      none: the message is a command, or it still waits"
        return
    took = f" in {turn.finished_at - turn.started_at:.1f} s" if turn.finished_at else ""
    steps = counted(len(trail.model_calls), "step")
    cost = "" if turn.cost is None else f", ${turn.cost:.4f}"
    tokens = f"{turn.prompt_tokens or 0} tokens in, {turn.completion_tokens or 0} out{cost}"
    yield f"turn      {turn.id}, {turn.state}{took}: {steps}, {tokens}"
    if turn.stop_requested:
        yield f"stopped   by {turn.stop_requested}"
    if turn.reason:
        yield f"reason    {turn.reason}"


def _tool_lines(tool: AuditedToolCall) -> Iterator[str]:
    arguments = tool.arguments[:LONGEST_ARGUMENTS]
    cut = "…" if len(tool.arguments) > LONGEST_ARGUMENTS else ""
    result = {None: "no result", True: "failed", False: "done"}[tool.failed]
    ended = f" at {_when(tool.finished_at)}" if tool.finished_at else ""
    yield f"tool      {tool.name} {arguments}{cut}: {result}{ended}"
    for one in tool.decisions:
        by = f" by {one.decided_by}" if one.decided_by else ""
        at = f" at {_when(one.decided_at)}" if one.decided_at else ""
        yield f"decision  {one.kind} “{one.prompt}”: {one.state}{by}{at}"


def _when(at: float) -> str:
    return datetime.fromtimestamp(at).astimezone().strftime("%Y-%m-%d %H:%M:%S")
