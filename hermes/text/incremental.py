"""Parses Markdown while it is being written, and finds the blocks that later text can't change."""

import re
from collections.abc import Iterator

from markdown_it import MarkdownIt
from markdown_it.token import Token
from msgspec.structs import replace

from hermes.text.markdown import parse, parse_blocks, parse_part
from hermes.types import nodes
from hermes.types.value import Value

# Link references are disabled, because a later definition would change text that was already
# returned.
_parser = MarkdownIt("commonmark", {"html": False, "maxNesting": 50})
_parser.enable("table").disable("reference")
_parser.core.ruler.enableOnly(["normalize", "block"])

_APART = (nodes.Heading, nodes.Fence, nodes.Table, nodes.Rule)
"""Blocks that always have blank lines around them."""

_LINE_END = re.compile(r"\r\n?")
_BRACKET_FIRST = re.compile(r"(?m)^[ \t>*+\-0-9.)]*\[")
"""A line on which the definition of a link may begin."""


class Piece(Value):
    """A block, an item of a list, or further lines of a code block."""

    block: nodes.Block
    gap: bool
    """Whether a blank line precedes the piece."""
    shown: int = 0
    """Number of lines of the code block that earlier pieces contained."""


class IncrementalMarkdown:
    """Parses a text that arrives in chunks. Each line must end with a newline, without a carriage
    return.

    The methods `settled` and `open` return the parsed pieces. The pieces do not depend on how the
    text was divided into chunks. Code blocks are an exception: complete lines of code are returned
    at once, so their division into pieces depends on the chunks.
    """

    def __init__(self) -> None:
        self._text = ""
        """The text that may still change. It starts at the beginning of a line."""
        self._place = _Place()

    def feed(self, text: str) -> None:
        self._text += text

    def settled(self) -> list[Piece]:
        """Returns the blocks that have become final since the last call."""
        # Only complete lines are parsed. The meaning of an unfinished line can change: "#" may
        # become a heading or a hashtag.
        end = self._text.rfind("\n") + 1
        pieces, self._place, rest = _cut(self._text[:end], self._place, final=False)
        self._text = rest + self._text[end:]
        return pieces

    def open(self) -> list[Piece]:
        """Returns the remaining blocks, as if the text ended here."""
        return _cut(self._text, self._place, final=True)[0]


def pieces(text: str) -> list[Piece]:
    """Returns the pieces of a complete text."""
    return _cut(text, _Place(), final=True)[0]


class IncrementalTree:
    """Parses a text that grows at its end. Each call parses only the last blocks again."""

    def __init__(self) -> None:
        self._closed = ""
        """The beginning of the text, up to the blocks that can still change."""
        self._blocks: nodes.Document = ()

    def of(self, text: str) -> nodes.Document:
        """Returns the tree of the text. The call is fast if the text begins with the text of the
        previous call."""
        text = _LINE_END.sub("\n", text)
        if "]:" in text and _BRACKET_FIRST.search(text):
            # The definition of a link can change every block, so the whole text is parsed again.
            return parse(text)
        if not text.startswith(self._closed):
            self._closed, self._blocks = "", ()
        rest = text[len(self._closed) :]
        parsed = parse_blocks(rest)
        tree = self._blocks + tuple(block for _, block in parsed)
        lines = rest.split("\n")
        # More text can change the last block.
        # Until its first two lines are complete, it can even become a part of the block before it.
        changing = 2 if parsed and parsed[-1][0] + 2 >= len(lines) else 1
        if len(parsed) > changing:
            self._closed += "".join(f"{line}\n" for line in lines[: parsed[-changing][0]])
            self._blocks = tree[:-changing]
        return tree


class _Place(Value):
    """The state of the parser between two pieces."""

    before: nodes.Block | None = None
    blank: bool = False
    """Whether a blank line follows `before`."""
    in_list: bool = False
    """Whether the next piece continues a list that was cut here."""
    number: int | None = None
    """The number of the next item; None if the list is not numbered."""
    shown: int = 0
    """Number of lines of the current code block that have been returned."""


class _Span(Value):
    """The lines of a block or of an item of a list."""

    start: int
    end: int
    item: int | None = None
    """The index of the item in its list; None for a block."""
    number: int | None = None
    """The first number of the list; None if the list is not numbered."""
    code: int | None = None
    """Number of code lines; None if the block is not a code block."""


def _cut(text: str, place: _Place, *, final: bool) -> tuple[list[Piece], _Place, str]:
    """Returns the pieces of a text, the state after them, and the text that remains."""
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
