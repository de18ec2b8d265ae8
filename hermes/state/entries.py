"""Parses and edits the entries of a memory file: plain text, with a line of `§` between the
entries."""

from collections.abc import Sequence
from typing import Literal

from hermes.types.errors import ToolFailed
from hermes.types.value import Value

SEPARATOR = "§"
BETWEEN = f"\n{SEPARATOR}\n"


class EntryEdit(Value):
    action: Literal["add", "replace", "remove"]
    content: str = ""
    old: str = ""
    """Text that exactly one entry contains. It identifies the entry to replace or remove."""


def entries_of(text: str) -> tuple[str, ...]:
    """Returns the entries of a file, without duplicates."""
    entries: list[list[str]] = [[]]
    for line in text.splitlines():
        if line.strip() == SEPARATOR:
            entries.append([])
        else:
            entries[-1].append(line)
    found = ("\n".join(lines).strip() for lines in entries)
    return tuple(dict.fromkeys(entry for entry in found if entry))


def edited(entries: Sequence[str], edits: Sequence[EntryEdit]) -> tuple[str, ...]:
    """Returns the entries after all edits. If an edit can't be made, raises a ToolFailed that names
    the edit."""
    if not edits:
        raise ToolFailed("Give at least one edit.")
    edits = [_checked(edit) for edit in edits]
    if _made(entries, edits):
        return tuple(entries)
    result = list(entries)
    for edit in edits:
        if edit.action == "add":
            result.append(edit.content)
        else:
            place = _place(result, edit.old)
            result[place : place + 1] = [edit.content] if edit.action == "replace" else []
        result = list(dict.fromkeys(result))
    return tuple(result)


def _checked(edit: EntryEdit) -> EntryEdit:
    lines = edit.content.splitlines()
    content, old = "\n".join(lines).strip(), edit.old.strip()
    if edit.action != "remove" and not content:
        raise ToolFailed(f"To {edit.action}, give the entry's text in 'content'.")
    if edit.action != "add" and not old:
        raise ToolFailed(f"To {edit.action} an entry, give a part of its text in 'old'.")
    if any(line.strip() == SEPARATOR for line in lines):
        raise ToolFailed(
            f"{SEPARATOR!r} on a line of its own separates entries: give one edit for each entry."
        )
    return EntryEdit(
        action=edit.action,
        content="" if edit.action == "remove" else content,
        old="" if edit.action == "add" else old,
    )


def _made(entries: Sequence[str], edits: Sequence[EntryEdit]) -> bool:
    """Returns whether all edits are already in the file. This happens if a tool call is repeated
    after a crash."""
    wanted = {edit.content for edit in edits if edit.content}
    others = [entry for entry in entries if entry not in wanted]
    gone = not any(edit.old in entry for edit in edits if edit.old for entry in others)
    return bool(wanted) and wanted <= set(entries) and gone


def _place(entries: Sequence[str], old: str) -> int:
    held = [index for index, entry in enumerate(entries) if old in entry]
    match held:
        case [place]:
            return place
        case []:
            raise ToolFailed(f"No entry contains {old!r}. {listed(entries)}")
        case _:
            several = listed([entries[index] for index in held])
            raise ToolFailed(
                f"{len(held)} entries contain {old!r}: give a longer part of the entry. {several}"
            )


def listed(entries: Sequence[str]) -> str:
    return f"The entries:\n{BETWEEN.join(entries)}" if entries else "There are no entries."


def within(entries: Sequence[str], name: str, limit: int) -> str:
    """Returns as many entries as fit into `limit` characters, with a note if some are left out."""
    text = BETWEEN.join(entries)
    if len(text) <= limit:
        return text
    kept = text[:limit].rpartition(BETWEEN)[0] or text[:limit]
    return f"{kept}{BETWEEN}[The rest of {name} is over its limit of {limit} characters.]"
