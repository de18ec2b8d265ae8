"""The syntax tree of a shell command."""

from __future__ import annotations

from typing import Literal, TypeAlias

from hermes.types.errors import HermesError
from hermes.types.value import Value


class NotParsed(HermesError):
    """The command has a syntax error, or it exceeds a limit of the parser."""


class LiteralText(Value, tag=True):
    """A part of a word that is literal text."""

    text: str
    quoted: bool = False


class Parameter(Value, tag=True):
    """An expansion of a variable, such as `$x` or `${x:-y}`."""

    name: str
    operator: str = ""
    """The operator between the name and its operand, such as `:-`. It is `length` for `${#x}`, and
    `indirect` for `${!x}`."""
    operand: Word = ()
    index: str = ""
    """The subscript of an array element, such as `0` in `${x[0]}`."""
    quoted: bool = False


class Substitution(Value, tag=True):
    """A command or process substitution."""

    body: ShellScript
    kind: Literal["command", "input", "output"] = "command"
    quoted: bool = False


class Arithmetic(Value, tag=True):
    """An arithmetic expansion. `parts` contains only the expansions inside it, not its numbers and
    operators."""

    parts: Word


Part: TypeAlias = LiteralText | Parameter | Substitution | Arithmetic
Word: TypeAlias = tuple[Part, ...]


class Assignment(Value):
    """An assignment to a variable."""

    name: str
    value: Word = ()
    items: tuple[Word, ...] | None = None
    """The elements of an array; None for a scalar."""
    append: bool = False
    index: str | None = None
    """The subscript, if the assignment sets one element of an array."""


class Redirection(Value):
    """A redirection of a file descriptor."""

    operator: str
    target: Word
    """The word after the operator. It is a file, a descriptor or, after `<<<`, a text. For a
    here-document, it is the body of the document."""
    descriptor: str = ""


class SimpleCommand(Value, tag=True):
    """Words that name a program and its arguments, with assignments before them."""

    words: tuple[Word, ...] = ()
    assignments: tuple[Assignment, ...] = ()
    redirections: tuple[Redirection, ...] = ()
    declares: bool = False
    """Whether the assignments are arguments of a builtin such as `export`."""


class Compound(Value, tag=True):
    """A group, a subshell, a condition or a loop."""

    kind: Literal["group", "subshell", "condition", "loop"]
    bodies: tuple[ShellScript, ...]
    words: tuple[Word, ...] = ()
    """Words that are expanded before any of the bodies runs, such as the word after `case`."""
    redirections: tuple[Redirection, ...] = ()


class ForLoop(Value, tag=True):
    """A loop that assigns each item to a variable."""

    name: str
    items: tuple[Word, ...]
    body: ShellScript
    redirections: tuple[Redirection, ...] = ()


class FunctionDefinition(Value, tag=True):
    """A definition of a shell function."""

    name: str
    body: ShellCommand


ShellCommand: TypeAlias = SimpleCommand | Compound | ForLoop | FunctionDefinition


class Pipeline(Value):
    """Commands that are connected by pipes."""

    commands: tuple[ShellCommand, ...]


class ShellStatement(Value):
    """Pipelines that are connected by `&&` or `||`."""

    pipelines: tuple[Pipeline, ...]
    background: bool = False
    alternatives: bool = False
    """Whether a pipeline may run after a pipeline that has failed, because of `||` or `!`."""


ShellScript: TypeAlias = tuple[ShellStatement, ...]
