"""Splits a Markdown tree into parts whose rendered text fits into a platform's messages."""

import re
import unicodedata
from collections.abc import Callable, Iterator

from msgspec.structs import replace

from hermes.text.dialect import Plain
from hermes.text.slices import VisibleText, drop_first, take_first, visible
from hermes.types import nodes

Render = Callable[[nodes.Document], str]
"""Renders a tree as the text that is sent to a platform."""
Measure = Callable[[str], int]
"""Returns the length of a rendered text in the units of a platform's limit."""

_SENTENCE = re.compile(r"(?<=[.!?…])(?=\s)|(?<=[。！？])")
_AHEAD = 8
"""Number of characters that are read beyond the last possible cut, in order to choose the cut."""
_GRAPHEME = 32
"""Maximum number of code points that are kept together as one character."""
_ROOM = 8
"""If the markup of a part leaves no more than 1/8 of the limit for text, plain text replaces the
markup."""
_WINDOW = 256
"""Number of characters that are searched for white space at once."""


def utf8_bytes(text: str) -> int:
    """Returns the length of a text in bytes, as Matrix counts it."""
    return len(text.encode("utf-8", "surrogatepass"))


def utf16_units(text: str) -> int:
    """Returns the length of a text in UTF-16 code units, as Telegram and others count it."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def split(
    tree: nodes.Document, limit: int, render: Render, measure: Measure
) -> Iterator[nodes.Document]:
    """Yields parts of the tree whose rendered text measures at most `limit` units.

    Together, the parts contain all visible characters of the tree, except for white space at the
    cuts. Markup that leaves no room for the text is replaced by plain text. A part exceeds the
    limit only if it is a single character that is longer than the limit.
    """
    splitter = _Splitter(limit, render, measure)
    while tree:
        part, tree = splitter.first_part(tree)
        if part:
            yield part


def first_part(
    tree: nodes.Document, limit: int, render: Render, measure: Measure
) -> tuple[nodes.Document, nodes.Document]:
    """Returns the first part that `split` yields, and the tree that remains."""
    return _Splitter(limit, render, measure).first_part(tree)


class _Splitter:
    def __init__(self, limit: int, render: Render, measure: Measure) -> None:
        if limit < 1:
            raise ValueError(f"a part needs room for a character: limit is {limit!r}")
        self._limit = limit
        self._render = render
        self._measure = measure

    def first_part(self, tree: nodes.Document) -> tuple[nodes.Document, nodes.Document]:
        """Returns the first part of the tree and the remaining tree. Both are empty if the tree has
        no text."""
        tree = _without_space(tree)
        while tree:
            reach = self._reach(tree)
            if reach is None:
                # A tree without visible text is dropped, for example a code block that contains
                # only spaces.
                return tree if visible(tree).strip() else (), ()
            if reach <= self._limit // _ROOM and (plainer := _plainer(tree)) is not None:
                tree = _without_space(plainer)
                continue
            text = VisibleText(tree, max(reach, 1) + _AHEAD)
            cut = self._cut(tree, text, max(reach, 1))
            end = cut
            while end and text.is_space(end - 1):
                end -= 1
            part = take_first(tree, end)[0] if text.text[:end].strip() else ()
            tree = _after(tree, text, cut)
            if part:
                return part, tree
        return (), ()

    def _size(self, tree: nodes.Document) -> int:
        return self._measure(self._render(tree))

    def _reach(self, tree: nodes.Document) -> int | None:
        """Returns how many characters of the tree fit into one part, or None if all fit."""
        low, low_size, high = 0, 0, self._limit
        while True:
            taken, whole = take_first(tree, high)
            high_size = self._size(taken)
            if high_size > self._limit:
                break
            if whole:
                return None
            low, low_size, high = high, high_size, high * 2
        enough = self._limit - self._limit // 64
        while high - low > 1 and low_size < enough:
            share = (self._limit - low_size) / (high_size - low_size)
            middle = low + round((high - low) * min(max(share, 0.1), 0.9))
            middle = min(max(middle, low + 1), high - 1)
            size = self._size(take_first(tree, middle)[0])
            if size <= self._limit:
                low, low_size = middle, size
            else:
                high, high_size = middle, size
        return low

    def _cut(self, tree: nodes.Document, text: VisibleText, reach: int) -> int:
        """Returns the best place for a cut. The part before the cut is not longer than the
        limit."""
        for cut in _cuts(text, reach):
            if text.text[:cut].strip() and self._size(take_first(tree, cut)[0]) <= self._limit:
                return cut
        return reach


def _cuts(text: VisibleText, reach: int) -> Iterator[int]:
    """Yields the places where the text may be cut, best first."""
    kinds, early = text.kinds, reach // 4
    ends = range(min(reach, len(kinds) - 1), 0, -1)
    blocks = [cut for cut in ends if kinds[cut] == "block"]
    lines = [cut for cut in ends if kinds[cut] == "line" or _ends_code_line(text, cut)]
    yield from (cut for cut in blocks if cut > early)
    yield from (cut for cut in lines if cut > early)
    if reach < len(kinds) and kinds[reach] == kinds[reach - 1] == "fence":
        # A cut inside a line of code is worse than a short part, so all ends of lines are tried
        # first.
        yield from sorted((*blocks, *lines), reverse=True)
    found = [match.start() for match in _SENTENCE.finditer(text.text, early + 1)]
    yield from (cut for cut in reversed(found) if kinds[cut - 1] == "word" and cut <= reach)
    yield from (cut for cut in ends if text.is_space(cut) and kinds[cut] != "link")
    # A cut before a link or code moves the whole link or code to the next part, if it fits there.
    yield from (cut for cut in ends if kinds[cut] in ("link", "code") and kinds[cut - 1] == "word")
    yield from (cut for cut in ends if kinds[cut] != "fence" and text.text[cut].isspace())
    yield _before_grapheme(text.text, reach)


def _ends_code_line(text: VisibleText, cut: int) -> bool:
    return text.kinds[cut] == "fence" and text.text[cut] == "\n"


def _after(tree: nodes.Document, text: VisibleText, cut: int) -> nodes.Document:
    """Returns the tree after the cut, without leading white space. In code, only the line break at
    the cut is dropped."""
    if cut < len(text.kinds) and text.kinds[cut] == "fence":
        return drop_first(tree, cut + _ends_code_line(text, cut))
    return _without_space(drop_first(tree, cut))


def _without_space(tree: nodes.Document) -> nodes.Document:
    while tree:
        text = VisibleText(tree, _WINDOW)
        count = 0
        while count < len(text.text) and text.is_space(count):
            count += 1
        if not text.text:
            return ()
        if not count:
            break
        tree = drop_first(tree, count)
    return tree


def _plainer(tree: nodes.Document) -> nodes.Document | None:
    """Returns the tree with less markup at its beginning, or None if it begins with plain text."""
    block, *others = tree
    match block:
        case nodes.Paragraph(children=(node, *more)) if not isinstance(node, nodes.Text):
            text = nodes.Text(text=Plain().inline(node))
            return (nodes.Paragraph(children=(text, *more)), *others)
        case nodes.Heading(children=children):
            return (nodes.Paragraph(children=children), *others)
        case nodes.Fence(text=text):
            return (_lines(text), *others)
        case nodes.Quote(children=children):
            return (*children, *others)
        case nodes.List(items=(item, *more), start=start):
            number = None if start is None else start + 1
            rest = (replace(block, items=tuple(more), start=number),) if more else ()
            return (*item, *rest, *others)
        case nodes.Table(header=header, rows=rows):
            return (*map(_row_as_text, (header, *rows)), *others)
        case _:
            return None


def _lines(code: str) -> nodes.Paragraph:
    children: list[nodes.Inline] = []
    for line in code.split("\n"):
        children += [nodes.Text(text=line), nodes.Break(hard=True)]
    return nodes.Paragraph(children=tuple(children[:-1]))


def _row_as_text(row: tuple[nodes.Inlines, ...]) -> nodes.Paragraph:
    children: list[nodes.Inline] = []
    for cell in row:
        children += [*cell, nodes.Text(text=" ")]
    return nodes.Paragraph(children=tuple(children[:-1]))


def _before_grapheme(text: str, cut: int) -> int:
    """Moves the cut back so that it does not split a character that consists of several code
    points."""
    whole = cut
    while whole < len(text) and _joined(text[whole - 1], text[whole]):
        whole -= 1
        if whole <= max(0, cut - _GRAPHEME):
            return cut
    return whole


def _joined(before: str, after: str) -> bool:
    if "\ud800" <= before <= "\udbff":
        return "\udc00" <= after <= "\udfff"
    skin = "\U0001f3fb" <= after <= "\U0001f3ff"
    return skin or "\u200d" in (before, after) or unicodedata.category(after)[0] == "M"
