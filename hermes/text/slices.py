"""Returns the first characters of a Markdown tree, or the tree without its first characters.

The visible characters of a tree are counted in reading order. A line break, an image, a rule, and
the gap between two neighbours count as one character each. Neighbours are two blocks, two items of
a list, or two rows or cells of a table.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, TypeVar, assert_never

from msgspec.structs import replace

from hermes.types import nodes

CharKind = Literal["word", "link", "code", "fence", "atom", "line", "block"]
"""The kind of element that a character is in; `line` and `block` are gaps between lines and
blocks."""

ATOM = "\ufffc"
"""Placeholder character for an element that is visible but has no text."""

_T = TypeVar("_T")


class VisibleText:
    """The first visible characters of a tree, and the kind of each character."""

    def __init__(self, tree: nodes.Document, stop: int | None = None) -> None:
        runs = list(_bounded(_blocks(tree), stop))
        self.text = "".join(text for text, _ in runs)[:stop]
        kinds: list[CharKind] = []
        for text, kind in runs:
            kinds += [kind] * len(text)
        self.kinds = kinds[:stop]

    def is_space(self, index: int) -> bool:
        """Returns whether the character is white space that may be dropped at a cut."""
        return self.text[index].isspace() and self.kinds[index] not in ("code", "fence")


_Run = tuple[str, CharKind]


def _bounded(runs: Iterator[_Run], stop: int | None) -> Iterator[_Run]:
    count = 0
    for run in runs:
        yield run
        count += len(run[0])
        if stop is not None and count >= stop:
            return


def _blocks(tree: Sequence[nodes.Block], gap: CharKind = "block") -> Iterator[_Run]:
    yield from _spaced("\n", gap, map(_block, tree))


def _spaced(gap: str, kind: CharKind, parts: Iterable[Iterator[_Run]]) -> Iterator[_Run]:
    for index, part in enumerate(parts):
        if index:
            yield gap, kind
        yield from part


def _row(row: tuple[nodes.Inlines, ...]) -> Iterator[_Run]:
    cells = row[_margin(row) :]
    yield from _spaced(" ", "word", (_inlines(cell, "word") for cell in cells))


def _block(block: nodes.Block) -> Iterator[_Run]:
    match block:
        case nodes.Paragraph(children=children) | nodes.Heading(children=children):
            yield from _inlines(children, "word")
        case nodes.Fence(text=text):
            yield text, "fence"
        case nodes.Quote(children=children):
            yield from _blocks(children)
        case nodes.List(items=items, tight=tight):
            gap: CharKind = "line" if tight else "block"
            yield from _spaced("\n", gap, (_blocks(item, gap) for item in items))
        case nodes.Table():
            yield from _spaced("\n", "line", map(_row, _rows(block)))
        case nodes.Rule():
            yield ATOM, "atom"
        case _:
            assert_never(block)


def _inlines(children: nodes.Inlines, kind: CharKind) -> Iterator[_Run]:
    for child in children:
        match child:
            case nodes.Text(text=text):
                yield text, kind
            case nodes.Code(text=text):
                yield text, "code"
            case nodes.Break():
                yield "\n", "line"
            case nodes.Image() | nodes.Link(children=()):
                yield ATOM, "atom"
            case nodes.Link(children=inside):
                yield from _inlines(inside, "link")
            case nodes.Strong() | nodes.Emphasis() | nodes.Strikethrough():
                yield from _inlines(child.children, kind)
            case _:
                assert_never(child)


def visible(tree: nodes.Document) -> str:
    """Returns the visible characters of the tree."""
    return VisibleText(tree).text


def append_text(tree: nodes.Document, text: str) -> nodes.Document:
    """Adds text after the last words of the tree. If the tree does not end with words but, for
    example, with a code block or a table, the text is added as a new paragraph."""
    if not text:
        return tree
    if tree:
        *before, last = tree
        match last:
            case nodes.Paragraph() | nodes.Heading():
                words = (*last.children, nodes.Text(text=text))
                return (*before, replace(last, children=words))
            case nodes.Quote(children=children):
                return (*before, replace(last, children=append_text(children, text)))
            case nodes.List(items=(*items, item)):
                return (*before, replace(last, items=(*items, append_text(item, text))))
            case _:
                pass
    return (*tree, nodes.Paragraph(children=(nodes.Text(text=text.strip()),)))


def take_first(tree: nodes.Document, count: int) -> tuple[nodes.Document, bool]:
    """Returns the first `count` visible characters of the tree, and whether they are the whole
    tree."""
    taken, left = _take_each(tree, count, _take_block, gap=1)
    return taken, left >= 0


_Taken = tuple[_T | None, int]
"""The part that was taken, and how many more characters may be taken after it. This number is
negative if something was left out."""


def _take_each(
    items: Sequence[_T], count: int, take: Callable[[_T, int], _Taken[_T]], gap: int
) -> tuple[tuple[_T, ...], int]:
    taken: list[_T] = []
    for index, item in enumerate(items):
        if index:
            count -= gap
            if count <= 0:
                return tuple(taken), -1
        part, count = take(item, count)
        if part is not None:
            taken.append(part)
        if count < 0:
            break
    return tuple(taken), count


def _take_block(block: nodes.Block, count: int) -> _Taken[nodes.Block]:
    match block:
        case nodes.Paragraph() | nodes.Heading():
            inlines, left = _take_each(block.children, count, _take_inline, gap=0)
            return replace(block, children=inlines), left
        case nodes.Fence(text=text):
            return replace(block, text=text[:count]), count - len(text)
        case nodes.Quote(children=children):
            inside, left = _take_each(children, count, _take_block, gap=1)
            return replace(block, children=inside), left
        case nodes.List(items=items):
            taken, left = _take_each(items, count, _take_item, gap=1)
            return replace(block, items=taken), left
        case nodes.Table():
            rows, left = _take_each(_rows(block), count, _take_row, gap=1)
            return _table(block, rows), left
        case nodes.Rule():
            return block, count - 1
        case _:
            assert_never(block)


def _take_item(item: nodes.Document, count: int) -> _Taken[nodes.Document]:
    return _take_each(item, count, _take_block, gap=1)


def _take_row(row: tuple[nodes.Inlines, ...], count: int) -> _Taken[tuple[nodes.Inlines, ...]]:
    margin = _margin(row)
    cells, left = _take_each(row[margin:], count, _take_cell, gap=1)
    padding = ((),) * (len(row) - margin - len(cells))
    return (*row[:margin], *cells, *padding), left


def _take_cell(cell: nodes.Inlines, count: int) -> _Taken[nodes.Inlines]:
    return _take_each(cell, count, _take_inline, gap=0)


def _take_inline(node: nodes.Inline, count: int) -> _Taken[nodes.Inline]:
    match node:
        case nodes.Text(text=text) | nodes.Code(text=text):
            return replace(node, text=text[:count]), count - len(text)
        case nodes.Break() | nodes.Image() | nodes.Link(children=()):
            return node, count - 1
        case nodes.Strong() | nodes.Emphasis() | nodes.Strikethrough() | nodes.Link():
            inside, left = _take_each(node.children, count, _take_inline, gap=0)
            return replace(node, children=inside), left
        case _:
            assert_never(node)


def drop_first(tree: nodes.Document, count: int) -> nodes.Document:
    """Returns the tree without its first `count` visible characters.

    If a list item is cut, its remaining part has no marker. The items after it keep their numbers.
    """
    return _drop_each(tree, count, _drop_block, gap=1)[0]


_Dropped = tuple[tuple[_T, ...], int]
"""The nodes that remain, and the number of characters that must still be dropped from the nodes
that follow."""


def _drop_each(
    items: tuple[_T, ...], count: int, drop: Callable[[_T, int], _Dropped[_T]], gap: int
) -> _Dropped[_T]:
    for index, item in enumerate(items):
        if index:
            count -= gap
        if count <= 0:
            return items[index:], 0
        rest, count = drop(item, count)
        if rest:
            return (*rest, *items[index + 1 :]), 0
    return (), count


def _drop_block(block: nodes.Block, count: int) -> _Dropped[nodes.Block]:
    match block:
        case nodes.Paragraph() | nodes.Heading():
            inlines, left = _drop_each(block.children, count, _drop_inline, gap=0)
            return ((replace(block, children=inlines),) if inlines else ()), left
        case nodes.Fence(text=text):
            rest = text[count:]
            return ((replace(block, text=rest),) if rest else ()), count - len(text)
        case nodes.Quote(children=children):
            inside, left = _drop_each(children, count, _drop_block, gap=1)
            return ((replace(block, children=inside),) if inside else ()), left
        case nodes.List():
            return _drop_from_list(block, count)
        case nodes.Table():
            rows, left = _drop_each(_rows(block), count, _drop_from_row, gap=1)
            return ((replace(block, header=(), rows=rows),) if rows else ()), left
        case nodes.Rule():
            return (), count - 1
        case _:
            assert_never(block)


def _drop_from_list(block: nodes.List, count: int) -> _Dropped[nodes.Block]:
    for index, item in enumerate(block.items):
        if index:
            count -= 1
        if count <= 0:
            return (_list_from(block, index),), 0
        rest, count = _drop_each(item, count, _drop_block, gap=1)
        if rest:
            more = index + 1 < len(block.items)
            return (*rest, *((_list_from(block, index + 1),) if more else ())), 0
    return (), count


def _list_from(block: nodes.List, index: int) -> nodes.List:
    start = None if block.start is None else block.start + index
    return replace(block, items=block.items[index:], start=start)


def _drop_from_row(
    row: tuple[nodes.Inlines, ...], count: int
) -> _Dropped[tuple[nodes.Inlines, ...]]:
    cells, left = _drop_each(row[_margin(row) :], count, _drop_from_cell, gap=1)
    return (((*((),) * (len(row) - len(cells)), *cells),) if cells else ()), left


def _drop_from_cell(cell: nodes.Inlines, count: int) -> _Dropped[nodes.Inlines]:
    rest, left = _drop_each(cell, count, _drop_inline, gap=0)
    return ((rest,) if rest else ()), left


def _drop_inline(node: nodes.Inline, count: int) -> _Dropped[nodes.Inline]:
    match node:
        case nodes.Text(text=text) | nodes.Code(text=text):
            rest = text[count:]
            return ((replace(node, text=rest),) if rest else ()), count - len(text)
        case nodes.Break() | nodes.Image() | nodes.Link(children=()):
            return (), count - 1
        case nodes.Strong() | nodes.Emphasis() | nodes.Strikethrough() | nodes.Link():
            inside, left = _drop_each(node.children, count, _drop_inline, gap=0)
            return ((replace(node, children=inside),) if inside else ()), left
        case _:
            assert_never(node)


def _rows(table: nodes.Table) -> tuple[tuple[nodes.Inlines, ...], ...]:
    return (table.header, *table.rows) if table.header else table.rows


def _margin(row: tuple[nodes.Inlines, ...]) -> int:
    """Returns the number of empty cells at the start of a row. The gaps after these cells do not
    count as visible characters."""
    return next((index for index, cell in enumerate(row) if cell), len(row))


def _table(table: nodes.Table, rows: tuple[tuple[nodes.Inlines, ...], ...]) -> nodes.Table:
    if table.header:
        return replace(table, header=rows[0], rows=rows[1:])
    return replace(table, rows=rows)
