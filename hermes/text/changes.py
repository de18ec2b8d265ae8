"""Finds and replaces a passage of a text, even if its white space differs, and shows the diff."""

import itertools
import os.path
from collections.abc import Iterator
from difflib import SequenceMatcher

from hermes.text.quantity import counted
from hermes.types.value import Value

MOST_TOLERANT_LINES = 500
"""Maximum number of lines of a passage that is also found if its white space differs from the text.
A longer passage must match exactly."""
CONTEXT_LINES = 2
"""Number of context lines that a diff shows around a change."""
MOST_DIFF_LINES = 200
"""Maximum number of lines that are compared. Equal lines at the beginning and at the end do not
count. The time for the comparison grows with the cube of this number."""
DIFF_WIDTH = 200
LONGEST_DIFF = 4000
"""Maximum number of characters of a diff."""
SHORT_DIFF_LINES, SHORT_DIFF_WIDTH = 16, 120
"""Maximum number of lines of a short diff (first number), and maximum number of characters of each
of its lines (second number)."""


class Replacement(Value):
    """A passage of a text, and the text that replaces it."""

    start: int
    end: int
    new: str
    exact: bool = True


def find_replacements(text: str, old: str, new: str) -> list[Replacement]:
    """Returns the occurrences of `old`. If there are none, returns the whole lines that differ from
    `old` only in white space.

    The replacement gets the line endings of the text and the indentation of the replaced lines.
    """
    newline = "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"
    old, new = old.replace("\r\n", "\n"), new.replace("\r\n", "\n")
    exact = list(_exact(text, old.replace("\n", newline), new.replace("\n", newline)))
    return exact or list(_similar_lines(text, old, new, newline))


def apply_replacements(text: str, found: list[Replacement]) -> str:
    pieces, last = [], 0
    for one in found:
        pieces += [text[last : one.start], one.new]
        last = one.end
    return "".join([*pieces, text[last:]])


def diff(before: str, after: str) -> str:
    """Returns a unified diff. If it has more than LONGEST_DIFF characters, its end is cut off."""
    old, new, first = _changed_part(before.split("\n"), after.split("\n"))
    if max(len(old), len(new)) > MOST_DIFF_LINES:
        return "[the changes are too far apart to be shown]"
    shown, room = [], LONGEST_DIFF
    for line in _hunks(old, new, first):
        cut = line if len(line) <= DIFF_WIDTH else line[:DIFF_WIDTH] + "…"
        room -= len(cut) + 1
        if room < 0:
            shown.append("[more changes than are shown]")
            break
        shown.append(cut)
    return "\n".join(shown)


def short_diff(before: str, after: str) -> str:
    """Returns the first lines of a unified diff; empty if no line has changed."""
    old, new, first = _changed_part(_lines(before), _lines(after))
    if old == new:
        return ""
    if max(len(old), len(new)) <= MOST_DIFF_LINES:
        lines = list(_hunks(old, new, first))
    else:
        removed, added = [f"-{line}" for line in old], [f"+{line}" for line in new]
        lines = [_heading(first, len(old), first, len(new)), *removed, *added]
    shown = [
        line if len(line) <= SHORT_DIFF_WIDTH else line[: SHORT_DIFF_WIDTH - 1] + "…"
        for line in lines[:SHORT_DIFF_LINES]
    ]
    more = len(lines) - len(shown)
    return "\n".join([*shown, f"… {counted(more, 'more line')}"] if more else shown)


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def _changed_part(old: list[str], new: list[str]) -> tuple[list[str], list[str], int]:
    """Returns the changed part of the old text, the changed part of the new text, and the number of
    lines before these parts. The parts include context lines."""
    top, below = _equal_lines(old, new), _equal_lines(old[::-1], new[::-1])
    below = min(below, len(old) - top, len(new) - top)
    first = max(top - CONTEXT_LINES, 0)
    left = max(below - CONTEXT_LINES, 0)
    return old[first : len(old) - left], new[first : len(new) - left], first


def _exact(text: str, old: str, new: str) -> Iterator[Replacement]:
    start = text.find(old)
    while start >= 0:
        end = start + len(old)
        yield Replacement(start=start, end=end, new=new)
        start = text.find(old, end)


def _similar_lines(text: str, old: str, new: str, newline: str) -> Iterator[Replacement]:
    was, wanted = _dedented(old.removesuffix("\n").split("\n"))
    if not any(wanted) or len(wanted) > MOST_TOLERANT_LINES:
        return
    lines = text.split("\n")
    starts = list(itertools.accumulate((len(line) + 1 for line in lines), initial=0))
    bare = [line.rstrip() for line in lines]
    number = 0
    while (behind := number + len(wanted)) <= len(lines):
        now = _indentation(bare, number, wanted)
        if now is None:
            number += 1
            continue
        if old.endswith("\n"):
            end = min(starts[behind], len(text))
        else:
            end = starts[behind] - 1 - lines[behind - 1].endswith("\r")
        moved = newline.join(_reindented(line, was, now) for line in new.split("\n"))
        yield Replacement(start=starts[number], end=end, new=moved, exact=False)
        number = behind


def _dedented(lines: list[str]) -> tuple[str, list[str]]:
    """Returns the common indentation, and the lines without it and without trailing white space."""
    indents = [line[: len(line) - len(line.lstrip())] for line in lines if line.strip()]
    shared = os.path.commonprefix(indents)  # noqa: RUF071  # used on texts, not on paths
    return shared, [line[len(shared) :].rstrip() for line in lines]


def _indentation(lines: list[str], first: int, wanted: list[str]) -> str | None:
    """Returns the indentation that the wanted lines have in `lines`, starting at index `first`;
    None if the lines at that index differ from the wanted lines."""
    place = next(place for place, line in enumerate(wanted) if line)
    line = lines[first + place]
    indent = line[: len(line) - len(wanted[place])]
    if indent.strip() or not line.endswith(wanted[place]):
        return None
    same = all(
        lines[first + place] == (indent + one if one else "") for place, one in enumerate(wanted)
    )
    return indent if same else None


def _reindented(line: str, was: str, now: str) -> str:
    """Returns a line of the replacement with the indentation of the file. `now` is the indentation
    of the passage in the file, and `was` is its indentation in the request to replace it."""
    if not line.strip():
        return line
    if now.startswith(was):
        return now[len(was) :] + line
    if was.startswith(now):
        return line.removeprefix(was[len(now) :])
    return now + line.removeprefix(was)


def _equal_lines(old: list[str], new: list[str]) -> int:
    """Returns the number of equal lines at the beginning of both texts."""
    pairs = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False))
    return sum(1 for _ in pairs)


def _heading(old_from: int, old_count: int, new_from: int, new_count: int) -> str:
    return f"@@ -{old_from + 1},{old_count} +{new_from + 1},{new_count} @@"


def _hunks(old: list[str], new: list[str], first: int) -> Iterator[str]:
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    for group in matcher.get_grouped_opcodes(CONTEXT_LINES):
        (_, old_from, _, new_from, _), (_, _, old_to, _, new_to) = group[0], group[-1]
        yield _heading(first + old_from, old_to - old_from, first + new_from, new_to - new_from)
        for kind, i, j, k, m in group:
            if kind == "equal":
                yield from (f" {line}" for line in old[i:j])
            else:
                yield from (f"-{line}" for line in old[i:j])
                yield from (f"+{line}" for line in new[k:m])
