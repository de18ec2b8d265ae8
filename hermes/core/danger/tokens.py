"""Reads the tokens between the words of a command: blanks, keywords, assignments and
redirections."""

import re

from hermes.core.danger.syntax import (
    Assignment,
    LiteralText,
    NotParsed,
    Redirection,
    Word,
)
from hermes.core.danger.words import BLANK, ENDS_WORD, WordReader

MAX_HERE_DOCUMENTS = 50
KEYWORDS = "if|then|elif|else|fi|while|until|for|select|case|esac|do|done|in|function|time|coproc"

_SKIPPED = re.compile(r"(?:[ \t]|\\\n)+")
_SKIPPABLE = frozenset(" \t\\#\n")
_COMMENT = re.compile(r"#[^\n]*")
_KEYWORD = re.compile(rf"(?:{KEYWORDS}|\[\[|!|\{{|\}})(?=[\s;&|<>()]|$)")
_REDIRECTION = re.compile(r"(\d+|\{\w+\})?(&>>|&>|<<<|<<-|<<|<>|<&|>&|>>|>\||<(?!\()|>(?!\())")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(?:\[([^\]$`\"'\\]*)\])?(\+)?=", re.ASCII)


class TokenReader:
    """Reads tokens, beginning at the position of a `WordReader`."""

    def __init__(self, reader: WordReader) -> None:
        self.reader = reader

    def assignment(self) -> Assignment | None:
        """Reads an assignment. Returns None if there is no assignment at this position."""
        reader = self.reader
        found = _ASSIGNMENT.match(reader.text, reader.at)
        if not found:
            return None
        reader.at = found.end()
        append = bool(found[3])
        if reader.peek() != "(":
            value = reader.word()
            return Assignment(name=found[1], value=value, append=append, index=found[2])
        reader.at += 1
        items: list[Word] = []
        while True:
            self.skip(lines=True)
            if reader.peek() == ")":
                reader.at += 1
                return Assignment(name=found[1], items=tuple(items), append=append)
            items.append(self.required_word())

    def required_word(self) -> Word:
        """Reads a word and the blanks after it. Raises NotParsed if there is no word."""
        word = self.reader.word()
        if not word:
            raise NotParsed(f"{self.reader.peek(10)!r} is not expected here")
        self.skip()
        return word

    def redirections(self) -> list[Redirection]:
        """Reads the redirections after a compound command."""
        found: list[Redirection] = []
        self.skip()
        while self.redirection(found):
            self.skip()
        return found

    def redirection(self, found: list[Redirection]) -> bool:
        """Reads a redirection, and appends it to `found`. Returns False if there is no
        redirection."""
        reader = self.reader
        matched = _REDIRECTION.match(reader.text, reader.at)
        if not matched:
            return False
        reader.at = matched.end()
        self.skip()
        start = reader.at
        target = self.required_word()
        if matched[2] in ("<<", "<<-"):
            raw = reader.text[start : reader.at].rstrip(BLANK)
            target = self._here_document(target, raw, indented=matched[2] == "<<-")
        found.append(
            Redirection(operator=matched[2].rstrip("-"), target=target, descriptor=matched[1] or "")
        )
        return True

    def _here_document(self, delimiter: Word, raw: str, *, indented: bool) -> Word:
        """Returns the body of a here-document, which begins on the line after the operator. The
        reader stays where it is, and skips the body when it arrives at that line."""
        reader = self.reader
        if len(reader.skips) >= MAX_HERE_DOCUMENTS:
            raise NotParsed("the command has too many here-documents")
        line_end = reader.text.find("\n", reader.at)
        if line_end < 0:
            raise NotParsed("a here-document has no body")
        begin = reader.skips.get(line_end, line_end + 1)
        ends = "".join(part.text for part in delimiter if isinstance(part, LiteralText))
        tabs = r"\t*" if indented else ""
        last = re.compile(rf"^{tabs}{re.escape(ends)}$", re.MULTILINE).search(reader.text, begin)
        body = reader.text[begin : last.start() if last else len(reader.text)]
        reader.skips[line_end] = last.end() if last else len(reader.text)
        if any(character in raw for character in "\"'\\"):
            return (LiteralText(text=body, quoted=True),)
        inner = reader.inside(body)
        word = inner.quoted_text("")
        reader.tokens, reader.scripts = inner.tokens, inner.scripts
        return word

    def skip(self, *, lines: bool = False) -> None:
        """Skips blanks and comments; with `lines`, also line breaks."""
        reader = self.reader
        text = reader.text
        while text[reader.at : reader.at + 1] in _SKIPPABLE:
            if found := _SKIPPED.match(text, reader.at):
                reader.at = found.end()
            if text.startswith("#", reader.at) and _begins_word(text, reader.at):
                found = _COMMENT.match(text, reader.at)
                assert found
                reader.at = found.end()
            if not lines or not text.startswith("\n", reader.at):
                return
            reader.count()
            reader.skip_line_end()

    def keyword(self) -> str:
        """Returns the keyword at the position of the reader; empty if there is no keyword."""
        found = _KEYWORD.match(self.reader.text, self.reader.at)
        return found[0] if found else ""


def _begins_word(text: str, at: int) -> bool:
    return at == 0 or text[at - 1] in ENDS_WORD
