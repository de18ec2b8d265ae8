"""`hermes sessions`: lists, shows, searches, renames, exports and deletes conversations."""

import sys
import time
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
from hermes.entry.cli.main import Commands, plainly
from hermes.entry.cli.runtime import Runtime
from hermes.entry.cli.session_export import ExportFormat, exported
from hermes.entry.output import (
    confirm,
    say,
    say_json,
    say_line,
    say_unwrapped,
    terminal_columns,
)
from hermes.text.console import printable_line
from hermes.text.quantity import counted
from hermes.text.wrapping import hang
from hermes.types.errors import HermesError
from hermes.types.messages import AssistantMessage, ToolMessage, UserMessage
from hermes.types.store import Work
from hermes.types.value import Value

T = TypeVar("T")
P = ParamSpec("P")

COUNT = click.IntRange(min=1)

RESULT_LINES = 4
"""Number of lines of a tool's result that are shown."""
DAY_SECONDS = 24 * 3600.0
MARKDOWN_SUFFIXES = (".md", ".markdown")
WIDEST_NAME = 24
"""Width of the column for names, in characters."""


class NotWritten(HermesError):
    code = "not_written"


@click.command(cls=Commands, default="list")
def sessions() -> None:
    """Show and manage earlier conversations. Without a command: `hermes sessions list`.

    NAME is a number or an id that `list` shows, the name of a session or the beginning of it, or a
    whole session key.
    """


