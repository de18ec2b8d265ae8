"""`hermes sessions`: earlier conversations, listed, shown, searched, exported and deleted."""

import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import ParamSpec, TypeVar

import anyio
import click
import msgspec

from hermes import settings as configuration
from hermes.control import sessions as conversations
from hermes.control.sessions import Entry, Summary
from hermes.entry.cli.runtime import Runtime
from hermes.entry.output import confirm, say, say_json, say_line
from hermes.text.console import printable_json, printable_line
from hermes.types.errors import HermesError
from hermes.types.messages import AssistantMessage, ToolMessage, UserMessage
from hermes.types.store import Work
from hermes.types.value import Value

T = TypeVar("T")
P = ParamSpec("P")

COUNT = click.IntRange(min=1)

RESULT_LINES = 4
"""Lines of a tool's result that are shown."""
WIDEST_NAME = 24
"""Characters of a name that the list makes room for."""


class NotWritten(HermesError):
    code = "not_written"


class Line(Value):
    """One message of an export."""

    session: str
    at: str
    conversation: int
    """How often the session had been begun anew."""
    turn: str
    message: UserMessage | AssistantMessage | ToolMessage


@click.group()
def sessions() -> None:
    """Look at earlier conversations, and look after them.

    NAME is the name that `list` shows, the beginning of one, or a whole session key.
    """


@sessions.command(name="list")
@click.option(
    "--platform",
    metavar="NAME",
    help="Only those of one platform, such as cli or telegram.",
)
@click.option("--limit", type=COUNT, default=20, show_default=True, help="How many.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.pass_obj
def list_(runtime: Runtime, platform: str | None, limit: int, as_json: bool) -> None:
    """List conversations, those used last first."""
    found = _run(runtime, conversations.listed, platform, limit)
    if as_json:
        _print_json(found)
        return
    if not found:
        where = f" of {platform}" if platform else ""
        say(f"No conversations{where} yet: `hermes chat` begins one.")
        return
    kind = max(len(one.platform) for one in found)
    names = [printable_line(one.chat) for one in found]
    name = min(max(map(len, names)), WIDEST_NAME)
    for one, chat in zip(found, names, strict=True):
        used = f"{when(one.updated_at)}  {counted(one.messages):>14}"
        say_line(f"{used}  {one.platform:<{kind}}  {chat:<{name}}  {one.title}".rstrip())


@sessions.command()
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.pass_obj
def show(runtime: Runtime, name: str, as_json: bool) -> None:
    """Show what was said, as it was said."""
    if as_json:
        found = _run(runtime, conversations.find, name)
        say_json(_run(runtime, _exported, [found]), nl=False)
        return
    begun = 0
    for number, entry in enumerate(_run(runtime, conversations.entries, name)):
        if number and entry.generation != begun:
            say("\n── a new conversation")
        begun = entry.generation
        say(told(entry))


@sessions.command()
@click.argument("words", nargs=-1, required=True)
@click.option("--limit", type=COUNT, default=20, show_default=True, help="How many.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.pass_obj
def search(runtime: Runtime, words: tuple[str, ...], limit: int, as_json: bool) -> None:
    """Find messages with these words, in all conversations."""
    found = _run(runtime, conversations.searched, " ".join(words), limit)
    if as_json:
        _print_json(found)
    for one in [] if as_json else found:
        text = " ".join(one.text.split())
        say_line(f"{when(one.at)}  {one.session}  {one.role}: {text}")
    if not found:
        say("Nothing was found.", err=True)
        sys.exit(1)


@sessions.command()
@click.argument("name", required=False)
@click.option("--all", "everything", is_flag=True, help="Every conversation.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="A file, instead of stdout.")
@click.pass_obj
def export(runtime: Runtime, name: str | None, everything: bool, output: Path | None) -> None:
    """Write conversations as JSON, one message a line. Only you can read the file."""
    if (name is None) == (not everything):
        raise click.UsageError("name one conversation, or say --all")
    if everything:
        found = _run(runtime, conversations.listed, limit=sys.maxsize)
    else:
        found = [_run(runtime, conversations.find, name or "")]
    text = _run(runtime, _exported, found)
    if output is None:
        say_json(text, nl=False)
        return
    try:
        # A pipe is written to and not replaced by a file, and no folder is created.
        if (output.exists() and not output.is_file()) or not output.parent.exists():
            output.write_text(text, "utf-8")
        else:
            runtime.write_private(output, text)
    except OSError as error:
        raise NotWritten(f"{output} can't be written: {error.strerror}") from error
    talks = f"{len(found)} conversation{'s' * (len(found) != 1)}"
    verb = "is" if (lines := text.count("\n")) == 1 else "are"
    say(f"{counted(lines)} of {talks} {verb} in {output}", err=True)


@sessions.command()
@click.argument("name")
@click.option("-y", "--yes", is_flag=True, help="Don't ask.")
@click.pass_obj
def delete(runtime: Runtime, name: str, yes: bool) -> None:
    """Delete a conversation and all that was said in it."""
    found = _run(runtime, conversations.find, name)
    if not yes:
        question = f"Delete {found.key} with {counted(found.messages)}? This can't be undone."
        if not confirm(printable_line(question)):
            raise click.Abort
    _run(runtime, conversations.delete, found.key)
    runtime.delete_session_files(configuration.load(), found.key)
    say(f"deleted {found.key}")


@sessions.command()
@click.argument("name")
@click.pass_obj
def restore(runtime: Runtime, name: str) -> None:
    """Put back what summaries stand for; the model then reads it all again."""
    count = _run(runtime, conversations.restore, name)
    say(f"restored: {count} summaries removed" if count else "there was no summary")


def told(entry: Entry) -> str:
    """One message for people."""
    match entry.message:
        case UserMessage(sender=sender) as message:
            return f"\n[{when(entry.at)}] {sender or 'you'}: {message.described}"
        case AssistantMessage(text=text, calls=calls):
            asked = [f"  · {call.name} {call.arguments}" for call in calls]
            return "\n".join([f"[{when(entry.at)}] hermes: {text}"] * bool(text) + asked)
        case ToolMessage(text=text):
            lines = text.splitlines()
            shown = [f"    {line}" for line in lines[:RESULT_LINES]]
            if len(lines) > RESULT_LINES:
                shown.append(f"    … {len(lines) - RESULT_LINES} more lines")
            return "\n".join(shown)


def counted(messages: int) -> str:
    return f"{messages} message{'s' * (messages != 1)}"


def when(instant: float) -> str:
    return f"{datetime.fromtimestamp(instant).astimezone():%Y-%m-%d %H:%M}"


def _exported(found: Sequence[Summary]) -> Work[str]:
    lines: list[str] = []
    for one in found:
        for entry in (yield from conversations.entries(one.key)):
            line = Line(
                session=one.key,
                at=datetime.fromtimestamp(entry.at).astimezone().isoformat(),
                conversation=entry.generation,
                turn=entry.turn,
                message=entry.message,
            )
            lines.append(f"{printable_json(msgspec.json.encode(line).decode())}\n")
    return "".join(lines)


def _print_json(found: Sequence[Value]) -> None:
    for one in found:
        say_json(msgspec.json.encode(one).decode())


def _run(
    runtime: Runtime, transaction: Callable[P, Work[T]], *args: P.args, **kwargs: P.kwargs
) -> T:
    """The result of one transaction on the home's store."""
    settings = configuration.load()

    async def run() -> T:
        async with runtime.open_store(settings) as store:
            return await store.run(transaction, *args, **kwargs)

    return anyio.run(run)
