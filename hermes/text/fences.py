"""Where the code blocks of a Markdown text are, by position."""

import re
from bisect import bisect_left
from collections.abc import Sequence

from markdown_it import MarkdownIt
from markdown_it.token import Token

from hermes.types.value import Value

_parser = MarkdownIt("zero", {"maxNesting": 50})
_parser.enable(["fence", "code", "blockquote", "list"])
_parser.core.ruler.enableOnly(["normalize", "block"])


class Fence(Value):
    """A block in ``` or ~~~; it may be cut between `content` and `closer` only."""

    start: int
    """Of its first line."""
    content: int
    """Of the line after."""
    closer: int
    """Of its last line; `end` where it is not closed."""
    end: int
    margin: str
    """What stands before each of its lines: the indent of a list, the marks of a quote."""
    marker: str
    info: str

    @property
    def quoted(self) -> bool:
        return ">" in self.margin

    def opening(self, inside_line: bool) -> str:
        """What a part begins with that goes on with this block."""
        margin = self.margin if self.quoted else ""
        return f"{margin}{self.marker}{self.info}\n{margin if inside_line else ''}"

    def closing(self, begun: int) -> str:
        """What a part ends with that began at `begun` and leaves this block unfinished."""
        # A part that begins in the block has lost the list around it, and so its indent.
        margin = self.margin if self.quoted or begun <= self.start else ""
        return f"\n{margin}{self.marker}"

    def open_at(self, place: int) -> bool:
        return self.content < place <= self.closer


def fences(text: str) -> list[Fence]:
    """The code blocks of a text, in order."""
    # The parser's own notion of a line, so that its numbers are ours.
    starts = [0, *(found.end() for found in re.finditer(r"\r\n?|\n", text)), len(text) + 1]
    tokens = _parser.parse(text)
    return [_fence(text, starts, token) for token in tokens if token.type == "fence"]


def fence_at(blocks: Sequence[Fence], place: int) -> Fence | None:
    """The block that a cut at `place` would go through."""
    index = bisect_left(blocks, place, key=lambda block: block.start) - 1
    return blocks[index] if index >= 0 and place < blocks[index].end else None


def _fence(text: str, starts: Sequence[int], token: Token) -> Fence:
    assert token.map is not None, "a block has lines"
    first, after = token.map
    start, end = starts[first], min(starts[after] - 1, len(text))
    margin = text[start : text.index(token.markup, start)]
    last = text[starts[after - 1] : end].strip(" \t>\r\n")
    closed = after - 1 > first and len(last) >= len(token.markup) and not last.strip(last[0])
    return Fence(
        start=start,
        content=starts[first + 1],
        closer=starts[after - 1] if closed and last[0] == token.markup[0] else end,
        end=end,
        margin=re.sub(r"[^>]", " ", margin),
        marker=token.markup,
        info=token.info.strip(),
    )
