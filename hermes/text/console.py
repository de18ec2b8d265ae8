"""Removes characters that control a terminal or hide text, for output in terminals and logs."""

import re

_SEQUENCES = r"\x1b(?:\[[0-?]*[ -/]*[@-~]"  # sequences for colours and the cursor
_ESCAPES = re.compile(
    _SEQUENCES
    + r"|[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?"  # sequences for titles, links and other strings
    r"|[ -/]*[0-~])"
)
# Some escape sequences contain a string, such as a window title. A sequence whose string has no end
# is not matched, because the match would also remove the text after the sequence.
_WHOLE_ESCAPES = re.compile(_SEQUENCES + r"|[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)|[ -/]*[0-~])")
_CONTROLS = {code: None for code in (*range(32), *range(127, 160)) if chr(code) not in "\t\n"}
# Zero-width joiners are kept, because emoji, Persian and the scripts of India need them.
_UNSAFE = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # changes of the writing direction
    "\u00ad\u180e\u200b\u2060-\u2065\u206a-\u206f\ufeff\ufff9-\ufffb"  # invisible characters
    "\ud800-\udfff"  # halves of a character
    "\U000e0000-\U000e0fff"  # tags, which can spell out a hidden text
)
_REMOVED = re.compile(f"[{_UNSAFE}]")
_ESCAPED = re.compile(f"[{_UNSAFE}\u2028\u2029]")
_LINE_BREAKS = re.compile("\r\n|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")


def console_text(data: bytes) -> str:
    """Returns the output of a command as a person would see it in a terminal.

    Escapes and control characters are removed. If a line was overwritten, such as a progress bar,
    only its last state is kept.
    """
    text = _ESCAPES.sub("", data.decode("utf-8", errors="replace"))
    lines = [line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n")]
    return "\n".join(lines).translate(_CONTROLS)


def printable(text: str) -> str:
    """Removes control characters, escapes, direction changes and invisible characters.

    Line breaks, tabs and zero-width joiners are kept.
    """
    if text.isprintable():
        return text
    return _REMOVED.sub("", _WHOLE_ESCAPES.sub("", text))


def printable_line(text: str) -> str:
    r"""Returns the printable text on one line, with `\n` for line breaks."""
    if text.isprintable():
        return text
    return printable(_LINE_BREAKS.sub(r"\\n", text))


def visible(text: str) -> str:
    r"""Returns the text with an escape such as `\u202e` for each character that `printable` would
    remove, so that a person sees everything that the text contains."""
    if text.isprintable():
        return text
    return _ESCAPED.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def printable_json(text: str) -> str:
    r"""Escapes the characters in JSON that `printable` would remove, such as `\u202e`."""
    if text.isprintable():
        return text
    return _ESCAPED.sub(_json_escape, text)


def _json_escape(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
