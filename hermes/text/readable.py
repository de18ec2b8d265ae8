"""A web page as people read it: Markdown of its main part, without what surrounds it."""

import re
from collections import Counter
from collections.abc import Mapping, Set
from urllib.parse import urljoin

from hermes.text.markup import Close, Open, Text, tokens
from hermes.types.value import Value

DEEPEST = 256
"""Elements inside each other; what stands further in is not shown."""
INDENTED = 8
"""Lists and quotes inside each other that show as such."""
LONGEST_LINK = 1000
LONGEST_CELL = 400


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_VOID = _names("area base br col embed hr img input link meta param source track wbr")
_DROPPED = _names(
    "audio button canvas datalist dialog footer iframe nav noembed noframes noscript object script"
    " select style svg template textarea video"
)
_BLOCKS = _names(
    "address article aside blockquote body caption center dd details div dl dt fieldset figcaption"
    " figure form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main menu ol p pre section"
    " summary table tbody td tfoot th thead tr ul"
)
# Pages forget to end them; they only count where they are hidden.
_INLINE = _names(
    "abbr acronym b bdi bdo big cite em font i ins kbd label mark q s samp small span strike strong"
    " sub sup time tt u var"
)
_LISTS = _names("ul ol menu")
_CELLS = _names("td th")
_GATHERING = _LISTS | _CELLS | {"li", "blockquote", "table", "tr"}
_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
_TABLE = _names("table")
_IN_TABLE = _TABLE | _CELLS | {"tr", "tbody", "thead", "tfoot", "caption"}
_ENDS: dict[str, tuple[Set[str], Set[str]]] = {
    "a": ({"a"}, _CELLS),
    "li": ({"li"}, _LISTS),
    "dt": ({"dt", "dd"}, {"dl"}),
    "dd": ({"dt", "dd"}, {"dl"}),
    "tr": ({"tr"}, _TABLE),
    "td": (_CELLS, _TABLE),
    "th": (_CELLS, _TABLE),
    **{heading: (_HEADINGS.keys(), _BLOCKS - _HEADINGS.keys()) for heading in _HEADINGS},
}
"""What a start tag ends without saying so, and what it can't look out of."""
_UNSEEN = re.compile(r"display\s*+:\s*+none|visibility\s*+:\s*+hidden", re.I)
_SPACES = re.compile(r"\s+")
_BLANK_LINES = re.compile(r"\n{3,}")
_TICKS = re.compile(r"`{3,}")


class Readable(Value):
    title: str
    text: str


def readable(html: str, url: str) -> Readable:
    """What the page at the URL says. Never fails, and takes time in proportion to its length."""
    page = _Page(url)
    for token in tokens(html):
        match token:
            case Text(text):
                page.say(text)
            case Open(name, attributes):
                page.open(name, attributes)
            case Close(name):
                page.close(name)
    return page.whole()


class _Element:
    """An element that is open. What stands in it is hidden or preformatted as it is."""

    __slots__ = ("hidden", "items", "name", "outer", "part", "pre")

    def __init__(self, name: str, attributes: Mapping[str, str], parent: "_Element | None") -> None:
        self.name = name
        self.hidden: bool = (parent is not None and parent.hidden) or _is_hidden(name, attributes)
        self.pre: bool = (parent is not None and parent.pre) or name == "pre"
        self.part = "main" if attributes.get("role") == "main" else name
        self.outer: list[str] | None = None
        """The blocks before it, while its own are gathered."""
        self.items = 0
        """Of a list, or head cells of a row, so far."""


