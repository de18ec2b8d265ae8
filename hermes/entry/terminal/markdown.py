"""Renders Markdown for a terminal."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import assert_never

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.rule import Rule
from rich.segment import Segment
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from hermes.text.incremental import Piece
from hermes.types import nodes

CODE, LINK, QUOTE = "bold cyan", "underline", "dim"
HEADINGS = ("bold underline", "bold")
"""Styles of headings of the first level, and of all other levels."""
COLORS = "ansi_dark"
"""The theme for code, which uses the terminal's own colors."""
CONTEXT = 100
"""Number of earlier lines that are highlighted again, so that new lines get the right colors."""
INDENT = "  "
BAR = "▌ "


def render(piece: Piece) -> RenderableType:
    """Renders a piece, without the blank line before it."""
    if isinstance(piece.block, nodes.Fence):
        return _code(piece.block, piece.shown)
    return _block(piece.block)


class Margin:
    """Puts one mark before the first line of its content, and another mark before all other
    lines."""

    def __init__(self, inside: RenderableType, first: Text, rest: Text) -> None:
        self._inside = inside
        self._first = first
        self._rest = rest

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        room = options.update(width=max(1, options.max_width - self._first.cell_len))
        mark = self._first
        for line in console.render_lines(self._inside, room, pad=False):
            yield from mark.render(console)
            yield from line
            yield Segment.line()
            mark = self._rest

    def __rich_measure__(self, _console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(1, options.max_width)


def _blocks(blocks: Sequence[nodes.Block], *, tight: bool) -> RenderableType:
    shown: list[RenderableType] = []
    for block in blocks:
        if shown and not tight:
            shown.append("")
        shown.append(_block(block))
    return Group(*shown)


def _block(block: nodes.Block) -> RenderableType:
    match block:
        case nodes.Paragraph(children=children):
            return _text(children)
        case nodes.Heading(level=level, children=children):
            return _text(children, HEADINGS[min(level, len(HEADINGS)) - 1])
        case nodes.Fence():
            return _code(block)
        case nodes.List():
            return _list(block)
        case nodes.Quote(children=children):
            bar = Text(BAR, QUOTE)
            return Margin(_blocks(children, tight=False), bar, bar)
        case nodes.Table():
            return _table(block)
        case nodes.Rule():
            return Rule(style="dim")
        case _:
            assert_never(block)


def _code(fence: nodes.Fence, shown: int = 0) -> RenderableType:
    lines = fence.text.split("\n")
    known = min(shown, CONTEXT)
    language = fence.info.split(maxsplit=1)[0] if fence.info else ""
    colored = _syntax(language).highlight("\n".join(lines[shown - known :]))
    rest = colored.split("\n", allow_blank=True)[known : len(lines) - shown + known]
    return Margin(Group(*rest), Text(INDENT), Text(INDENT))


@lru_cache(maxsize=64)
def _syntax(language: str) -> Syntax:
    # The result is cached, because the search for an unknown language is slow.
    syntax = Syntax("", language, theme=COLORS, background_color="default")
    return syntax if syntax.lexer else Syntax("", "text", theme=COLORS, background_color="default")


def _list(block: nodes.List) -> RenderableType:
    items: list[RenderableType] = []
    for index, item in enumerate(block.items):
        if items and not block.tight:
            items.append("")
        mark = "• " if block.start is None else f"{block.start + index}. "
        inside = _blocks(item, tight=block.tight)
        items.append(Margin(inside, Text(mark), Text(" " * len(mark))))
    return Group(*items)


def _table(block: nodes.Table) -> RenderableType:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for align, header in zip(block.aligns, block.header, strict=True):
        table.add_column(_text(header), justify=align or "left", overflow="fold")
    for row in block.rows:
        table.add_row(*map(_text, row))
    return table


def _text(inlines: Iterable[nodes.Inline], style: str = "") -> Text:
    text = Text(style=style)
    for inline in inlines:
        text.append_text(_inline(inline))
    return text


def _inline(inline: nodes.Inline) -> Text:
    match inline:
        case nodes.Text(text=text):
            return Text(text)
        case nodes.Code(text=text):
            return Text(text, CODE)
        case nodes.Strong(children=children):
            return _text(children, "bold")
        case nodes.Emphasis(children=children):
            return _text(children, "italic")
        case nodes.Strikethrough(children=children):
            return _text(children, "strike")
        case nodes.Link(url=url, children=children):
            return _link(url, _text(children, LINK))
        case nodes.Image(url=url, text=text):
            return _link(url, Text(text or "image"))
        case nodes.Break():
            return Text("\n")
        case _:
            assert_never(inline)


def _link(url: str, name: Text) -> Text:
    # The URL is written out, because not every terminal supports links.
    if name.plain in (url, url.removeprefix("mailto:")):
        return name
    return name.append(f" ({url})", "dim not underline")
