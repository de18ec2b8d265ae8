"""Sanitizes a web page so that the HTML parser needs little time and memory for every page.

The parser (lexbor) has no limits. Its time grows with the square of the nesting depth and with the
square of the number of attributes of a tag, and it needs 3 GB of memory for 75 kB of misnested
`<b>` (https://github.com/lexbor/lexbor/issues/340). Decision 0009 has the measurements.
"""

import re

from hermes.types.value import Value

MOST_STEPS = 50_000_000
"""Limit on the parser's work. For each tag, the number of elements that are open at that moment is
added to the work. The limit corresponds to about 0.3 s of the parser's time. The part of the page
after the limit is left out. A well-formed page of any length stays far below the limit."""
LINK_NUMBER = "n"
"""Attribute that identifies a link. It is needed because the parser repeats a link in every block
that the link spans."""
RENAMED = "x-"
"""Prefix that is added to the names of some elements, so that the parser does not apply its special
rules to these elements."""

_TAG = re.compile(r"<(/?)([a-zA-Z][^\s/>]*+)")
_PLAIN_NAME = re.compile(r"[a-z][a-z0-9-]*+")
_ATTRIBUTE = re.compile(
    r"""[\s/]*+([^\s/>][^\s/>=]*+)"""
    r"""(?:\s*+=\s*+(?:"([^"]*+)(?:"|\Z)|'([^']*+)(?:'|\Z)|([^\s>]*+)))?+"""
)
_TAG_END = re.compile(r"[\s/]*+>")
_RAW = {
    name: re.compile(rf"</{name}(?=[\s/>])", re.I)
    for name in ("script", "style", "iframe", "noembed", "noframes", "textarea", "title")
}
"""Elements that contain only text, each with a pattern for its end tag."""
_ATTRIBUTES = frozenset({"alt", "aria-hidden", "hidden", "href", "role", "style"})
_VOID = frozenset({"base", "br", "hr", "img"})
_CELLS = frozenset({"td", "th"})
_ROWS = _CELLS | {"tr"}
_ROW_GROUPS = frozenset({"tbody", "tfoot", "thead"})
_IN_TABLE = _ROWS | _ROW_GROUPS | {"caption"}
_ENDED_BY_START: dict[str, frozenset[str]] = {
    "li": frozenset({"li", "p"}),
    "tr": _ROWS,
    **dict.fromkeys(_CELLS, _CELLS),
    **dict.fromkeys(_ROW_GROUPS, _ROWS | _ROW_GROUPS),
    **dict.fromkeys(("blockquote", "div", "dl", "ol", "p", "pre", "ul"), frozenset({"p"})),
}
"""Maps an element to the open elements that are closed when the element starts."""
_ENDED_BY_END: dict[str, frozenset[str]] = {
    "table": _ROWS | _ROW_GROUPS,
    "li": frozenset({"p"}),
    **dict.fromkeys(
        ("article", "aside", "blockquote", "div", "main", "ol", "section", "td", "th", "ul"),
        frozenset({"li", "p"}),
    ),
}
"""Maps an element to the inner elements that its end tag closes together with the element itself.
The end tag closes them only if no other elements are still open inside the element. `dd` and `dt`
are not included, because the parser nests `dd`, `dt` and `li` in each other without a limit."""
_LEFT_OUT = frozenset(
    {
        *("area", "body", "col", "colgroup", "embed", "frame", "frameset", "head", "html", "input"),
        *("link", "meta", "optgroup", "option", "param", "source", "track", "wbr"),
    }
)
# These elements get another name, so that the parser does not treat them in a special way. The
# parser would reopen `b` and other formatting elements in every later block, and elements such as
# `template` change how the parser reads the text after them. `a` keeps its name, because the parser
# reopens at most one `a`.
_SPECIAL = frozenset(
    {
        *("b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt"),
        *("u", "listing", "math", "noscript", "plaintext", "select", "svg", "template", "xmp"),
    }
)


class SanitizedPage(Value):
    text: str
    """The HTML of the page, with only the tags and attributes that matter to a reader."""
    depth: int = 0
    """The nesting depth of the page: the largest number of elements that are open in the HTML
    parser at the same time. Elements that the parser adds are not counted."""
    cut: bool = False
    """Whether the end of the page was left out because the page is nested too deep."""


