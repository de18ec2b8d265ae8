"""Expands braces, such as `{a,b}` and `{1..3}`."""

import re
from collections.abc import Sequence
from itertools import pairwise

from hermes.core.danger.syntax import LiteralText, NotParsed, Part, Word

MAX_WORDS = 256
"""Largest number of words into which one word may expand."""

MAX_BRACES = 50

_RANGE = re.compile(r"(-?\d{1,9})\.\.(-?\d{1,9})(?:\.\.(-?\d{1,9}))?|([A-Za-z])\.\.([A-Za-z])")
_Item = str | Part
"""Either an unquoted character, which may be a brace, or a part of the word in which braces have no
meaning, such as quoted text."""


def expand_braces(word: Word) -> list[Word]:
    """Returns the words into which the braces of a word expand."""
    if not any(map(_has_brace, word)):
        return [word]
    items: list[_Item] = []
    for part in word:
        if isinstance(part, LiteralText) and not part.quoted:
            items.extend(part.text)
        else:
            items.append(part)
    if sum(item == "{" for item in items) > MAX_BRACES:
        raise NotParsed("a word has too many braces")
    return [_joined(one) for one in _expand(items)]


def _has_brace(part: Part) -> bool:
    return isinstance(part, LiteralText) and not part.quoted and "{" in part.text


def _expand(items: Sequence[_Item]) -> list[list[_Item]]:
    for start, item in enumerate(items):
        if item == "{" and (found := _alternatives(items, start)):
            inner, end = found
            tails = _expand(items[end + 1 :])
            heads = [[*items[:start], *one] for each in inner for one in _expand(each)]
            if len(heads) * len(tails) > MAX_WORDS:
                raise NotParsed("braces expand to too many words")
            return [[*head, *tail] for head in heads for tail in tails]
    return [list(items)]


def _alternatives(items: Sequence[_Item], start: int) -> tuple[list[Sequence[_Item]], int] | None:
    """Returns the alternatives between the brace at `start` and its closing brace, and the position
    of the closing brace. Returns None if the braces have no special meaning, as in `{a}`."""
    depth = 0
    commas = [start]
    for at in range(start, len(items)):
        match items[at]:
            case "{":
                depth += 1
            case "," if depth == 1:
                commas.append(at)
            case "}":
                depth -= 1
                if depth == 0:
                    edges = [*commas, at]
                    if len(commas) > 1:
                        pairs = pairwise(edges)
                        return [items[one + 1 : other] for one, other in pairs], at
                    found = _range(items[start + 1 : at])
                    return (found, at) if found else None
            case _:
                pass
    return None


def _range(items: Sequence[_Item]) -> list[Sequence[_Item]] | None:
    text = "".join(item if isinstance(item, str) else "?" for item in items)
    found = _RANGE.fullmatch(text)
    if not found:
        return None
    if found[4]:
        first, last, step = ord(found[4]), ord(found[5]), 1
    else:
        first, last, step = int(found[1]), int(found[2]), abs(int(found[3] or 1)) or 1
    numbers = range(first, last + 1, step) if first <= last else range(first, last - 1, -step)
    if len(numbers) > MAX_WORDS:
        raise NotParsed("braces expand to too many words")
    return [list(chr(number) if found[4] else str(number)) for number in numbers]


def _joined(items: Sequence[_Item]) -> Word:
    parts: list[Part] = []
    text = ""
    for item in items:
        if isinstance(item, str):
            text += item
            continue
        if text:
            parts.append(LiteralText(text=text))
        text = ""
        parts.append(item)
    if text or not parts:
        parts.append(LiteralText(text=text))
    return tuple(parts)
