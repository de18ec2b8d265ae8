"""Parses a shell command into a syntax tree, in time and memory that grow linearly with its
length."""

import re
from typing import Literal

from hermes.core.danger.syntax import (
    Assignment,
    Compound,
    ForLoop,
    FunctionDefinition,
    LiteralText,
    NotParsed,
    Pipeline,
    Redirection,
    ShellCommand,
    ShellScript,
    ShellStatement,
    SimpleCommand,
    Word,
)
from hermes.core.danger.tokens import KEYWORDS, TokenReader
from hermes.core.danger.words import ENDS_WORD, WordReader

MAX_LENGTH = 128_000
"""Length of the longest command that is parsed, in characters."""

_PLAIN_COMMAND = re.compile(
    r"[A-Za-z0-9_./-]+(?:[ \t]+[A-Za-z0-9_./:,@%+-]+)*(?=[ \t]*(?:[;\n|&)]|\Z))", re.ASCII
)
"""A command that has no quotes, expansions or redirections, so that it can be split at its
blanks."""
_PARENTHESES = re.compile(r"[ \t]*\([ \t]*\)")
_COPROCESS_NAME = re.compile(r"\w+[ \t]+(?=[({])")
_FUNCTION_NAME = re.compile(r"[^\s;&|<>()$`\"'\\]+")
_DECLARING = frozenset({"declare", "typeset", "local", "export", "readonly"})
_SPECIAL = _DECLARING | frozenset(KEYWORDS.split("|"))
"""Words that need the full parser if they are the first word of a command."""


def parse(command: str, depth: int = 0) -> ShellScript:
    """Returns the syntax tree of a command. Raises NotParsed if the command has a syntax error or
    exceeds a limit."""
    if len(command) > MAX_LENGTH:
        raise NotParsed("the command is too long")
    reader = WordReader(command, parse_from, depth)
    script = parse_from(reader, "")
    if reader.at < len(command):
        raise NotParsed(f"{reader.peek(10)!r} is not expected here")
    if not reader.skips.keys() <= reader.skipped:
        raise NotParsed("a here-document is inside of quotes")
    return script


def parse_from(reader: WordReader, closing: str) -> ShellScript:
    """Reads statements up to one of the words or operators in `closing`. The reader then stands
    before this word or operator."""
    return CommandParser(reader).script(*closing.split())


