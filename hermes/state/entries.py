"""The entries of a memory file: plain text, with a line of `§` between them, and how it changes."""

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
    """Part of the one entry that is meant."""


def entries_of(text: str) -> tuple[str, ...]:
    """The entries of a file, each once."""
    entries: list[list[str]] = [[]]
    for line in text.splitlines():
        if line.strip() == SEPARATOR:
            entries.append([])
        else:
            entries[-1].append(line)
    found = ("\n".join(lines).strip() for lines in entries)
    return tuple(dict.fromkeys(entry for entry in found if entry))


def edited(entries: Sequence[str], edits: Sequence[EntryEdit]) -> tuple[str, ...]:
    """The entries after all edits; ToolFailed says which of them can't be made."""
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
        raise ToolFailed(f"To {edit.action}, give a part of the entry that is meant in 'old'.")
    if any(line.strip() == SEPARATOR for line in lines):
        raise ToolFailed(
            f"An entry can't hold a line of {SEPARATOR!r}: give an edit for each entry."
        )
    return EntryEdit(
        action=edit.action,
        content="" if edit.action == "remove" else content,
        old="" if edit.action == "add" else old,
    )


def _made(entries: Sequence[str], edits: Sequence[EntryEdit]) -> bool:
    """Whether all stands as it should already: a call is repeated after a crash."""
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
            raise ToolFailed(f"No entry holds {old!r}. {listed(entries)}")
        case _:
            several = listed([entries[index] for index in held])
            raise ToolFailed(f"{len(held)} entries hold {old!r}: give more of the one. {several}")


def listed(entries: Sequence[str]) -> str:
    return f"The entries:\n{BETWEEN.join(entries)}" if entries else "There are no entries."


def within(entries: Sequence[str], name: str, limit: int) -> str:
    """As many entries as the limit allows, and a remark where that is not all."""
    text = BETWEEN.join(entries)
    if len(text) <= limit:
        return text
    kept = text[:limit].rpartition(BETWEEN)[0] or text[:limit]
    return f"{kept}{BETWEEN}[The rest of {name} is over its limit of {limit} characters.]"
