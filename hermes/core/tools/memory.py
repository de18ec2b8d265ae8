"""The tool that writes the agent's notes."""

from typing import Annotated, Literal

import msgspec

from hermes.state.entries import EntryEdit
from hermes.state.memory import Memory, Topic
from hermes.text.quantity import counted
from hermes.text.quote import remove_invisible
from hermes.text.redact import redact
from hermes.types.errors import ToolFailed
from hermes.types.tools import Tool, ToolContext
from hermes.types.turns import Turn

DESCRIPTION = (
    "Keep notes for later conversations: lasting facts, preferences, corrections, decisions."
    " `user` is about the person, `memory` all else. No secrets or passwords, nothing that is"
    " soon out of date. Short entries; all edits of a call are made, or none."
)


class NoteEdit(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    action: Literal["add", "replace", "remove"]
    content: Annotated[str, msgspec.Meta(description="The entry to add or put in place.")] = ""
    old: Annotated[str, msgspec.Meta(description="Part of the one entry to replace or remove.")] = (
        ""
    )


class Notes(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    target: Topic
    edits: list[NoteEdit]


def memory_tool(memory: Memory) -> Tool[Notes]:
    async def run(context: ToolContext, arguments: Notes) -> str:
        return await keep(memory, context.turn, arguments)

    return Tool(
        name="memory",
        description=DESCRIPTION,
        arguments=Notes,
        handler=run,
        repeatable=True,
        toolset="memory",
    )


async def keep(memory: Memory, turn: Turn, notes: Notes) -> str:
    """Writes the notes for the turn's audience, and returns a text that says how full the file of
    notes is."""
    edits = [
        EntryEdit(action=edit.action, content=_clean(edit.content), old=remove_invisible(edit.old))
        for edit in notes.edits
    ]
    kept = await memory.change(turn, notes.target, edits)
    entries = counted(kept.entries, "entry")
    return f"{kept.file} holds {entries}: {kept.used} of {kept.limit} characters."


def _clean(content: str) -> str:
    text = remove_invisible(content)
    if redact(text) != text:
        raise ToolFailed(
            "Nothing was stored: an entry seems to contain a password or key. Notes are sent with"
            " every conversation. Write down where the secret is, not the secret itself."
        )
    return text