class _Page:
    """A page in the making: the open elements, the blocks so far, the line being written."""

    def __init__(self, url: str) -> None:
        self._base = url
        self._title = ""
        self._stack: list[_Element] = []
        self._open: Counter[str] = Counter()
        self._deeper = 0
        self._blocks: list[str] = []
        self._parts: dict[str, list[str]] = {"main": [], "article": []}
        self._line = _Line()

    def say(self, text: str) -> None:
        top = self._top
        if self._deeper or (top and top.hidden):
            return
        if top is None or not (top.pre or top.name == "title"):
            self._line.add(_SPACES.sub(" ", text))
        elif top.pre:
            self._line.add(text)
        elif not self._title:
            self._title = " ".join(text.split())

    def open(self, name: str, attributes: Mapping[str, str]) -> None:
        if name in _VOID:
            self._place(name, attributes)
            return
        if name in _ENDS:
            self._end(*_ENDS[name])
        if name in _BLOCKS:
            if self._top and self._top.name == "p":
                self._pop()
            self._break()
        if len(self._stack) >= DEEPEST:
            self._deeper += 1
            return
        element = _Element(name, attributes, self._top)
        if name in _INLINE and not element.hidden:
            return
        if not (element.hidden or element.pre):
            self._begin(element, attributes)
        self._stack.append(element)
        self._open[name] += 1

    def close(self, name: str) -> None:
        if self._deeper:
            self._deeper -= 1
        else:
            self._end({name}, _TABLE if name in _IN_TABLE else _CELLS)
        if name in _BLOCKS:
            self._break()

    def whole(self) -> Readable:
        while self._stack:
            self._pop()
        self._break()
        blocks = self._parts["main"] or self._parts["article"] or self._blocks
        return Readable(title=self._title, text="\n\n".join(blocks))

    @property
    def _top(self) -> _Element | None:
        return self._stack[-1] if self._stack else None

    def _place(self, name: str, attributes: Mapping[str, str]) -> None:
        """Puts an element that has no content."""
        if self._deeper or (self._top and self._top.hidden):
            return
        if name == "br":
            self._line.add("\n")
        elif name == "hr":
            self._break()
        elif name == "img" and (said := " ".join(attributes.get("alt", "").split())):
            self._line.add(f"[image: {said}]")
        elif name == "base" and "href" in attributes:
            self._base = _joined(self._base, attributes["href"]) or self._base

    def _begin(self, element: _Element, attributes: Mapping[str, str]) -> None:
        if element.name in _GATHERING or element.part in self._parts:
            self._break()
            element.outer, self._blocks = self._blocks, []
        if element.name == "th" and self._top and self._top.name == "tr":
            self._top.items += 1
        elif element.name == "code":
            self._line.add("`")
        elif element.name == "a":
            self._line.begin_link(_joined(self._base, attributes.get("href", "")))

    def _end(self, names: Set[str], walls: Set[str]) -> None:
        """Ends the innermost element of those names, and all in it, unless a wall is between."""
        if not any(self._open[name] for name in names):
            return
        for element in reversed(self._stack):
            if element.name in names:
                while self._pop() is not element:
                    pass
                return
            if element.name in walls:
                return

    def _pop(self) -> _Element:
        element = self._stack.pop()
        self._open[element.name] -= 1
        parent = self._top
        if element.hidden or (parent and parent.pre):
            return element
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
            inner, self._blocks = self._blocks, element.outer
            self._blocks += self._folded(element, parent, inner)
        return element

    def _folded(self, element: _Element, parent: _Element | None, inner: list[str]) -> list[str]:
        """The blocks that an element's own become."""
        name = element.name
        if name in _CELLS:
            return ["\n\n".join(inner)] if inner or (parent and parent.name == "tr") else []
        if not any(inner):
            return []
        shown = self._open["li"] + self._open["blockquote"] < INDENTED
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
        """Ends the line; what comes next is another block."""
        if self._top and self._top.pre:
            self._line.wrap()
        elif said := self._line.take():
            self._blocks.append(said)

    def _fence(self) -> None:
        if text := self._line.take_raw():
            fence = "`" * max((len(run) + 1 for run in _TICKS.findall(text)), default=3)
            self._blocks.append(f"{fence}\n{text}\n{fence}")


class _Line:
    """Text that runs on, with the link that is open in it."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._target = ""
        """Where the link leads; empty where there is none."""
        self._start = 0
        """Of the link's text."""

    def add(self, text: str) -> None:
        self._pieces.append(text)

    def wrap(self) -> None:
        if self._pieces and not self._pieces[-1].endswith("\n"):
            self._pieces.append("\n")

    def begin_link(self, target: str) -> None:
        self.end_link()
        self._target, self._start = target, len(self._pieces)

    def end_link(self) -> None:
        self._link()
        self._target = ""

    def take(self) -> str:
        """The line without needless space; it then is empty. A link without text waits for some."""
        self._link()
        lines = (" ".join(line.split()) for line in "".join(self._pieces).split("\n"))
        self._pieces, self._start = [], 0
        return _BLANK_LINES.sub("\n\n", "\n".join(lines).strip())

    def take_raw(self) -> str:
        """The line as it is; it then is empty."""
        text = "".join(self._pieces).strip("\n").rstrip()
        self._pieces, self._start = [], 0
        return text

    def _link(self) -> None:
        said = "".join(self._pieces[self._start :]) if self._target else ""
        if text := " ".join(said.split()):
            before, after = " " * said[0].isspace(), " " * said[-1].isspace()
            self._pieces[self._start :] = [f"{before}[{text}]({self._target}){after}"]
            self._target = ""


def _is_hidden(name: str, attributes: Mapping[str, str]) -> bool:
    if name in ("html", "body"):  # hidden until a script has run
        return False
    return (
        name in _DROPPED
        or "hidden" in attributes
        or attributes.get("aria-hidden") == "true"
        or _UNSEEN.search(attributes.get("style", "")) is not None
    )


def _joined(base: str, link: str) -> str:
    """The web page that a link leads to, or nothing."""
    link = link.strip()
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
    # Pages are laid out with tables too: what is long or has paragraphs is no cell of data.
    if len(filled) < 2 or any(len(cell) > LONGEST_CELL or "\n\n" in cell for cell in cells):
        return "\n\n".join(filled)
    row = " | ".join(cell.replace("\n", " ") for cell in cells)
    return f"{row}\n{' | '.join('---' for _ in cells)}" if head else row
