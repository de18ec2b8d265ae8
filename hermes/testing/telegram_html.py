"""Parses the HTML of the Bot API as strictly as Telegram documents it."""

import html
import re

from hermes.types.value import Value

_TOKEN = re.compile(r"<[^<>]*>?|&[^\s;&<>]*;?|[^<&]+")
_TAG = re.compile(r"</?([a-z-]+)((?:\s+[a-z-]+=\"[^\"<>]*\")*)>")
_ATTRIBUTE = re.compile(r"([a-z-]+)=\"([^\"]*)\"")
_CHARACTER = re.compile(r"&(?:lt|gt|amp|quot|#\d+|#x[0-9a-fA-F]+);")
_ATTRIBUTES = {
    **dict.fromkeys(("b", "strong", "i", "em", "u", "ins", "s", "strike", "del", "pre"), ()),
    **dict.fromkeys(("tg-spoiler", "blockquote"), ()),
    "a": ("href",),
    "code": ("class",),
}
"""Maps each supported tag to the attributes that the tag may have."""


class BadEntities(Exception):
    """Raised if the text can't be parsed."""


class FormattedText(Value):
    """A text as a chat shows it."""

    text: str
    entities: tuple[tuple[str, str, int, int], ...] = ()
    """One tuple for each formatted part of the text: (tag, attributes, start, end)."""


def parse_html(source: str) -> FormattedText:
    """Returns the text without tags, and its formatted parts. If Telegram would refuse the HTML,
    raises BadEntities with Telegram's description of the error."""
    text = ""
    entities: list[tuple[str, str, int, int]] = []
    opened: list[tuple[str, str, int]] = []
    for token in _TOKEN.finditer(source):
        part, at = token[0], len(source[: token.start()].encode())
        if part.startswith("&"):
            text += html.unescape(part) if _CHARACTER.fullmatch(part) else part
        elif not part.startswith("<"):
            text += part
        elif part.startswith("</"):
            if not opened:
                raise BadEntities(f"Unexpected end tag at byte offset {at}")
            name, attributes, start = opened.pop()
            if part != f"</{name}>":
                raise BadEntities(
                    f'Unmatched end tag at byte offset {at}, expected "</{name}>", found "{part}"'
                )
            entities.append((name, attributes, start, len(text)))
        else:
            name, attributes = _start_tag(part, at)
            if any(outer in ("pre", "code") for outer, _, _ in opened) and (
                name != "code" or opened[-1][0] != "pre"
            ):
                raise BadEntities(f"Entity in code at byte offset {at}")
            if name == "blockquote" and any(outer == "blockquote" for outer, _, _ in opened):
                raise BadEntities(f"Nested blockquote at byte offset {at}")
            opened.append((name, attributes, len(text)))
    if opened:
        raise BadEntities(f'Can\'t find end tag corresponding to start tag "{opened[-1][0]}"')
    return FormattedText(text=text, entities=tuple(entities))


def _start_tag(part: str, at: int) -> tuple[str, str]:
    tag = _TAG.fullmatch(part)
    if tag is None or tag[1] not in _ATTRIBUTES:
        raise BadEntities(f'Unsupported start tag "{part[1:].rstrip(">")}" at byte offset {at}')
    names = [name for name, _ in _ATTRIBUTE.findall(tag[2])]
    if any(name not in _ATTRIBUTES[tag[1]] for name in names):
        raise BadEntities(f'Unexpected attribute of tag "{tag[1]}" at byte offset {at}')
    return tag[1], tag[2].strip()