class CommandParser:
    """Parses commands, beginning at the position of a reader."""

    def __init__(self, reader: WordReader) -> None:
        self.reader = reader
        self._tokens = TokenReader(reader)
        self._compounds = {
            "{": self._group,
            "if": self._if,
            "while": self._while,
            "until": self._while,
            "for": self._for,
            "select": self._for,
            "case": self._case,
            "function": self._function,
            "coproc": self._coproc,
            "[[": self._test,
        }

    def script(self, *closers: str) -> ShellScript:
        """Reads statements up to one of the closing words or operators. The reader then stands
        before this word or operator."""
        self.reader.enter()
        statements: list[ShellStatement] = []
        while True:
            self._tokens.skip(lines=True)
            if self._ended(closers):
                break
            statements.append(self._statement(closers))
        self.reader.depth -= 1
        return tuple(statements)

    def _ended(self, closers: tuple[str, ...]) -> bool:
        reader = self.reader
        if reader.at >= len(reader.text):
            return True
        keyword = self._tokens.keyword()
        if keyword in closers:
            return True
        return any(
            not closer[0].isalpha() and reader.text.startswith(closer, reader.at)
            for closer in closers
            if closer != "}"
        )

    def _statement(self, closers: tuple[str, ...]) -> ShellStatement:
        reader = self.reader
        start = reader.at
        pipelines = [self._pipeline()]
        operators = set()
        while reader.peek(2) in ("&&", "||"):
            operators.add(reader.peek(2))
            reader.at += 2
            self._tokens.skip(lines=True)
            pipelines.append(self._pipeline())
        background = False
        if reader.peek() == "&":
            background = True
            reader.at += 1
        elif reader.peek() == ";" and reader.peek(2) not in (";;", ";&"):
            reader.at += 1
        elif reader.peek() not in ("\n", "") and not self._ended(closers):
            raise NotParsed(f"{reader.peek(10)!r} is not expected here")
        if reader.at == start:
            raise NotParsed("a command is missing")
        return ShellStatement(
            pipelines=tuple(pipelines),
            background=background,
            alternatives="||" in operators or reader.text.startswith("!", start),
        )

    def _pipeline(self) -> Pipeline:
        commands: list[ShellCommand] = []
        while True:
            self._tokens.skip()
            while (keyword := self._tokens.keyword()) in ("!", "time"):
                self.reader.at += len(keyword)
                self._tokens.skip()
                if keyword == "time" and self.reader.peek(3) == "-p ":
                    self.reader.at += 3
                    self._tokens.skip()
            commands.append(self._command())
            self._tokens.skip()
            if self.reader.peek() != "|" or self.reader.peek(2) == "||":
                return Pipeline(commands=tuple(commands))
            self.reader.at += 2 if self.reader.peek(2) == "|&" else 1
            self._tokens.skip(lines=True)

    def _command(self) -> ShellCommand:
        reader = self.reader
        reader.count_command()
        if found := _PLAIN_COMMAND.match(reader.text, reader.at):
            words = found[0].split()
            if words[0] not in _SPECIAL:
                reader.count(len(words))
                reader.at = found.end()
                return SimpleCommand(words=tuple([(LiteralText(text=word),) for word in words]))
        keyword = self._tokens.keyword()
        if reader.peek() == "(":
            return self._parenthesis()
        if keyword in ("", "in"):
            return self._simple()
        reader.at += len(keyword)
        if keyword not in self._compounds:
            raise NotParsed(f"{keyword!r} is not expected here")
        return self._compounds[keyword]()

    def _group(self) -> ShellCommand:
        return self._finished("group", (self._block("}"),))

    def _while(self) -> ShellCommand:
        condition = self._block("do")
        return self._finished("loop", (condition, self._block("done")))

    def _block(self, *closers: str) -> ShellScript:
        """Reads a script and the closing keyword after it."""
        body = self.script(*closers)
        self._expect(*closers)
        return body

    def _expect(self, *words: str) -> str:
        keyword = self._tokens.keyword()
        if keyword not in words:
            raise NotParsed(f"{words[0]!r} is missing")
        self.reader.at += len(keyword)
        return keyword

    def _finished(
        self,
        kind: Literal["group", "subshell", "condition", "loop"],
        bodies: tuple[ShellScript, ...],
        words: tuple[Word, ...] = (),
    ) -> Compound:
        """Reads the redirections after a compound command. Returns the command with its
        redirections."""
        return Compound(
            kind=kind, bodies=bodies, words=words, redirections=tuple(self._tokens.redirections())
        )

    def _if(self) -> ShellCommand:
        bodies = [self._block("then")]
        while True:
            bodies.append(self.script("elif", "else", "fi"))
            match self._expect("fi", "elif", "else"):
                case "fi":
                    return self._finished("condition", tuple(bodies))
                case "elif":
                    bodies.append(self._block("then"))
                case _:
                    bodies.append(self._block("fi"))
                    return self._finished("condition", tuple(bodies))

    def _parenthesis(self) -> ShellCommand:
        reader = self.reader
        if reader.peek(2) == "((":
            start, depth = reader.at, reader.depth
            reader.at += 2
            parts = reader.arithmetic()
            if parts is not None:
                return self._finished("condition", (), (parts,))
            reader.at, reader.depth = start, depth
        reader.at += 1
        body = self.script(")")
        self._close()
        return self._finished("subshell", (body,))

    def _close(self) -> None:
        if self.reader.peek() != ")":
            raise NotParsed("a parenthesis is not closed")
        self.reader.at += 1

    def _for(self) -> ShellCommand:
        reader = self.reader
        self._tokens.skip()
        if reader.peek(2) == "((":
            reader.at += 2
            parts = reader.arithmetic()
            if parts is None:
                raise NotParsed("an arithmetic expression is not closed")
            return self._finished("loop", (self._loop_body(),), (parts,))
        name = _FUNCTION_NAME.match(reader.text, reader.at)
        if not name:
            raise NotParsed("a loop has no variable")
        reader.at = name.end()
        self._tokens.skip(lines=True)
        items: list[Word] = []
        if self._tokens.keyword() == "in":
            reader.at += 2
            self._tokens.skip()
            while reader.peek() not in (";", "\n", ""):
                items.append(self._tokens.required_word())
        body = self._loop_body()
        return ForLoop(
            name=name[0],
            items=tuple(items),
            body=body,
            redirections=tuple(self._tokens.redirections()),
        )

    def _loop_body(self) -> ShellScript:
        self._tokens.skip()
        if self.reader.peek() == ";":
            self.reader.at += 1
        self._tokens.skip(lines=True)
        if self._expect("do", "{") == "{":
            return self._block("}")
        return self._block("done")

    def _case(self) -> ShellCommand:
        reader = self.reader
        self._tokens.skip()
        words = [self._tokens.required_word()]
        self._tokens.skip(lines=True)
        self._expect("in")
        bodies: list[ShellScript] = []
        while True:
            self._tokens.skip(lines=True)
            if self._tokens.keyword() == "esac":
                reader.at += 4
                return self._finished("condition", tuple(bodies), tuple(words))
            if reader.peek() == "(":
                reader.at += 1
            while reader.peek() != ")":
                self._tokens.skip()
                words.append(self._tokens.required_word())
                if reader.peek() == "|":
                    reader.at += 1
            reader.at += 1
            bodies.append(self.script(";;", ";&", "esac"))
            if reader.peek() == ";":
                reader.at += 3 if reader.peek(3) == ";;&" else 2

    def _function(self) -> ShellCommand:
        self._tokens.skip()
        name = _FUNCTION_NAME.match(self.reader.text, self.reader.at)
        if not name:
            raise NotParsed("a function has no name")
        self.reader.at = name.end()
        if found := _PARENTHESES.match(self.reader.text, self.reader.at):
            self.reader.at = found.end()
        self._tokens.skip(lines=True)
        return FunctionDefinition(name=name[0], body=self._command())

    def _coproc(self) -> ShellCommand:
        self._tokens.skip()
        if found := _COPROCESS_NAME.match(self.reader.text, self.reader.at):
            self.reader.at = found.end()
        return self._command()

    def _test(self) -> ShellCommand:
        """Reads the words of `[[ … ]]`."""
        reader = self.reader
        words: list[Word] = [(LiteralText(text="[["),)]
        while True:
            self._tokens.skip(lines=True)
            if reader.peek(2) == "]]":
                reader.at += 2
                break
            if reader.at >= len(reader.text):
                raise NotParsed("']]' is missing")
            if reader.peek() in ENDS_WORD and reader.peek(2) not in ("<(", ">("):
                reader.at += 1
            else:
                words.append(reader.word())
        return SimpleCommand(words=tuple(words), redirections=tuple(self._tokens.redirections()))

    def _simple(self) -> ShellCommand:
        reader = self.reader
        words: list[Word] = []
        assignments: list[Assignment] = []
        redirections: list[Redirection] = []
        declares = False
        while True:
            self._tokens.skip()
            if self._tokens.redirection(redirections):
                continue
            if not words or declares:
                assigned = self._tokens.assignment()
                if assigned:
                    assignments.append(assigned)
                    continue
            word = reader.word()
            if not word:
                break
            words.append(word)
            if len(words) == 1 and isinstance(word[0], LiteralText):
                declares = word[0].text in _DECLARING
                opening = _PARENTHESES.match(reader.text, reader.at)
                if opening and not word[0].quoted:
                    reader.at = opening.end()
                    self._tokens.skip(lines=True)
                    return FunctionDefinition(name=word[0].text, body=self._command())
        if not (words or assignments or redirections):
            raise NotParsed(f"{reader.peek(10)!r} is not expected here")
        return SimpleCommand(
            words=tuple(words),
            assignments=tuple(assignments),
            redirections=tuple(redirections),
            declares=declares,
        )
