"""Markdown that is still being written: finds the blocks that no later text can change."""

import re
from collections.abc import Iterator

from markdown_it import MarkdownIt
from markdown_it.token import Token
from msgspec.structs import replace

from hermes.text.markdown import parse, parse_blocks, parse_part
from hermes.types import nodes
from hermes.types.value import Value

# Without references: an address that follows its use would change what stands already.
_parser = MarkdownIt("commonmark", {"html": False, "maxNesting": 50})
_parser.enable("table").disable("reference")
_parser.core.ruler.enableOnly(["normalize", "block"])

_APART = (nodes.Heading, nodes.Fence, nodes.Table, nodes.Rule)
"""Have blank lines around them, whether the writer made some or not."""

_LINE_END = re.compile(r"\r\n?")
_BRACKET_FIRST = re.compile(r"(?m)^[ \t>*+\-0-9.)]*\[")
"""A line on which the definition of a link may begin."""


class Piece(Value):
    """A block, an item of a list, or some more lines of a code block."""

    block: nodes.Block
    gap: bool
    """A blank line stands before it."""
    shown: int = 0
    """Lines of the code block that earlier pieces had."""


class IncrementalMarkdown:
    """A text that arrives in pieces; its lines end with a newline and nothing else.

    The pieces that `settled` and finally `open` return do not depend on how the text arrived,
    except for code, whose lines are returned as soon as they are complete.
    """

    def __init__(self) -> None:
        self._text = ""
        """The text that is not settled yet, from the beginning of a line."""
        self._place = _Place()

    def feed(self, text: str) -> None:
        self._text += text

    def settled(self) -> list[Piece]:
        """The blocks that have become final since the last call."""
        # Only a whole line is what it is: "#" may become a heading or a hashtag.
        end = self._text.rfind("\n") + 1
        pieces, self._place, rest = _cut(self._text[:end], self._place, final=False)
        self._text = rest + self._text[end:]
        return pieces

    def open(self) -> list[Piece]:
        """The remaining blocks, as if the text ended here."""
        return _cut(self._text, self._place, final=True)[0]


def pieces(text: str) -> list[Piece]:
    """The pieces of a complete text."""
    return _cut(text, _Place(), final=True)[0]


class IncrementalTree:
    """Parses a text that grows at its end: only its last blocks are parsed again each time."""

    def __init__(self) -> None:
        self._closed = ""
        """The beginning of the text, up to the last block that was found."""
        self._blocks: nodes.Document = ()

    def of(self, text: str) -> nodes.Document:
        """The tree of the text; cheap if the text begins with the one before."""
        text = _LINE_END.sub("\n", text)
        if "]:" in text and _BRACKET_FIRST.search(text):
            # The definition of a link can change every block.
            return parse(text)
        if not text.startswith(self._closed):
            self._closed, self._blocks = "", ()
        rest = text[len(self._closed) :]
        parsed = parse_blocks(rest)
        tree = self._blocks + tuple(block for _, block in parsed)
        lines = rest.split("\n")
        # More text can change the last block. If not even its first two lines have ended, they may
        # turn out to be a part of the block before it: `#` is a heading, `#a` is not, and it takes
        # two lines to begin a table.
        changing = 2 if parsed and parsed[-1][0] + 2 >= len(lines) else 1
        if len(parsed) > changing:
            self._closed += "".join(f"{line}\n" for line in lines[: parsed[-changing][0]])
            self._blocks = tree[:-changing]
        return tree


class _Place(Value):
    """The context of a piece: the text before it."""

    before: nodes.Block | None = None
    blank: bool = False
    """A blank line is between."""
    in_list: bool = False
    """It goes on with the list that was cut here."""
    number: int | None = None
    """Of the next item, in a list that counts."""
    shown: int = 0
    """Lines of the code block here that were given out."""


class _Span(Value):
    """A block, or an item of a list, by its lines."""

    start: int
    end: int
    item: int | None = None
    """Which one of its list it is."""
    number: int | None = None
    """Of the first item of its list, in one that counts."""
    code: int | None = None
    """Lines of code between fences."""


def _cut(text: str, place: _Place, *, final: bool) -> tuple[list[Piece], _Place, str]:
    """The pieces of a text, and where and with what the next cut begins."""
    lines = text.split("\n")
    spans = list(_spans(text))
    found: list[Piece] = []
    for span in spans:
        same_list = bool(span.item) or (place.in_list and span.item == 0)
        here = _Place(
            before=place.before,
            blank=not lines[span.start - 1].strip() if span.start else place.blank,
            in_list=same_list,
            number=place.number if same_list else span.number,
            shown=place.shown,
        )
        growing = not final and span is spans[-1]
        if not growing or span.code:
            block = _block("\n".join(lines[span.start : span.end]) + "\n", here)
            if span.code is None or span.code > here.shown:
                found.append(Piece(block=block, gap=_gap(block, here), shown=here.shown))
            place = _Place(before=block, number=here.number and here.number + 1)
        if growing:
            here = replace(here, shown=span.code or 0)
            return found, here, "\n".join(lines[span.start :])
    return found, place, ""


def _block(source: str, here: _Place) -> nodes.Block:
    (block,) = parse_part(source)
    if isinstance(block, nodes.List) and here.in_list:
        return replace(block, start=here.number)
    return block


def _gap(block: nodes.Block, here: _Place) -> bool:
    if here.before is None or here.shown:
        return False
    apart = isinstance(block, _APART) or isinstance(here.before, _APART)
    return here.blank or (apart and not here.in_list)


def _spans(text: str) -> Iterator[_Span]:
    number: int | None = None
    item = 0
    for token in _parser.parse(text):
        if token.nesting < 0 or token.map is None:
            continue
        start, end = token.map
        if token.type == "list_item_open" and token.level == 1:
            yield _Span(start=start, end=end, item=item, number=number)
            item += 1
        elif token.level == 0 and token.type.endswith("list_open"):
            item, number = 0, _first_number(token)
        elif token.level == 0:
            code = _line_count(token.content) if token.type == "fence" else None
            yield _Span(start=start, end=end, code=code)


def _first_number(token: Token) -> int | None:
    return int(token.attrs.get("start", 1)) if token.type == "ordered_list_open" else None


def _line_count(code: str) -> int:
    return code.removesuffix("\n").count("\n") + 1 if code else 0
