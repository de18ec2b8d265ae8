"""Breaks text between words, for terminals that are narrower than the text."""

import re
import textwrap

_FIRST_COLUMN = re.compile(r"\S+(?: \S+)* {2,}")
"""Matches the first column of a line that has several columns, such as `model      `."""
_GAP = re.compile(" {2,}")
HANGING_INDENT = 4
"""Number of columns by which `hang` indents a text under its label."""


def wrap_words(text: str, columns: int) -> str:
    """Breaks lines that have more than `columns` characters. A line is broken between words.

    If a line begins with a label and a gap, as in a table, its further lines begin under the text
    after the gap. Indented lines are returned unchanged, because they are commands to copy. A word
    that is longer than a line is not broken.
    """
    return "\n".join(_wrap_line(line, columns) for line in text.split("\n"))


def hang(label: str, text: str, columns: int | None) -> str:
    """Returns the label followed by the text. Further lines of the text are aligned with its first
    line. If the label takes more than a third of a line, the text begins below the label. `columns`
    is None for a line of any length."""
    if columns is None or len(label) + len(text) <= columns:
        return label + text
    below = len(label) * 3 > columns
    indent = " " * (HANGING_INDENT if below else len(label))
    broken = textwrap.fill(
        _GAP.sub("  ", text),
        columns,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return f"{label.rstrip()}\n{broken}" if below else label + broken.lstrip(" ")


def _wrap_line(line: str, columns: int) -> str:
    if len(line) <= columns or line.startswith(" "):
        return line
    first = _FIRST_COLUMN.match(line)
    label = first[0] if first and len(first[0]) <= columns // 2 else ""
    return textwrap.fill(
        # Wrapped columns can't be aligned, so the gaps between them are reduced to two spaces.
        label + _GAP.sub("  ", line.removeprefix(label)),
        columns,
        subsequent_indent=" " * len(label),
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
    )


class StreamWrapper:
    """Wraps text that arrives in pieces. A word is returned as soon as its end is known."""

    def __init__(self, columns: int) -> None:
        self._columns = columns
        self._used = 0
        self._word = ""

    def feed(self, piece: str) -> str:
        """Adds a piece, and returns all words whose end is known now, with line breaks."""
        shown = ""
        for character in piece:
            if character.isspace():
                shown += self.flush() + self._space(character)
            else:
                self._word += character
        return shown

    def flush(self) -> str:
        """Returns the last word. If the word does not fit into the line, a line break precedes it.
        Call this method at the end of the text."""
        word, self._word = self._word, ""
        broken = self._used > 0 and self._used + len(word) > self._columns
        self._used = len(word) if broken else self._used + len(word)
        return "\n" + word if broken else word

    def _space(self, character: str) -> str:
        if character == "\n":
            self._used = 0
            return character
        if self._used >= self._columns:
            return ""
        self._used += 1
        return character
