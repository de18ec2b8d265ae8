"""HTML as a stream of tags and text, in time that grows with its length only."""

import re
from collections.abc import Iterator
from html import unescape
from typing import NamedTuple

# The parser of the standard library walks over the rest of a broken page again for every tag: a
# hundred kilobytes of `<a ` keep it busy for minutes.
_TAG = re.compile(r"<(/?)([a-zA-Z][^\s/>]*+)")
_ATTRIBUTE = re.compile(
    r"""[\s/]*+([^\s/>][^\s/>=]*+)"""
    r"""(?:\s*+=\s*+(?:"([^"]*+)(?:"|\Z)|'([^']*+)(?:'|\Z)|([^\s>]*+)))?+"""
)
_TAG_END = re.compile(r"[\s/]*+>")
# `int` refuses numbers of thousands of digits.
_ENDLESS = re.compile(r"&#[0-9]{8,}+;?")
_RAW = {
    name: re.compile(rf"</{name}(?=[\s/>])", re.I)
    for name in ("script", "style", "iframe", "noembed", "noframes", "textarea", "title")
}
"""Elements with nothing but text in them, and what ends them."""


class Text(NamedTuple):
    text: str


class Open(NamedTuple):
    name: str
    attributes: dict[str, str]


class Close(NamedTuple):
    name: str


Token = Text | Open | Close


def tokens(html: str) -> Iterator[Token]:
    """What the page consists of. Never fails: as in a browser, whatever is open at the end of
    the page (a tag, a comment, a script) ends there."""
    at = 0
    while (start := html.find("<", at)) >= 0:
        if start > at:
            yield Text(_unescaped(html[at:start]))
        if (tag := _TAG.match(html, start)) is None:
            at = _behind(html, start)
            if at == start + 1:
                yield Text("<")
            continue
        name = tag[2].lower()
        attributes, at = _attributes(html, tag.end())
        if at < 0:
            return
        if tag[1]:
            yield Close(name)
            continue
        yield Open(name, attributes)
        if name in _RAW:
            end = _RAW[name].search(html, at)
            stop = end.start() if end else len(html)
            yield Text(_unescaped(html[at:stop]))
            at = stop
    if at < len(html):
        yield Text(_unescaped(html[at:]))


def _attributes(html: str, at: int) -> tuple[dict[str, str], int]:
    """The attributes from there on, and where the tag ends; -1 when it does not."""
    found: dict[str, str] = {}
    while (end := _TAG_END.match(html, at)) is None:
        if (attribute := _ATTRIBUTE.match(html, at)) is None:
            return found, -1
        name, double, single, bare = attribute.groups()
        found.setdefault(name.lower(), _unescaped(double or single or bare or ""))
        at = attribute.end()
    return found, end.end()


def _behind(html: str, start: int) -> int:
    """Where it goes on after a comment, a declaration, or a `<` that is just that."""
    if html.startswith("<!--", start):
        end = html.find("-->", start + 2)
        return end + 3 if end >= 0 else len(html)
    if html.startswith(("<!", "<?", "</"), start):
        end = html.find(">", start)
        return end + 1 if end >= 0 else len(html)
    return start + 1


def _unescaped(text: str) -> str:
    return unescape(_ENDLESS.sub("\ufffd", text)) if "&" in text else text
