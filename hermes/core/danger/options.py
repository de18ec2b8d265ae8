"""Separates the options of a program from its operands."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache

from hermes.core.danger.holes import ANYTHING
from hermes.types.value import Value


@cache
def names(text: str) -> frozenset[str]:
    """Splits a text at white space, and returns the set of names."""
    return frozenset(text.split())


class ParsedOptions(Value):
    """The options and operands of a command line."""

    given: dict[str, list[str]]
    """The values of each given option, by its name without dashes. The list is empty for an option
    without a value."""
    operands: list[str]
    dynamic: bool = False
    """Whether an operand begins with unknown text. When the command runs, such an operand may turn
    out to be an option."""

    def has(self, *names: str) -> bool:
        """Returns whether one of the options was given. Long options may be abbreviated."""
        if not self.given:
            return False
        if any(name in self.given for name in names):
            return True
        return any(
            name.startswith(given)
            for given in self.given
            if len(given) > 2
            for name in names
            if len(name) > len(given)
        )

    def values(self, *names: str) -> list[str]:
        """Returns all values that were given for these options."""
        return [value for name in names for value in self.given.get(name, [])]


def parse_options(
    arguments: Sequence[str],
    valued: Collection[str] = (),
    *,
    permute: bool = True,
    single_dash: bool = False,
) -> ParsedOptions:
    """Parses arguments in the style of GNU getopt.

    `valued` are the options that take a value. Without `permute`, all arguments after the first
    operand are operands. With `single_dash`, `-name` is one option, and not several short options.
    """
    given: dict[str, list[str]] = {}
    operands: list[str] = []
    dynamic = False
    at = 0
    while at < len(arguments):
        argument = arguments[at]
        at += 1
        if argument[:1] != "-" or argument == "-":
            dynamic = dynamic or argument[:1] == ANYTHING
            operands.append(argument)
            if permute:
                continue
            operands += arguments[at:]
            break
        if argument == "--":
            operands += arguments[at:]
            break
        if argument[1] == "-" or single_dash:
            name, equals, value = argument.lstrip("-").partition("=")
            values = given.setdefault(name, [])
            if equals:
                values.append(value)
            elif name in valued and at < len(arguments):
                values.append(arguments[at])
                at += 1
            continue
        at = _cluster(argument, arguments, at, valued, given)
    return ParsedOptions(given=given, operands=operands, dynamic=dynamic)


def _cluster(
    argument: str,
    arguments: Sequence[str],
    at: int,
    valued: Collection[str],
    given: dict[str, list[str]],
) -> int:
    """Reads short options that share one dash, such as `-xzf`, and the value of the last option.
    Returns the position after these arguments."""
    for position, letter in enumerate(argument[1:], 1):
        values = given.setdefault(letter, [])
        if letter in valued:
            if rest := argument[position + 1 :]:
                values.append(rest)
            elif at < len(arguments):
                values.append(arguments[at])
                at += 1
            break
    return at
