"""`hermes send`: sends a message to a chat, through the gateway that serves the chat's account."""

import platform
import sys
from collections.abc import Sequence
from pathlib import Path

import anyio
import click
import msgspec
from msgspec.structs import replace

from hermes import settings as configuration
from hermes.control.directory import ListedChat
from hermes.control.messenger import ChatMessenger, PendingSend, SendOrder
from hermes.control.routing import DEFAULT_AGENT
from hermes.entry.cli.main import plainly
from hermes.entry.cli.runtime import Runtime
from hermes.entry.output import say, say_json, say_line
from hermes.settings import Settings
from hermes.text.console import printable_line
from hermes.types.errors import Rejected
from hermes.types.identity import new_id
from hermes.types.sending import OutgoingFile, SendResult

STDIN = "-"
SEND_WAIT_SECONDS = 30.0
WIDEST_TARGET = 40
"""Width of the column for targets, in characters."""


@click.command()
@click.argument("target", required=False)
@click.argument("text", required=False)
@click.option(
    "--file",
    "files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file to send. Can be used several times.",
)
@click.option("--list", "listing", is_flag=True, help="List the chats that can be written to.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0),
    default=SEND_WAIT_SECONDS,
    show_default=True,
    help="How many seconds to wait for the delivery.",
)
@click.option("--force", is_flag=True, help="Try a chat that has refused earlier messages.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
@click.pass_obj
@plainly
def send(
    runtime: Runtime,
    target: str | None,
    text: str | None,
    files: tuple[Path, ...],
    listing: bool,
    timeout: float,
    force: bool,
    as_json: bool,
) -> None:
    """Send a message to a chat.

    TARGET is the name of a platform, which means its home chat, or `platform:chat` with the id or
    name of a chat. Separate several targets by commas. If TEXT is `-`, it is read from standard
    input. The gateway that serves the platform sends the message. If no such gateway runs, the
    message waits until one is started.

    The exit code is 0 if the message is delivered or waits, and 1 if it or a file is refused.

    \b
    hermes send telegram "The backup is done."
    hermes send telegram:-1001234567890:17 --file report.pdf
    make 2>&1 | hermes send "telegram:Build log" -
    """
    settings = configuration.load()
    if listing:
        _say_chats(anyio.run(_listed, runtime, settings), as_json=as_json)
        return
    if target is None:
        raise click.UsageError("name a target, or use --list")
    order = SendOrder(
        key=new_id(),
        to=target,
        text=_read_stdin() if text == STDIN else text or "",
        files=tuple(map(_read_file, files)),
        agent=DEFAULT_AGENT,
        mirror=True,
        again=force,
    )
    results = anyio.run(_send, runtime, settings, order, timeout)
    for one in results:
        if as_json:
            say_json(msgspec.json.encode(msgspec.structs.asdict(one)).decode())
        else:
            say(_told(one), err=one.state == "refused")
    if any(one.state == "refused" for one in results):
        raise SystemExit(1)


async def _listed(runtime: Runtime, settings: Settings) -> list[ListedChat]:
    async with runtime.open_messenger(settings) as messenger:
        return await messenger.directory.listed()


async def _send(
    runtime: Runtime, settings: Settings, order: SendOrder, timeout: float
) -> list[SendResult]:
    async with runtime.open_messenger(settings) as messenger:
        pending = await messenger.send(order)
        unserved = await _unserved(runtime, settings, messenger, pending)
        served = [one for one in pending if one.target.account not in unserved]
        if served and sys.stderr.isatty():
            say("Waiting for the delivery …", err=True)
        await messenger.results(served, timeout)
        found = await messenger.results(pending, 0.0)
    return [
        replace(one, reason=_why_queued(sent.target.account, unserved))
        if one.state == "queued"
        else one
        for one, sent in zip(found, pending, strict=True)
    ]


async def _unserved(
    runtime: Runtime, settings: Settings, messenger: ChatMessenger, pending: Sequence[PendingSend]
) -> set[str]:
    """Returns the accounts that no running gateway serves."""
    alive = {node.id for node in await runtime.store_nodes(settings) if node.alive}
    pids = {one.pid for one in runtime.running_gateways(settings.home.run)}
    found: set[str] = set()
    for account in {one.target.account for one in pending}:
        holder = await messenger.holder(account)
        here = holder is not None and holder.host == platform.node() and holder.pid in pids
        if holder is None or not (here or holder.id in alive):
            found.add(account)
    return found


def _why_queued(account: str, unserved: set[str]) -> str:
    if account in unserved:
        return f"no gateway serves {account}: `hermes gateway` starts one, which sends the message"
    return "the gateway has not sent it yet, and will try again"


def _told(result: SendResult) -> str:
    match result.state:
        case "delivered":
            return f"delivered to {result.target}"
        case "queued":
            return f"queued for {result.target}: {result.reason}"
        case "refused":
            return f"refused by {result.target}: {result.reason}"


def _say_chats(found: Sequence[ListedChat], *, as_json: bool) -> None:
    if as_json:
        for one in found:
            say_json(msgspec.json.encode(msgspec.structs.asdict(one)).decode())
        return
    if not found:
        say("No chat is known yet: write to the bot once, or name a chat by its id.")
        return
    targets = [printable_line(one.target) for one in found]
    width = min(max(map(len, targets)), WIDEST_TARGET)
    for one, target in zip(found, targets, strict=True):
        remarks = ", ".join(
            filter(None, ("home" * one.home, f"refuses messages: {one.gone}" if one.gone else ""))
        )
        line = f"{target:<{width}}  {one.kind:<7}  {one.name}"
        say_line(f"{line}  ({remarks})" if remarks else line.rstrip())


def _read_file(path: Path) -> OutgoingFile:
    try:
        return OutgoingFile(name=path.name, data=path.read_bytes())
    except OSError as error:
        raise Rejected(f"{path} can't be read: {error.strerror}") from error


def _read_stdin() -> str:
    return sys.stdin.buffer.read().decode("utf-8", "replace").rstrip("\n")
