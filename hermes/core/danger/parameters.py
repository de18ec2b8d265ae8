"""Applies the operators of parameter expansions, such as `${x#prefix}`, to constant values."""

import re
from fnmatch import translate

from hermes.core.danger.holes import ANYTHING, PLAIN_NAME, derived, is_known, is_open

MAX_PATTERN = 200
"""Length of the longest pattern that is applied, in characters."""


def apply_operator(operator: str, value: str, operand: str) -> str:
    """Returns the result of the operator; unknown text if the result can't be computed."""
    if operator in ("-", ":-", "=", ":=", "?", ":?"):
        return value or operand if is_known(value) else derived(value, operand)
    if operator in ("+", ":+"):
        return operand if value and is_known(value) else derived(value, operand)
    if operator == "length":
        return str(len(value)) if is_known(value) else PLAIN_NAME
    if not is_known(value) or not is_known(operand) or len(operand) > MAX_PATTERN:
        plain = not is_open(value) and operator[0] in "#%^,"
        return PLAIN_NAME if plain else derived(value, operand)
    return _changed(operator, value, operand)


def _changed(operator: str, value: str, operand: str) -> str:
    if operator in ("^^", ",,"):
        return value.upper() if operator == "^^" else value.lower()
    if operator in ("^", ","):
        first = value[:1].upper() if operator == "^" else value[:1].lower()
        return first + value[1:]
    if operator[0] in "#%":
        return _trimmed(operator, value, operand)
    if operator[0] == "/":
        return _replaced(operator, value, operand)
    return _slice(value, operand) if operator == ":" else ANYTHING


def _trimmed(operator: str, value: str, pattern: str) -> str:
    if len(value) > MAX_PATTERN:
        return ANYTHING
    matches = re.compile(translate(pattern)).match
    lengths = range(len(value) + 1)
    if len(operator) == 2:
        lengths = range(len(value), -1, -1)
    for length in lengths:
        if operator[0] == "#" and matches(value[:length]):
            return value[length:]
        if operator[0] == "%" and matches(value[len(value) - length :]):
            return value[: len(value) - length]
    return value


def _replaced(operator: str, value: str, operand: str) -> str:
    pattern, _, replacement = operand.partition("/")
    if not pattern or any(character in pattern for character in "*?[\\"):
        return ANYTHING
    if pattern[0] in "#%":
        return ANYTHING
    return value.replace(pattern, replacement, -1 if operator == "//" else 1)


def _slice(value: str, operand: str) -> str:
    found = re.fullmatch(r"\s*(-?\d{1,6})\s*(?::\s*(-?\d{1,6})\s*)?", operand)
    if not found:
        return ANYTHING
    start = int(found[1])
    rest = value[start:] if start >= 0 else value[max(0, len(value) + start) :]
    return rest if found[2] is None else rest[: int(found[2])]