@sessions.command(name="list")
@click.option(
    "--platform",
    metavar="NAME",
    help="Only conversations of one platform, such as cli or telegram.",
)
@click.option(
    "--limit", type=COUNT, default=20, show_default=True, help="Maximum number of conversations."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
@click.pass_obj
def list_(runtime: Runtime, platform: str | None, limit: int, as_json: bool) -> None:
    """List conversations, the most recently used first."""
    found = _run(runtime, conversations.listed, platform, limit)
    if as_json:
        _print_json(found)
        return
    if not found:
        where = f" of {platform}" if platform else ""
        say(f"No conversations{where} yet: `hermes chat` begins one.")
        return
    for row in rows(found, terminal_columns()):
        say(row)


def rows(found: Sequence[Summary], columns: int | None) -> list[str]:
    """Returns the conversations as lines for people. `columns` is the width of the terminal; None
    for lines of any length."""
    kind = max(len(one.platform) for one in found)
    ids = [printable_line(one.id) for one in found]
    width = min(max(map(len, ids)), WIDEST_NAME)
    digits = max(len(str(one.number)) for one in found)
    shown = []
    for one, id in zip(found, ids, strict=True):
        used = f"{when(one.updated_at)}  {counted(one.messages, 'message'):>14}"
        name = f"{one.number:>{digits}}  {id:<{width}}  "
        title = printable_line(f"{used}  {one.platform:<{kind}}  {one.title}").rstrip()
        shown.append(hang(name, title, columns))
    return shown


@sessions.command()
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
@click.pass_obj
def show(runtime: Runtime, name: str, as_json: bool) -> None:
    """Show the messages of a conversation."""
    if as_json:
        found = _run(runtime, conversations.find, name)
        say_json(_run(runtime, exported, [found], "json"), nl=False)
        return
    for entry in _run(runtime, conversations.entries, name):
        say_unwrapped(told(entry))


@sessions.command()
@click.argument("words", nargs=-1, required=True)
@click.option(
    "--limit", type=COUNT, default=20, show_default=True, help="Maximum number of messages."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
@click.pass_obj
def search(runtime: Runtime, words: tuple[str, ...], limit: int, as_json: bool) -> None:
    """Find messages with these words, in all conversations."""
    found = _run(runtime, conversations.searched, " ".join(words), limit)
    if as_json:
        _print_json(found)
    elif found:
        for one, id in zip(found, _run(runtime, conversations.ids_of, found), strict=True):
            text = " ".join(one.text.split())
            say_line(f"{when(one.at)}  {id}  {one.role}: {text}")
    if not found:
        say("Nothing was found.", err=True)
        sys.exit(1)


@sessions.command()
@click.argument("name", required=False)
@click.option("--all", "everything", is_flag=True, help="Export every conversation.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Write to this file instead of stdout."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", "markdown"]),
    help="json or markdown; by default, the name of the file decides.",
)
@click.pass_obj
def export(
    runtime: Runtime,
    name: str | None,
    everything: bool,
    output: Path | None,
    form: ExportFormat | None,
) -> None:
    """Write conversations as JSON, one message a line, or as Markdown.

    Only you can read the file. A file whose name ends in .md is Markdown.
    """
    if (name is None) == (not everything):
        raise click.UsageError("name one conversation, or use --all")
    if form is None:
        form = "markdown" if output and output.suffix in MARKDOWN_SUFFIXES else "json"
    if everything:
        found = _run(runtime, conversations.listed, limit=sys.maxsize)
    else:
        found = [_run(runtime, conversations.find, name or "")]
    text = _run(runtime, exported, found, form)
    if output is None:
        (say_json if form == "json" else say_unwrapped)(text, nl=False)
        return
    try:
        # If the output is a pipe or a device, the text is written to it. Only a regular file is
        # replaced.
        if (output.exists() and not output.is_file()) or not output.parent.exists():
            output.write_text(text, "utf-8")
        else:
            runtime.write_private(output, text)
    except OSError as error:
        raise NotWritten(f"{output} can't be written: {error.strerror}") from error
    talks = f"{len(found)} conversation{'s' * (len(found) != 1)}"
    messages = sum(one.messages for one in found)
    verb = "is" if messages == 1 else "are"
    say(f"{counted(messages, 'message')} of {talks} {verb} in {output}", err=True)


@sessions.command()
@click.argument("name")
@click.argument("title", nargs=-1, required=True)
@click.pass_obj
@plainly
def rename(runtime: Runtime, name: str, title: tuple[str, ...]) -> None:
    """Give a conversation another title."""
    found = _run(runtime, conversations.rename, name, " ".join(title))
    say_line(f"{found.id} is now {found.title!r}")


@sessions.command()
@click.argument("name")
@click.option("-y", "--yes", is_flag=True, help="Delete without asking first.")
@click.pass_obj
def delete(runtime: Runtime, name: str, yes: bool) -> None:
    """Delete a conversation and all its messages."""
    found = _run(runtime, conversations.find, name)
    if not yes:
        question = f"Delete {_described(found)}? This can't be undone."
        if not confirm(printable_line(question)):
            raise click.Abort
    _delete(runtime, found)
    say(f"deleted {found.key if found.current else found.id}")


def _delete(runtime: Runtime, found: Summary) -> None:
    # The numbers in the list of sessions change with every message, so the conversation is named by
    # its key and its generation.
    _run(runtime, conversations.delete, f"{found.key}.{found.generation + 1}")
    if not _run(runtime, conversations.is_known, found.key):
        runtime.delete_session_files(configuration.load(), found.key)


def _described(one: Summary) -> str:
    title = f" ({one.title})" if one.title else ""
    return f"{one.id}{title} with {counted(one.messages, 'message')}"


@sessions.command()
@click.option(
    "--older-than",
    "days",
    type=click.FloatRange(min=0),
    default=90,
    show_default=True,
    metavar="DAYS",
    help="Delete conversations that were last used more than this many days ago.",
)
@click.option("--platform", metavar="NAME", help="Only conversations of one platform.")
@click.option("--dry-run", is_flag=True, help="Only list the conversations, and delete nothing.")
@click.option("-y", "--yes", is_flag=True, help="Delete without asking first.")
@click.pass_obj
def prune(runtime: Runtime, days: float, platform: str | None, dry_run: bool, yes: bool) -> None:
    """Delete conversations that were not used for a long time. Sessions with a running turn are
    kept."""
    before = time.time() - days * DAY_SECONDS
    found = _run(runtime, conversations.listed, platform, limit=sys.maxsize)
    old = [one for one in found if one.updated_at < before]
    if not old:
        say(f"No conversation is older than {days:g} days.")
        return
    for one in old:
        say_line(f"{when(one.updated_at)}  {_described(one)}")
    if dry_run:
        return
    if not yes and not confirm(f"Delete these {len(old)}? This can't be undone."):
        raise click.Abort
    deleted = 0
    for one in old:
        try:
            _delete(runtime, one)
            deleted += 1
        except conversations.SessionBusy as error:
            say(f"kept: {error}", err=True)
    say(f"deleted {counted(deleted, 'conversation')}")


@sessions.command()
@click.argument("name")
@click.pass_obj
def restore(runtime: Runtime, name: str) -> None:
    """Remove the summaries of a conversation; the model then reads all messages again."""
    count = _run(runtime, conversations.restore, name)
    say(f"restored: {counted(count, 'summary')} removed" if count else "there was no summary")


def told(entry: Entry) -> str:
    """Formats one message for people."""
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
                shown.append(f"    … {counted(len(lines) - RESULT_LINES, 'more line')}")
            return "\n".join(shown)


def when(instant: float) -> str:
    return f"{datetime.fromtimestamp(instant).astimezone():%Y-%m-%d %H:%M}"


def _print_json(found: Sequence[Value]) -> None:
    for one in found:
        say_json(msgspec.json.encode(one).decode())


def _run(
    runtime: Runtime, transaction: Callable[P, Work[T]], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Runs one transaction on the home's store."""
    settings = configuration.load()

    async def run() -> T:
        async with runtime.open_store(settings) as store:
            return await store.run(transaction, *args, **kwargs)

    return anyio.run(run)
