"""Converts the main part of a web page to Markdown, without navigation and hidden elements."""

import re
from collections.abc import Mapping
from urllib.parse import urljoin

from selectolax.lexbor import LexborHTMLParser, LexborNode

from hermes.text.markup import LINK_NUMBER, RENAMED, sanitized
from hermes.types.value import Value

DEEPEST = 256
"""Deepest nesting of elements. The content of deeper elements is dropped."""
INDENTED = 8
"""Deepest nesting of lists and quotes that is shown by indentation."""
LONGEST_LINK = 1000
LONGEST_CELL = 400


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_DROPPED = _names(
    "audio button canvas datalist dialog footer iframe nav noembed noframes noscript object script"
    " select style svg template textarea video"
)
_BLOCKS = _names(
    "address article aside blockquote body caption center dd details div dl dt fieldset figcaption"
    " figure form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main menu ol p pre section"
    " summary table tbody td tfoot th thead tr ul"
)
_VOID = _names("base br hr img")
# The tags of these elements do not change the text: only the content of the elements is used. The
# elements matter only if they are hidden, because their content is then left out.
_PASSED = _names(
    "abbr acronym b bdi bdo big cite em font i ins kbd label mark q s samp small span strike strong"
    " sub sup time tt u var html head body tbody thead tfoot"
)
_LISTS = _names("ul ol menu")
_CELLS = _names("td th")
_GATHERING = _LISTS | _CELLS | {"li", "blockquote", "table", "tr"}
_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
_UNSEEN = re.compile(r"display\s*+:\s*+none|visibility\s*+:\s*+hidden", re.I)
_SPACES = re.compile(r"\s+")
_BLANK_LINES = re.compile(r"\n{3,}")
_TICKS = re.compile(r"`{3,}")


class Readable(Value):
    title: str
    text: str
    cut: bool = False
    """Whether the end of the page was left out because the page is nested too deep."""


def readable(html: str, url: str) -> Readable:
    """Returns the text of a page. The time is proportional to the page's length, and the function
    never fails."""
    safe = sanitized(html)
    page = _Page(url)
    root = LexborHTMLParser(safe.text.encode("utf-8", "replace")).root
    if root is not None:
        page.read(root)
    return page.whole(cut=safe.cut)


class _Element:
    """An element whose content is being read."""

    __slots__ = ("items", "name", "outer", "part", "pre")

    def __init__(
        self, name: str, attributes: Mapping[str, str | None], parent: "_Element | None"
    ) -> None:
        self.name = name
        self.pre: bool = (parent is not None and parent.pre) or name == "pre"
        self.part = "main" if attributes.get("role") == "main" else name
        self.outer: list[str] | None = None
        """Holds the blocks before this element while the element's own blocks are collected
        separately; None if they are not collected separately."""
        self.items = 0
        """Number of list items or header cells that were read so far."""


