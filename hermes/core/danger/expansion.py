"""Expands the words of a command into arguments, as far as their values are known."""

from collections.abc import Callable, Iterable

from hermes.core.danger.braces import MAX_WORDS, expand_braces
from hermes.core.danger.holes import ANYTHING, PLAIN_NAME, is_known, quoted, unquoted
from hermes.core.danger.parameters import apply_operator
from hermes.core.danger.scope import ShellScope
from hermes.core.danger.syntax import (
    Arithmetic,
    LiteralText,
    NotParsed,
    Parameter,
    Part,
    Substitution,
    Word,
)

MAX_CHARACTERS = 100_000
"""Largest number of characters of a word after its expansion."""


class WordExpander:
    """Expands words with the variables of a scope. `substitute` evaluates a substitution such as
    `$(ls)`, and returns its output."""

    def __init__(self, scope: ShellScope, substitute: Callable[[Substitution], str]) -> None:
        self._scope = scope
        self._substitute = substitute

    def arguments(self, words: Iterable[Word]) -> list[str]:
        """Returns the arguments that the words expand to."""
        found: list[str] = []
        for word in words:
            if len(word) == 1 and isinstance(word[0], LiteralText) and "{" not in word[0].text:
                found.append(word[0].text)
                continue
            for one in expand_braces(word):
                found += self._fields(one)
        return found

    def text(self, word: Word) -> str:
        """Returns the text into which a word expands. The text is not split into several
        arguments."""
        if len(word) == 1 and isinstance(word[0], LiteralText):
            return word[0].text
        text = "".join(self._part(part) for part in word)
        if len(text) > MAX_CHARACTERS:
            raise NotParsed("a word is too long")
        return text

    def _fields(self, word: Word) -> list[str]:
        fields: list[str] = []
        current: str | None = None
        for part in word:
            split = False
            if isinstance(part, LiteralText) or _is_quoted(part):
                values = [self._part(part)]
            elif isinstance(part, Parameter) and _is_list(part):
                values = [field for value in self._elements(part) for field in self._split(value)]
            else:
                values = self._split(self._part(part))
                split = True
            if isinstance(part, Parameter) and part.quoted and _is_list(part):
                values = list(self._elements(part))
            if not values:
                continue
            *full, last = [(current or "") + values[0], *values[1:]]
            fields += [field for field in full if field or not split]
            current = None if split and not last else last
            if len(fields) > MAX_WORDS:
                raise NotParsed("a word expands to too many words")
        return [*fields, current] if current is not None else fields

    def _split(self, value: str) -> list[str]:
        """Returns the fields into which the shell splits an unquoted value. If the value begins
        with a separator, the first field is empty; if it ends with one, the last field is empty."""
        value = unquoted(value)
        separators = self._scope.value("IFS")
        if not is_known(separators):
            return [ANYTHING]
        if len(value) > MAX_CHARACTERS:
            raise NotParsed("a word is too long")
        for separator in separators:
            value = value.replace(separator, "\n")
        if "\n" not in value:
            return [value] if value else []
        first, *middle, last = value.split("\n")
        return [first, *filter(None, middle), last]

    def _part(self, part: Part) -> str:
        match part:
            case LiteralText(text=text):
                return text
            case Parameter():
                value = self._parameter(part)
                return quoted(value) if part.quoted else value
            case Substitution():
                output = self._substitute(part)
                return quoted(output) if part.quoted else output
            case Arithmetic(parts=parts):
                for inner in parts:
                    self._part(inner)
                return PLAIN_NAME

    def _elements(self, part: Parameter) -> tuple[str, ...]:
        self.text(part.operand)
        name = "@" if part.name in "@*" else part.name
        values = self._scope.values(name)
        if values is None or part.operator:
            return (ANYTHING,)
        return tuple(map(quoted, values)) if part.quoted else values

    def _parameter(self, part: Parameter) -> str:
        if not part.operator and not part.index:
            return self._scope.value(part.name)
        operand = self.text(part.operand)
        values = self._scope.values(part.name)
        if part.operator == "indirect":
            name = self._scope.value(part.name)
            return self._scope.value(name) if is_known(name) and not part.index else ANYTHING
        if part.index and part.index not in "@*":
            value = _element(values, part.index)
        elif part.index and values is not None:
            value = " ".join(values)
        else:
            value = self._scope.value(part.name)
        if not part.operator:
            return value
        result = apply_operator(part.operator, value, operand)
        if part.operator in ("=", ":="):
            self._scope.assign(part.name, result)
        return result


def _is_list(part: Parameter) -> bool:
    return (part.name == "@" or part.index == "@" or (part.name == "*" and not part.quoted)) and (
        part.operator != "length"
    )


def _is_quoted(part: Part) -> bool:
    return isinstance(part, Arithmetic) or (not isinstance(part, LiteralText) and part.quoted)


def _element(values: tuple[str, ...] | None, index: str) -> str:
    if values is None or not index.isdigit() or len(index) > 4:
        return ANYTHING
    return values[int(index)] if int(index) < len(values) else ""