def sanitized(html: str) -> SanitizedPage:
    """Sanitizes a page. The time is proportional to the page's length, and the function never
    fails.

    As in a browser, a tag, a comment or a script that is open at the end of the page ends there.
    """
    page = _Rewriter()
    at = 0
    while (start := html.find("<", at)) >= 0:
        page.pieces.append(html[at:start])
        if (tag := _TAG.match(html, start)) is None:
            at = _behind(html, start)
            if at == start + 1:
                page.pieces.append("&lt;")
            continue
        name = tag[2].lower()
        attributes, at = _attributes(html, tag.end())
        if at < 0:
            return page.whole()
        if tag[1]:
            page.close(name)
        elif name in _RAW:
            end = _RAW[name].search(html, at)
            stop = end.start() if end else len(html)
            if name == "title":
                page.pieces.append(f"<title>{html[at:stop].replace('<', '&lt;')}</title>")
            at = stop
        else:
            page.open(name, attributes)
        if page.steps > MOST_STEPS:
            return page.whole()
    page.pieces.append(html[at:])
    return page.whole()


class _Rewriter:
    """Collects the sanitized page, and computes an upper bound for the number of elements that the
    HTML parser will have open at the same time."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.steps = 0
        self._depth = 0
        self._open: list[str] = []
        """The elements that may be open in the HTML parser, which will read the sanitized page. An
        element is removed from this list only by a tag that surely ends the element in that parser.
        So the list can be too long but never too short."""
        self._tables = 0
        self._links = 0

    def open(self, name: str, attributes: dict[str, str]) -> None:
        if name in _LEFT_OUT:
            return
        if name in _IN_TABLE and not self._tables:
            # The parser drops the tags of cells outside a table. A horizontal rule replaces each
            # tag, so that the words of two cells are not joined.
            name = "hr"
        if name == "a":
            self._links += 1
            attributes[LINK_NUMBER] = str(self._links)
        name = _written(name)
        given = "".join(f' {one}="{value}"' for one, value in attributes.items())
        self.pieces.append(f"<{name}{given}>")
        self.steps += len(self._open)
        if name in _VOID:
            return
        while self._open and self._open[-1] in _ENDED_BY_START.get(name, ()):
            self._open.pop()
        self._open.append(name)
        self._tables += name == "table"
        self._depth = max(self._depth, len(self._open))

    def close(self, name: str) -> None:
        if name in _LEFT_OUT or name in _RAW:
            return
        name = _written(name)
        self.pieces.append(f"</{name}>")
        self.steps += len(self._open)
        at = len(self._open) - 1
        implied = _ENDED_BY_END.get(name, ())
        while at > 0 and self._open[at] in implied and self._open[at] != name:
            at -= 1
        if at >= 0 and self._open[at] == name:
            del self._open[at:]
            self._tables -= name == "table"

    def whole(self) -> SanitizedPage:
        cut = self.steps > MOST_STEPS
        return SanitizedPage(text="".join(self.pieces), depth=self._depth, cut=cut)


def _written(name: str) -> str:
    if name == "form":  # the element may stay open after its end tag
        return "div"
    if name in _SPECIAL:
        return RENAMED + name
    return name if _PLAIN_NAME.fullmatch(name) else f"{RENAMED}unknown"


def _attributes(html: str, at: int) -> tuple[dict[str, str], int]:
    """Returns the relevant attributes of a tag and the index after the tag. The index is -1 if the
    tag never ends."""
    found: dict[str, str] = {}
    while (end := _TAG_END.match(html, at)) is None:
        if (attribute := _ATTRIBUTE.match(html, at)) is None:
            return found, -1
        at = attribute.end()
        if (name := attribute[1].lower()) in _ATTRIBUTES:
            value = attribute[2] or attribute[3] or attribute[4] or ""
            found.setdefault(name, value.replace('"', "&quot;").replace("<", "&lt;"))
    return found, end.end()


def _behind(html: str, start: int) -> int:
    """Returns the index after the comment, the declaration or the plain `<` character at
    `start`."""
    if html.startswith("<!--", start):
        end = html.find("-->", start + 2)
        return end + 3 if end >= 0 else len(html)
    if html.startswith(("<!", "<?", "</"), start):
        end = html.find(">", start)
        return end + 1 if end >= 0 else len(html)
    return start + 1