class _Page:
    """Converts a page. Holds the open elements, the blocks so far and the unfinished line."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._base = ""
        self._title = ""
        self._stack: list[_Element] = []
        self._indented = 0
        """Number of open list items and quotes."""
        self._blocks: list[str] = []
        self._parts: dict[str, list[str]] = {"main": [], "article": []}
        self._line = _Line()

    def read(self, node: LexborNode) -> None:
        """Reads the node and its descendants. The method is not recursive, because pages may be
        nested deep."""
        depth = 0
        while True:
            entered = self._enter(node)
            child = node.first_child if entered else None
            if child is not None:
                node, depth = child, depth + 1
                continue
            if entered:
                self._leave(node)
            while depth and (after := node.next) is None:
                assert node.parent is not None
                node, depth = node.parent, depth - 1
                self._leave(node)
            if not depth:
                return
            assert after is not None
            node = after

    def whole(self, *, cut: bool) -> Readable:
        self._break()
        blocks = self._parts["main"] or self._parts["article"] or self._blocks
        return Readable(title=self._title, text="\n\n".join(blocks), cut=cut)

    @property
    def _top(self) -> _Element | None:
        return self._stack[-1] if self._stack else None

    def _enter(self, node: LexborNode) -> bool:
        """Begins a node. Returns whether to read its content. If so, `_leave` must be called
        afterwards."""
        if node.is_text_node:
            self._say(node.text_content or "")
            return False
        name, attributes = _name(node), node.attributes
        if name == "title":
            self._title = self._title or " ".join(node.text().split())
            return False
        hidden = _is_hidden(name, attributes)
        if name in _BLOCKS:
            self._break()
        if name in _VOID and not hidden:
            self._place(name, attributes)
        if hidden or name in _VOID or len(self._stack) >= DEEPEST:
            return False
        if name not in _PASSED:
            self._begin(_Element(name, attributes, self._top), attributes)
        return True

    def _leave(self, node: LexborNode) -> None:
        name = _name(node)
        if name not in _PASSED:
            self._end()
        if name in _BLOCKS:
            self._break()

    def _say(self, text: str) -> None:
        self._line.add(text if self._top and self._top.pre else _SPACES.sub(" ", text))

    def _place(self, name: str, attributes: Mapping[str, str | None]) -> None:
        """Writes an element that never has content, such as `br` or `img`."""
        if name == "br":
            self._line.add("\n")
        elif name == "img" and (said := " ".join((attributes.get("alt") or "").split())):
            self._line.add(f"[image: {said}]")
        elif name == "base" and not self._base:
            self._base = _joined(self._url, attributes.get("href"))

    def _begin(self, element: _Element, attributes: Mapping[str, str | None]) -> None:
        parent = self._top
        self._stack.append(element)
        if element.pre:
            return
        if element.name in _GATHERING or element.part in self._parts:
            self._break()
            element.outer, self._blocks = self._blocks, []
            self._indented += element.name in ("li", "blockquote")
        if element.name == "th" and parent and parent.name == "tr":
            parent.items += 1
        elif element.name == "code":
            self._line.add("`")
        elif element.name == "a":
            target = _joined(self._base or self._url, attributes.get("href"))
            self._line.begin_link(target, attributes.get(LINK_NUMBER))

    def _end(self) -> None:
        element, parent = self._stack.pop(), self._top
        if parent and parent.pre:
            return
        if element.name == "pre":
            self._fence()
        elif element.name in _HEADINGS:
            if said := self._line.take():
                self._blocks.append(_HEADINGS[element.name] + said.replace("\n", " "))
        elif element.name == "code":
            self._line.add("`")
        elif element.name == "a":
            self._line.end_link()
        if element.outer is not None:
            self._break()
            self._indented -= element.name in ("li", "blockquote")
            inner, self._blocks = self._blocks, element.outer
            self._blocks += self._folded(element, parent, inner)

    def _folded(self, element: _Element, parent: _Element | None, inner: list[str]) -> list[str]:
        """Converts the blocks inside an element to the blocks that the element adds to its
        parent."""
        name = element.name
        if name in _CELLS:
            return ["\n\n".join(inner)] if inner or (parent and parent.name == "tr") else []
        if not any(inner):
            return []
        shown = self._indented < INDENTED
        if name == "tr":
            return [_row(inner, head=element.items == len(inner))]
        if name in _LISTS or name == "table":
            return ["\n".join(inner)]
        if name == "li":
            text = "\n".join(inner)
            return [_marker(parent) + (text.replace("\n", "\n  ") if shown else text)]
        if name == "blockquote" and shown:
            return ["> " + "\n\n".join(inner).replace("\n", "\n> ")]
        if element.part in self._parts and all(one.part != element.part for one in self._stack):
            self._parts[element.part] += inner
        return inner

    def _break(self) -> None:
        """Ends the current line and its block."""
        if self._top and self._top.pre:
            self._line.wrap()
        elif said := self._line.take():
            self._blocks.append(said)

    def _fence(self) -> None:
        if text := self._line.take_raw():
            fence = "`" * max((len(run) + 1 for run in _TICKS.findall(text)), default=3)
            self._blocks.append(f"{fence}\n{text}\n{fence}")


class _Line:
    """The unfinished line, and the link that is open in it."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._target = ""
        """The address of the open link; empty if no link is open."""
        self._start = 0
        """Index of the piece at which the text of the link begins."""
        self._number: str | None = None
        self._shown: str | None = None
        """The `LINK_NUMBER` of the last link that was written; None if no link was written."""

    def add(self, text: str) -> None:
        self._pieces.append(text)

    def wrap(self) -> None:
        if self._pieces and not self._pieces[-1].endswith("\n"):
            self._pieces.append("\n")

    def begin_link(self, target: str, number: str | None) -> None:
        """Begins a link, unless the link with this number was written before."""
        self.end_link()
        if number != self._shown:
            self._target, self._start, self._number = target, len(self._pieces), number

    def end_link(self) -> None:
        self._link()
        self._target = ""

    def take(self) -> str:
        """Returns the line with normalized white space, and clears the line. A link without text
        continues in the next line."""
        self._link()
        lines = (" ".join(line.split()) for line in "".join(self._pieces).split("\n"))
        self._pieces, self._start = [], 0
        return _BLANK_LINES.sub("\n\n", "\n".join(lines).strip())

    def take_raw(self) -> str:
        """Returns the line unchanged, and clears the line."""
        text = "".join(self._pieces).strip("\n").rstrip()
        self._pieces, self._start = [], 0
        return text

    def _link(self) -> None:
        said = "".join(self._pieces[self._start :]) if self._target else ""
        if text := " ".join(said.split()):
            before, after = " " * said[0].isspace(), " " * said[-1].isspace()
            self._pieces[self._start :] = [f"{before}[{text}]({self._target}){after}"]
            self._target, self._shown = "", self._number


def _name(node: LexborNode) -> str:
    return (node.tag or "").removeprefix(RENAMED)


def _is_hidden(name: str, attributes: Mapping[str, str | None]) -> bool:
    return (
        name in _DROPPED
        or "hidden" in attributes
        or attributes.get("aria-hidden") == "true"
        or _UNSEEN.search(attributes.get("style") or "") is not None
    )


def _joined(base: str, link: str | None) -> str:
    """Returns the absolute address of a link, or "" if it does not lead to another web page."""
    link = (link or "").strip()
    if not link or link.startswith("#") or len(link) > LONGEST_LINK:
        return ""
    try:
        target = urljoin(base, link)
    except ValueError:
        return ""
    return "".join(target.split()) if target.startswith(("http://", "https://")) else ""


def _marker(parent: _Element | None) -> str:
    if parent is None or parent.name != "ol":
        return "- "
    parent.items += 1
    return f"{parent.items}. "


def _row(cells: list[str], *, head: bool) -> str:
    filled = [cell for cell in cells if cell]
    # Pages also use tables for layout. A row that has a long cell or a cell with paragraphs is
    # treated as layout.
    if len(filled) < 2 or any(len(cell) > LONGEST_CELL or "\n\n" in cell for cell in cells):
        return "\n\n".join(filled)
    row = " | ".join(cell.replace("\n", " ") for cell in cells)
    return f"{row}\n{' | '.join('---' for _ in cells)}" if head else row
