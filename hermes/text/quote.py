"""Words of others as data: nothing in them can pass for words of ours."""

import re
import unicodedata

_LOOK = 4
"""Times the length of a line in which it is looked for: spaces and hidden letters fall away."""
_JOINERS = "\u200c\u200d"
# Chat templates are made of these: a server may take them for its own.
_TEMPLATE = re.compile(r"<(?=[|\uff5c])")


def remove_invisible(text: str) -> str:
    """The text without what nobody sees: control characters, reversed or hidden letters."""
    return "\n".join("".join(filter(_visible, line)).rstrip() for line in text.splitlines())


def quote(text: str) -> str:
    """The text with a mark before each line, so that none can be a heading, a fence or a role."""
    lines = _TEMPLATE.sub("< ", remove_invisible(text)).split("\n")
    return "\n".join(f"> {line}".rstrip() for line in lines)


def shorten(text: str, longest: int) -> str:
    """The text on one line, cut where it is too long."""
    looked_at = text[: _LOOK * longest]
    line = " ".join(_TEMPLATE.sub("< ", remove_invisible(looked_at)).split())
    if len(line) <= longest and len(looked_at) == len(text):
        return line
    return f"{line[: longest - 1].rstrip()}…"


def _visible(letter: str) -> bool:
    # Emoji, Persian and the scripts of India are written with joiners.
    return letter == "\t" or letter in _JOINERS or unicodedata.category(letter) not in _HIDDEN


_HIDDEN = frozenset({"Cc", "Cf", "Cs"})
