"""The state of a shell while its commands are evaluated: variables, functions and files."""

from __future__ import annotations

import posixpath
import re
from functools import lru_cache

from hermes.core.danger.holes import ANYTHING, PLAIN_NAME, SECRET_TEXT, is_open
from hermes.core.danger.syntax import Compound, Pipeline, ShellCommand, ShellStatement

HOME = "~"
"""In this package, every path in the user's home folder begins with this text."""

_SECRET_NAME = re.compile(
    r"SECRET|TOKEN|PASSWORD|PASSWD|API_?KEY|PRIVATE_?KEY|ACCESS_?KEY|CREDENTIAL",
    re.IGNORECASE,
)
_KNOWN = {
    **dict.fromkeys(
        """USER LOGNAME USERNAME HOSTNAME UID EUID PPID RANDOM SECONDS LINENO BASHPID EPOCHSECONDS
        OSTYPE HOSTTYPE MACHTYPE LANG TERM SHLVL COLUMNS LINES BASH_VERSION $ ? # ! - 0""".split(),  # noqa: SIM905
        PLAIN_NAME,
    ),
    "HOME": HOME,
    "TMPDIR": "/tmp",  # noqa: S108
    "PWD": ".",
    "SHELL": "/bin/bash",
    "BASH": "/bin/bash",
    "IFS": " \t\n",
}
"""Variables that every shell has, with their values. A value that is not known is a hole."""


@lru_cache(maxsize=256)
def _is_secret(name: str) -> bool:
    return _SECRET_NAME.search(name) is not None


class ShellScope:
    """The variables, functions, aliases and files that the command itself has set so far."""

    def __init__(self) -> None:
        self.variables: dict[str, tuple[str, ...]] = {}
        self.functions: dict[str, ShellCommand] = {}
        self.aliases: dict[str, str] = {}
        self.arguments: tuple[str, ...] | None = None
        """The positional parameters; None if they are unknown."""
        self.folder = ""
        """The working directory; empty for the directory in which the command starts."""
        self.files: dict[str, str] = {}
        """Content of the files that the command has written, by path."""
        self.active: tuple[str, ...] = ()
        """The functions whose bodies are being evaluated. A call of one of them is recursive."""
        self.conditional = False
        """Whether the part that is being evaluated may be skipped when the command runs, such as
        the body of an `if`."""

    def inner(self) -> ShellScope:
        """Returns a copy for a subshell. Files are shared, because they outlive the subshell."""
        copy = ShellScope()
        copy.variables = dict(self.variables)
        copy.functions = dict(self.functions)
        copy.aliases = dict(self.aliases)
        copy.arguments = self.arguments
        copy.folder = self.folder
        copy.files = self.files
        copy.active = self.active
        copy.conditional = self.conditional
        return copy

    def values(self, name: str) -> tuple[str, ...] | None:
        """Returns the elements of a variable or of the positional parameters; None if the command
        has not set them."""
        if name in ("@", "*"):
            return self.arguments
        if name in self.variables:
            return self.variables[name]
        if name.isdigit() and name != "0" and self.arguments is not None:
            position = int(name) if len(name) < 5 else len(self.arguments) + 1
            return self.arguments[position - 1 : position] or ("",)
        return None

    def value(self, name: str) -> str:
        """Returns the value of a variable; unknown text if the value is not known."""
        values = self.values(name)
        if values is not None:
            return " ".join(values) if name in ("@", "*") else (values or ("",))[0]
        if name == "PWD" and self.folder:
            return self.folder
        if name in _KNOWN:
            return _KNOWN[name]
        return SECRET_TEXT if _is_secret(name) else ANYTHING

    def assign(self, name: str, *values: str) -> None:
        """Sets a variable. If the assignment may be skipped and the variable had another value
        before, its value becomes unknown."""
        before = self.variables.get(name)
        if self.conditional and before is not None and before != values:
            values = (ANYTHING,)
        self.variables[name] = values

    def define(self, name: str, body: ShellCommand) -> None:
        """Defines a function. If the definition may be skipped when the command runs, and the
        function had another body before, a call of the function evaluates both bodies."""
        before = self.functions.get(name)
        if self.conditional and before is not None and before != body:
            scripts = [
                (ShellStatement(pipelines=(Pipeline(commands=(one,)),)),) for one in (before, body)
            ]
            body = Compound(kind="condition", bodies=tuple(scripts))
        self.functions[name] = body

    def path(self, text: str) -> str:
        """Returns a normalized path: absolute, or relative to the folder in which the command
        starts."""
        if not text or text.startswith(("/", HOME)) or is_open(text[0]):
            joined = text
        else:
            joined = posixpath.join(self.folder, text)
        if not joined:
            return ""
        normal = posixpath.normpath(joined)
        normal = normal.replace("//", "/")
        return normal + "/" if joined.endswith("/") and normal != "/" else normal

    def content(self, path: str) -> str | None:
        """Returns the content of a file that the command has written; None for other files."""
        return self.files.get(self.path(path))

    def write(self, path: str, content: str, *, append: bool = False) -> None:
        """Records the content of a file. If the write may be skipped, the file gets the old content
        followed by the new content, because it is not known which of them it will have."""
        place = self.path(path)
        if append:
            content = self.files.get(place, ANYTHING) + content
        elif self.conditional and place in self.files:
            content = f"{self.files[place]}\n{content}"
        self.files[place] = content
