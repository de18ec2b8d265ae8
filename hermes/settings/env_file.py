"""Reads and edits the text of .env files, in the syntax of python-dotenv.

`${NAME}` in a value is not replaced. The process environment is neither read nor changed.
"""

import io
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.types.errors import ConfigError

if TYPE_CHECKING:
    from dotenv.parser import Binding

_NAME = re.compile(r"[A-Za-z_]\w*")
_BARE = re.compile(r"[^\s'\"#]*")
"""Matches values that need no quotes."""


def read_dotenv(path: Path, text: str) -> tuple[dict[str, str], list[str]]:
    """Returns the assignments of the file, and a warning for each line that is not a valid
    assignment."""
    values: dict[str, str] = {}
    warnings: list[str] = []
    for binding in _bindings(text):
        if binding.value is not None and _NAME.fullmatch(binding.key or ""):
            if binding.value:
                values[str(binding.key)] = binding.value
        elif binding.error or binding.key is not None:
            line = binding.original.line + _gap(binding).count("\n")
            warnings.append(f"{path} line {line} is not NAME=value and is ignored")
    return values, warnings


def with_assignment(text: str, name: str, value: str) -> str:
    """Returns the text of the file after the value was assigned to the variable `name`. Raises
    ConfigError if the value can't be written."""
    if not value.isprintable():
        raise ConfigError(f"{name} can't hold line breaks or control characters: remove them")
    forms = [value] if _BARE.fullmatch(value) else [f'"{value}"', f"'{value}'"]
    lines = (f"{name}={form}" for form in forms)
    line = next((line for line in lines if next(_bindings(line)).value == value), None)
    if line is None:
        raise ConfigError(
            f"{name} can't hold this mixture of quotation marks and backslashes: use another value"
        )
    bindings = [*_bindings(text)]
    if all(one.key != name for one in bindings):
        return f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}{line}\n"
    return "".join(
        f"{_gap(one)}{line}{_line_end(one)}" if one.key == name else one.original.string
        for one in bindings
    )


def without_assignments(text: str, names: Collection[str]) -> str:
    """Returns the text of the file without the lines that set a variable in `names`."""
    return "".join(
        _gap(binding) if binding.key in names else binding.original.string
        for binding in _bindings(text)
    )


def _bindings(text: str) -> Iterator["Binding"]:
    """Yields the assignments, comments and other lines of the text."""
    if not text:
        return
    # python-dotenv is slow to import, and not needed if there is no .env file.
    from dotenv.parser import parse_stream  # noqa: PLC0415

    yield from parse_stream(io.StringIO(text))


def _gap(binding: "Binding") -> str:
    """Returns the empty lines before an assignment. The parser includes them in the assignment."""
    string = binding.original.string
    return string[: string.rfind("\n", 0, len(string) - len(string.lstrip())) + 1]


def _line_end(binding: "Binding") -> str:
    return "\n" if binding.original.string.endswith("\n") else ""
