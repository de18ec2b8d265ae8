"""Reads the words of a shell command: quotes, expansions and substitutions."""

import re
from collections.abc import Callable

from hermes.core.danger.holes import ENDLESS, ONE_WORD
from hermes.core.danger.syntax import (
    Arithmetic,
    LiteralText,
    NotParsed,
    Parameter,
    Part,
    ShellScript,
    Substitution,
    Word,
)

MAX_NESTING = 40
MAX_TOKENS = 8_000
"""Largest number of words and expansions in a command. A command with more is not parsed."""
MAX_SCRIPTS = 150
"""Largest number of commands and substitutions in a command line."""

_PLAIN = re.compile(r"[^ \t\n;&|<>()$`\"'\\]+")
_IN_QUOTES = re.compile(r"[^\"$`\\]+")
_IN_BRACES = re.compile(r"[^}\"$`\\']+")
_IN_ARITHMETIC = re.compile(r"[^()$`\\]+")
_BACKTICKS = re.compile(r"[^`\\]*(?:\\.[^`\\]*)*", re.DOTALL)
_ANSI_QUOTES = re.compile(r"\$'([^'\\]*(?:\\.[^'\\]*)*)'", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_]\w*|\d+|[@*#?$!-]", re.ASCII)
_SHORT_NAME = re.compile(r"[A-Za-z_]\w*|[\d@*#?$!-]", re.ASCII)
_OPERATOR = re.compile(r":?[-=?+]|##?|%%?|//?|\^\^?|,,?|@|:")
_ESCAPE = re.compile(
    r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|c(.)|(.))",
    re.DOTALL,
)
_CONTROLS = {"a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n"} | {
    "r": "\r",
    "t": "\t",
    "v": "\v",
}
BLANK = " \t"
ENDS_WORD = frozenset(" \t\n;&|<>()")


def unescape(text: str) -> str:
    r"""Returns a text with its backslash escapes resolved, as in `$'…'`."""

    def character(found: re.Match[str]) -> str:
        hexadecimal = found[1] or found[2] or found[3]
        if hexadecimal or found[4]:
            code = int(hexadecimal, 16) if hexadecimal else int(found[4], 8) & 255
            return chr(code) if ord(ENDLESS) < code <= 0x10FFFF else ONE_WORD
        if found[5]:
            return ONE_WORD
        return _CONTROLS.get(found[6], found[6] if found[6] in "\\'\"?" else "\\" + found[6])

    return _ESCAPE.sub(character, text)


