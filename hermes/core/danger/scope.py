"""The state of a shell while its commands are evaluated: variables, functions and files."""

from __future__ import annotations

import posixpath
import re
from functools import lru_cache

from hermes.core.danger.holes import ANYTHING, PLAIN_NAME, SECRET_TEXT, is_known, is_open
from hermes.core.danger.syntax import Compound, Pipeline, ShellCommand, ShellStatement

HOME = "~"
"""In this package, every path in the user's home folder begins with this text."""

MAX_FOLDERS = 8
"""Largest number of possible working directories. There can be several, because a `cd` may fail or
be skipped. If there are more, the working directory counts as unknown."""
_PATTERN = re.compile(r"[*?[]")
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
"""Variables that every shell has, with their values. An unknown value is a placeholder (see
`holes.py`)."""


@lru_cache(maxsize=256)
def _is_secret(name: str) -> bool:
    return _SECRET_NAME.search(name) is not None


def _joined(folder: str, text: str) -> str:
    if not text or text.startswith(("/", HOME)) or is_open(text[0]):
        joined = text
    else:
        joined = posixpath.join(folder, text)
    if not joined:
        return ""
    normal = posixpath.normpath(joined)
    normal = normal.replace("//", "/")
    if normal.startswith(HOME) and not joined.startswith(HOME):
        # The folder `./~` in the working directory is not the home folder.
        normal = f"./{normal}"
    return normal + "/" if joined.endswith("/") and normal != "/" else normal


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
        self.folders: tuple[str, ...] | None = ("",)
        """All folders that may be the working directory. There can be several, because a `cd` may
        fail or be skipped. None after a `cd` to unknown text."""
        self.pushed: tuple[tuple[str, tuple[str, ...] | None], ...] = ()
        """The values of `folder` and `folders` at each `pushd`, to which `popd` returns."""
        self.files: dict[str, str] = {}
        """Content of the files that the command has written, by path."""
        self.copies: dict[str, str] = {}
        """The files that the command has copied, linked or moved. The key is the new path of a
        file, and the value is its original path."""
        self.downloads: list[str] = []
        """Downloaded archives that the command has unpacked. Any script that the command runs may
        come from these archives."""
        self.reads: dict[str, None] = {}
        """Files that the command has read, but not written."""
        self.active: tuple[ShellCommand, ...] = ()
        """The functions whose bodies are being evaluated. A call of one of them is recursive."""
        self.conditional = False
        """Whether the part that is being evaluated may be skipped when the command runs, such as
        the body of an `if`."""

    def inner(self) -> ShellScope:
        """Returns a copy for a subshell. The copy shares the records of written files, because the
        files outlive the subshell."""
        copy = ShellScope()
        copy.variables = dict(self.variables)
        copy.functions = dict(self.functions)
        copy.aliases = dict(self.aliases)
        copy.arguments = self.arguments
        copy.folder = self.folder
        copy.folders = self.folders
        copy.pushed = self.pushed
        copy.files = self.files
        copy.copies = self.copies
        copy.downloads = self.downloads
        copy.reads = self.reads
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

    def forget_new(self, known: set[str]) -> None:
        """Makes the values of all variables unknown, except for those in `known`. The other
        variables were set in a part of the command that may be skipped, so they may have no
        value."""
        for name in self.variables.keys() - known:
            self.variables[name] = (ANYTHING,)

    def with_element(self, name: str, index: str, value: str) -> tuple[str, ...]:
        """Returns the elements that an array has after one element was set. If the array has gaps,
        or names in place of indexes, the elements count as unknown."""
        values = self.variables.get(name, ())
        if index.isdecimal() and len(index) < 5 and int(index) <= len(values):
            return (*values[: int(index)], value, *values[int(index) + 1 :])
        return (ANYTHING,)

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
        return _joined(self.folder, text)

    def enter_folder(self, target: str) -> None:
        """Changes the working directory to `target`.

        If any part of `target` is unknown, `folders` becomes None, and relative paths of scripts
        count as unknown from then on. Relative paths of other files are resolved in `folder`. If
        `target` begins with unknown text that may be more than a plain name, `folder` becomes the
        directory in which the command starts.
        """
        absolute = target.startswith(("/", HOME))
        if not is_known(target):
            self.folders = None
        elif absolute or self.folders is not None:
            folders = ("",) if absolute else self.folders or ()
            self.folders = tuple(_joined(folder, target) for folder in folders)
        self.folder = "" if is_open(target[:1]) else self.path(target).rstrip("/") or "/"

    def may_be_in(self, folders: tuple[str, ...] | None) -> None:
        """Records that the working directory may also be one of the folders."""
        if folders is None or self.folders is None:
            self.folders = None
        elif folders != self.folders:
            both = tuple(dict.fromkeys(self.folders + folders))
            self.folders = both if len(both) <= MAX_FOLDERS else None

    def script_paths(self, text: str) -> tuple[str, ...]:
        """Returns the paths that an operand may name, in the normalized form that `path` returns.
        There is one path for each folder that may be the working directory. Returns an empty tuple
        if the operand or the working directory is not known."""
        if not is_known(text) or _PATTERN.search(text):
            return ()
        if text.startswith(("/", HOME)):
            return (_joined("", text),)
        return tuple(dict.fromkeys(_joined(folder, text) for folder in self.folders or ()))

    def content(self, path: str) -> str | None:
        """Returns the content of a file that the command has written; None for other files."""
        return self.files.get(self.path(path))

    def copy(self, source: str, target: str) -> None:
        """Records that a file was copied, linked or moved to a file or folder."""
        content, original = self.content(source), self.path(source)
        into_folder = f"{target.rstrip('/')}/{source.rstrip('/').rpartition('/')[2]}"
        for path in (target, into_folder):
            if content is not None:
                self.write(path, content)
            elif not self.conditional:
                self.files.pop(self.path(path), None)
            self.copies[self.path(path)] = self.copies.get(original, original)

    def write(self, path: str, content: str, *, append: bool = False) -> None:
        """Records the content of a file. If the command may skip the write, as in an `if`, records
        the old content followed by the new content, because the file can then have either
        content."""
        place = self.path(path)
        if append:
            content = self.files.get(place, ANYTHING) + content
        elif self.conditional and place in self.files:
            content = f"{self.files[place]}\n{content}"
        self.files[place] = content
