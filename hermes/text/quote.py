"""Quotes untrusted text in prompts, so that it can't be mistaken for our own text."""

import re
import unicodedata

_LOOK = 4
"""Only the first `_LOOK × length` characters of a text are read. More than `length` are needed,
because removing spaces and hidden characters makes the text shorter."""
_JOINERS = "\u200c\u200d"
# The start of a chat template's marker, such as `<|`. A space is inserted into the start, because a
# model server could otherwise take the marker for the beginning of another message.
_TEMPLATE = re.compile(r"<(?=[|\uff5c])")


def remove_invisible(text: str) -> str:
    """Removes control characters, direction changes and other invisible characters."""
    return "\n".join("".join(filter(_visible, line)).rstrip() for line in text.splitlines())


def quote(text: str) -> str:
    """Puts `>` before each line, so that no line can be read as a heading, a fence or a role."""
    lines = _TEMPLATE.sub("< ", remove_invisible(text)).split("\n")
    return "\n".join(f"> {line}".rstrip() for line in lines)


def shorten(text: str, longest: int) -> str:
    """Returns the text on one line, cut to the maximum length."""
    looked_at = text[: _LOOK * longest]
    line = " ".join(_TEMPLATE.sub("< ", remove_invisible(looked_at)).split())
    if len(line) <= longest and len(looked_at) == len(text):
        return line
    return f"{line[: longest - 1].rstrip()}…"


def _visible(letter: str) -> bool:
    # Zero-width joiners are kept, because emoji, Persian and the scripts of India need them.
    return letter == "\t" or letter in _JOINERS or unicodedata.category(letter) not in _HIDDEN


_HIDDEN = frozenset({"Cc", "Cf", "Cs"})