class WordReader:
    """A position in the text of a command, from which words are read."""

    def __init__(
        self, text: str, script: Callable[["WordReader", str], ShellScript], depth: int
    ) -> None:
        self.text = text
        self.at = 0
        self.depth = depth
        self.tokens = 0
        self.scripts = 0
        self.skips: dict[int, int] = {}
        """For each line break that is followed by here-documents: the position at which the last of
        these documents ends."""
        self.skipped: set[int] = set()
        """The positions of the line breaks after which the reader has skipped here-documents."""
        self._script = script

    def peek(self, length: int = 1) -> str:
        """Returns the next characters without reading them."""
        return self.text[self.at : self.at + length]

    def enter(self) -> None:
        """Begins a nested construct, such as a substitution. Raises NotParsed if it is nested too
        deeply."""
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise NotParsed("the command is nested too deeply")

    def count(self, tokens: int = 1) -> None:
        self.tokens += tokens
        if self.tokens > MAX_TOKENS:
            raise NotParsed("the command has too many words")

    def skip_line_end(self) -> None:
        """Skips a line break and the here-documents after it."""
        if self.at in self.skips:
            self.skipped.add(self.at)
        self.at = self.skips.get(self.at, self.at + 1)

    def inside(self, text: str) -> "WordReader":
        """Returns a reader of a nested text, such as the body of a here-document. The words and
        commands that this reader has read count towards the limits of the new reader."""
        inner = WordReader(text, self._script, self.depth)
        inner.enter()
        inner.tokens, inner.scripts = self.tokens, self.scripts
        inner.count_command()
        return inner

    def count_command(self) -> None:
        self.scripts += 1
        if self.scripts > MAX_SCRIPTS:
            raise NotParsed("the command has too many parts")

    def word(self) -> Word:
        """Reads a word up to the next blank or operator. The word may be empty."""
        self.count()
        parts: list[Part] = []
        text, end = self.text, len(self.text)
        while self.at < end:
            character = text[self.at]
            if found := _PLAIN.match(text, self.at):
                self.at = found.end()
                parts.append(LiteralText(text=found[0]))
            elif character in "<>" and text[self.at + 1 : self.at + 2] == "(":
                parts.append(self._process(character))
            elif character == "(" and _opens_pattern(parts):
                parts.extend(self._pattern())
            elif character in ENDS_WORD:
                break
            else:
                parts.extend(self._special(character, quoted=False))
        return tuple(parts)

    def quoted_text(self, closing: str) -> Word:
        """Reads text with expansions up to the closing character, which is skipped. If `closing` is
        empty, reads up to the end."""
        parts: list[Part] = []
        while self.at < len(self.text):
            character = self.text[self.at]
            if character == closing:
                self.at += 1
                return tuple(parts)
            if found := _IN_QUOTES.match(self.text, self.at):
                self.at = found.end()
                parts.append(LiteralText(text=found[0], quoted=True))
            elif character == '"':
                self.at += 1
                parts.append(LiteralText(text='"', quoted=True))
            else:
                parts.extend(self._special(character, quoted=True))
        if closing:
            raise NotParsed("a quote is not closed")
        return tuple(parts)

    def _special(self, character: str, *, quoted: bool) -> list[Part]:
        self.count()
        if character == "\\":
            return self._backslash(quoted=quoted)
        if character == "'":
            return [self._single_quotes()]
        if character == '"':
            self.at += 1
            parts = self.quoted_text('"')
            if parts and all(
                isinstance(one, Parameter) and "@" in (one.name, one.index) for one in parts
            ):
                # `"$@"` expands to no word at all if there are no arguments.
                return list(parts)
            return [*parts, LiteralText(text="", quoted=True)]
        if character == "`":
            return [self._backticks(quoted=quoted)]
        return [self._dollar(quoted=quoted)]

    def _backslash(self, *, quoted: bool) -> list[Part]:
        escaped = self.text[self.at + 1 : self.at + 2]
        self.at += 2
        if escaped == "\n":
            return []
        if quoted and escaped not in tuple('$`"\\'):
            escaped = "\\" + escaped
        return [LiteralText(text=escaped or "\\", quoted=True)]

    def _single_quotes(self) -> LiteralText:
        close = self.text.find("'", self.at + 1)
        if close < 0:
            raise NotParsed("a quote is not closed")
        inside = self.text[self.at + 1 : close]
        self.at = close + 1
        return LiteralText(text=inside, quoted=True)

    def _ansi_quotes(self) -> LiteralText:
        found = _ANSI_QUOTES.match(self.text, self.at)
        if not found:
            raise NotParsed("a quote is not closed")
        self.at = found.end()
        return LiteralText(text=unescape(found[1]), quoted=True)

    def _backticks(self, *, quoted: bool) -> Substitution:
        found = _BACKTICKS.match(self.text, self.at + 1)
        assert found
        if self.text[found.end() : found.end() + 1] != "`":
            raise NotParsed("a backtick is not closed")
        self.at = found.end() + 1
        inside = re.sub(r'\\([$`\\"])' if quoted else r"\\([$`\\])", r"\1", found[0])
        inner = self.inside(inside)
        body = self._script(inner, "")
        if inner.at < len(inside):
            raise NotParsed("a command in backticks is not complete")
        self.tokens, self.scripts = inner.tokens, inner.scripts
        return Substitution(body=body, quoted=quoted)

    def _process(self, direction: str) -> Substitution:
        self.at += 2
        body = self._nested_script()
        return Substitution(body=body, kind="input" if direction == "<" else "output", quoted=True)

    def _nested_script(self) -> ShellScript:
        """Reads a script and the closing parenthesis after it."""
        self.enter()
        body = self._script(self, ")")
        if self.peek() != ")":
            raise NotParsed("a parenthesis is not closed")
        self.at += 1
        self.depth -= 1
        return body

    def _pattern(self) -> list[Part]:
        """Reads the parentheses of an extended glob pattern."""
        self.enter()
        parts: list[Part] = [LiteralText(text="(")]
        self.at += 1
        while self.peek() != ")":
            if self.at >= len(self.text):
                raise NotParsed("a parenthesis is not closed")
            read = self.word()
            parts.extend(read)
            if self.peek() in tuple("|&;<> \t\n("):
                parts.append(LiteralText(text=self.peek()))
                self.at += 1
        self.at += 1
        self.depth -= 1
        return [*parts, LiteralText(text=")")]

    def _dollar(self, *, quoted: bool) -> Part:
        following = self.text[self.at + 1 : self.at + 3]
        if following == "((":
            return self._arithmetic_or_command(quoted=quoted)
        if following[:1] == "(":
            self.at += 2
            return Substitution(body=self._nested_script(), quoted=quoted)
        if following[:1] == "{":
            return self._parameter(quoted=quoted)
        if following[:1] == "[":
            self.at += 2
            return Arithmetic(parts=self._until_bracket())
        if following[:1] == "'" and not quoted:
            return self._ansi_quotes()
        if following[:1] == '"' and not quoted:
            self.at += 1
            return LiteralText(text="")
        if found := _SHORT_NAME.match(self.text, self.at + 1):
            self.at = found.end()
            return Parameter(name=found[0], quoted=quoted)
        self.at += 1
        return LiteralText(text="$", quoted=quoted)

    def _arithmetic_or_command(self, *, quoted: bool) -> Part:
        start, depth = self.at, self.depth
        self.at += 3
        parts = self.arithmetic()
        if parts is not None:
            return Arithmetic(parts=parts)
        self.at, self.depth = start + 2, depth
        return Substitution(body=self._nested_script(), quoted=quoted)

    def arithmetic(self) -> Word | None:
        """Reads an arithmetic expression and the `))` after it. Returns None if the text turns out
        not to be arithmetic."""
        self.enter()
        parts: list[Part] = []
        open_parentheses = 0
        while self.at < len(self.text):
            if found := _IN_ARITHMETIC.match(self.text, self.at):
                self.at = found.end()
                continue
            character = self.text[self.at]
            if character == ")" and not open_parentheses:
                if self.peek(2) != "))":
                    return None
                self.at += 2
                self.depth -= 1
                return tuple(parts)
            if character in "()":
                self.count()
                open_parentheses += 1 if character == "(" else -1
                self.at += 1
            else:
                parts.extend(self._special(character, quoted=True))
        raise NotParsed("an arithmetic expression is not closed")

    def _until_bracket(self) -> Word:
        self.enter()
        parts: list[Part] = []
        while self.peek() != "]":
            if self.at >= len(self.text):
                raise NotParsed("an arithmetic expression is not closed")
            if self.peek() in ("$", "`", "\\"):
                parts.extend(self._special(self.peek(), quoted=True))
            else:
                self.at += 1
        self.at += 1
        self.depth -= 1
        return tuple(parts)

    def _parameter(self, *, quoted: bool) -> Part:
        self.enter()
        self.at += 2
        prefix = ""
        if self.peek() in ("#", "!") and self.peek(2)[1:] not in ("}", ""):
            prefix = "length" if self.peek() == "#" else "indirect"
            self.at += 1
        found = _NAME.match(self.text, self.at)
        if not found:
            raise NotParsed("a parameter has no name")
        self.at = found.end()
        index: Word = ()
        subscript = ""
        if self.peek() == "[":
            self.at += 1
            start = self.at
            index = self._until_bracket()
            subscript = self.text[start : self.at - 1]
        operator = ""
        if chosen := _OPERATOR.match(self.text, self.at):
            operator = chosen[0]
            self.at = chosen.end()
        operand = self._operand(quoted=quoted)
        self.depth -= 1
        return Parameter(
            name=found[0],
            operator=prefix or operator,
            operand=(*index, *operand),
            index=subscript,
            quoted=quoted,
        )

    def _operand(self, *, quoted: bool) -> Word:
        parts: list[Part] = []
        while self.at < len(self.text):
            character = self.text[self.at]
            if character == "}":
                self.at += 1
                return tuple(parts)
            if found := _IN_BRACES.match(self.text, self.at):
                self.at = found.end()
                parts.append(LiteralText(text=found[0], quoted=quoted))
            elif character == "'" and quoted:
                self.at += 1
                parts.append(LiteralText(text="'", quoted=True))
            else:
                parts.extend(self._special(character, quoted=quoted and character != '"'))
        raise NotParsed("a brace is not closed")


def _opens_pattern(parts: list[Part]) -> bool:
    if not parts or not isinstance(parts[-1], LiteralText) or parts[-1].quoted:
        return False
    return parts[-1].text.endswith(("?", "*", "+", "@", "!"))
