"""Finds characters that make a command look different from the command that runs."""

import re
import unicodedata

_INVISIBLE = frozenset(
    chr(code)
    for code in (
        *range(0x200B, 0x2010),
        *range(0x202A, 0x202F),
        *range(0x2060, 0x2070),
        *(0x00AD, 0x034F, 0x061C, 0x115F, 0x1160, 0x180E, 0x3164, 0xFEFF, 0xFFA0),
    )
)
_JOINERS = frozenset("\u200c\u200d")
"""Invisible characters that emoji and some writing systems need. They are allowed, except in the
names of programs."""
_HIDING = re.compile(
    "[\\x06-\\x08\\x0b-\\x1f\\x7f-\\x9f" + "".join(sorted(_INVISIBLE - _JOINERS)) + "]"
)
"""Invisible characters and control characters. Tabs, line breaks and the characters that mark holes
(see `holes.py`) are not included."""
_NOT_PLAIN = re.compile(r"[^\n\t -~]")


def spoofs_name(name: str) -> bool:
    """Returns whether the name of a program has invisible characters, or letters of another
    alphabet that look like Latin letters."""
    if name.isascii():
        return hides_text(name)
    return hides_text(name) or bool(_JOINERS & set(name)) or _mixes_scripts(name)


def hides_text(text: str) -> bool:
    """Returns whether the text has control characters or characters that reverse or hide text."""
    return _HIDING.search(text) is not None


def _mixes_scripts(name: str) -> bool:
    scripts = {
        unicodedata.name(character, "UNKNOWN").split()[0]
        for character in unicodedata.normalize("NFC", name)
        if character.isalpha()
    }
    return len(scripts) > 1 and "LATIN" in scripts


def visible(text: str) -> str:
    """Returns the text with escapes in place of characters that a reader would not see."""
    return _NOT_PLAIN.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    character = found[0]
    if character.isprintable() and character not in _INVISIBLE:
        return character
    return f"\\u{ord(character):04x}"
