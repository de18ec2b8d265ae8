"""Replacing a piece of a text: where it stands, also with other spaces, and what changed."""

import itertools
import os.path
from collections.abc import Iterator
from difflib import SequenceMatcher

from hermes.types.value import Value

MOST_TOLERANT_LINES = 500
"""Lines of an old text that may stand with other spaces."""
CONTEXT_LINES = 2
"""Lines that are shown around a change."""
MOST_DIFF_LINES = 200
"""Lines from the first to the last change that are shown: comparing takes their cube in time."""
DIFF_WIDTH = 200
LONGEST_DIFF = 4000
"""Characters of a diff."""


class Replacement(Value):
    """A piece of a text, and what takes its place."""

    start: int
    end: int
    new: str
    exact: bool = True


def find_replacements(text: str, old: str, new: str) -> list[Replacement]:
    """Where the old text stands: exactly, or else at whole lines that differ in their spaces.

    What takes its place has the line ends of the text, and the indentation of the lines.
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
    """What changed, in the unified form, as far as it is short."""
    old, new = before.split("\n"), after.split("\n")
    top, below = _equal_lines(old, new), _equal_lines(old[::-1], new[::-1])
    below = min(below, len(old) - top, len(new) - top)
    first = max(top - CONTEXT_LINES, 0)
    old = old[first : len(old) - max(below - CONTEXT_LINES, 0)]
    new = new[first : len(new) - max(below - CONTEXT_LINES, 0)]
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
    """The indentation that the lines share, and the lines without it and without spaces behind."""
    indents = [line[: len(line) - len(line.lstrip())] for line in lines if line.strip()]
    shared = os.path.commonprefix(indents)  # noqa: RUF071  # of texts, not of paths
    return shared, [line[len(shared) :].rstrip() for line in lines]


def _indentation(lines: list[str], first: int, wanted: list[str]) -> str | None:
    """What stands before all that is wanted, from the first line on; None where it does not."""
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
    """The line as far to the right as the lines whose indentation was that and is this now."""
    if not line.strip():
        return line
    if now.startswith(was):
        return now[len(was) :] + line
    if was.startswith(now):
        return line.removeprefix(was[len(now) :])
    return now + line.removeprefix(was)


def _equal_lines(old: list[str], new: list[str]) -> int:
    """How many lines at the beginning are the same."""
    pairs = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False))
    return sum(1 for _ in pairs)


def _hunks(old: list[str], new: list[str], first: int) -> Iterator[str]:
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    for group in matcher.get_grouped_opcodes(CONTEXT_LINES):
        (_, old_from, _, new_from, _), (_, _, old_to, _, new_to) = group[0], group[-1]
        old_span = f"{first + old_from + 1},{old_to - old_from}"
        new_span = f"{first + new_from + 1},{new_to - new_from}"
        yield f"@@ -{old_span} +{new_span} @@"
        for kind, i, j, k, m in group:
            if kind == "equal":
                yield from (f" {line}" for line in old[i:j])
            else:
                yield from (f"-{line}" for line in old[i:j])
                yield from (f"+{line}" for line in new[k:m])
