"""Exports conversations: one JSON object for each message, or Markdown."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Literal

import msgspec

from hermes.control import sessions as conversations
from hermes.control.sessions import Entry, Summary
from hermes.text.console import printable, printable_json
from hermes.types.messages import AssistantMessage, ToolMessage, UserMessage
from hermes.types.store import Work
from hermes.types.value import Value

ExportFormat = Literal["json", "markdown"]


class Line(Value):
    """One message of an export."""

    session: str
    at: str
    conversation: int
    """The number of the conversation in its session. The first conversation has the number 0."""
    turn: str
    message: UserMessage | AssistantMessage | ToolMessage


def exported(found: Sequence[Summary], form: ExportFormat) -> Work[str]:
    """Returns the conversations as text."""
    written: Callable[[Summary, Sequence[Entry]], str] = as_json if form == "json" else as_markdown
    parts: list[str] = []
    for one in found:
        parts.append(written(one, (yield from conversations.entries_of(one))))
    return ("" if form == "json" else "\n").join(parts)


def as_json(one: Summary, entries: Sequence[Entry]) -> str:
    """Returns one JSON object per line. No character of a message is lost, because unsafe
    characters are escaped."""
    lines = [
        Line(
            session=one.key,
            at=_instant(entry.at).isoformat(),
            conversation=entry.generation,
            turn=entry.turn,
            message=entry.message,
        )
        for entry in entries
    ]
    return "".join(f"{printable_json(msgspec.json.encode(line).decode())}\n" for line in lines)


def as_markdown(one: Summary, entries: Sequence[Entry]) -> str:
    """Returns Markdown with a heading for the conversation and for each message. Tools and results
    are quoted."""
    begun = f"{_instant(one.created_at):%Y-%m-%d %H:%M}"
    parts = [f"# {_one_line(one.title) or one.id}", f"{one.platform} · {one.key} · {begun}"]
    for entry in entries:
        parts += _sections(entry)
    return printable("\n\n".join(parts)) + "\n"


def _sections(entry: Entry) -> list[str]:
    when = f"{_instant(entry.at):%Y-%m-%d %H:%M}"
    match entry.message:
        case UserMessage(sender=sender) as message:
            return [f"## {_one_line(sender or 'You')}, {when}", message.described]
        case AssistantMessage(text=text, calls=calls):
            said = [text] if text.strip() else []
            used = [f"Tool `{call.name}`:\n\n{fenced(call.arguments, 'json')}" for call in calls]
            return [f"## Hermes, {when}", *said, *used]
        case ToolMessage(text=text):
            return [f"Result:\n\n{fenced(text)}"]


def fenced(text: str, language: str = "") -> str:
    """Returns a code block whose fence is longer than any run of backticks in the text."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text}\n{fence}"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _instant(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds).astimezone()
