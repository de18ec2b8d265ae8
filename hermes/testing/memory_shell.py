"""Files in memory, and a small shell that works on them. Together they stand in for a machine with
a disk and processes.

The shell knows `;`, `&&`, newlines, quotes, `$name`, `<`, `>`, `>>` and `>&2`, and the commands in
`COMMANDS`. Every other command fails, like a command that is not installed in a real shell.
"""

import re
import shlex
from collections.abc import Awaitable, Callable, Sequence

import anyio
import anyio.lowlevel

from hermes.types.value import Value

OPERATORS = (";", "&&")
_VARIABLE = re.compile(r"\$(\w+)")


class MemoryLink(Value):
    """A symbolic link."""

    target: str


MemoryNode = bytes | MemoryLink | None
"""A file's content, a link, or None for a folder."""


class ShellError(Exception):
    """An error that the shell prints. The command ends with status 1."""


class MemoryFiles:
    """One tree of files. Paths are relative to its root, without `.` and `..`."""

    def __init__(self) -> None:
        self.nodes: dict[str, MemoryNode] = {"": None}

    def followed(self, path: str) -> str:
        """Returns the target of the path if it is a link, and otherwise the path."""
        node = self.nodes.get(path)
        if not isinstance(node, MemoryLink):
            return path
        return joined(path.rpartition("/")[0], node.target)

    def read(self, path: str) -> bytes:
        node = self.nodes.get(self.followed(path))
        if not isinstance(node, bytes):
            raise ShellError(f"{path}: no such file")
        return node

    def write(self, path: str, data: bytes) -> None:
        path = self.followed(path)
        self.check_folder(path.rpartition("/")[0])
        if path in self.nodes and not isinstance(self.nodes[path], bytes):
            raise ShellError(f"{path}: is a folder")
        self.nodes[path] = data

    def check_folder(self, path: str) -> None:
        if path not in self.nodes or self.nodes[path] is not None:
            raise ShellError(f"{path}: no such folder")


def joined(folder: str, path: str) -> str:
    """Returns the path from the root of the tree. `path` is relative to the folder, unless it
    begins with `/`."""
    parts: list[str] = [] if path.startswith("/") else folder.split("/")
    for part in path.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(part for part in parts if part)


class Exit(Exception):
    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class MemoryShell:
    """Runs one command line. `read_line` returns a line of input, or an empty text at the end."""

    def __init__(
        self,
        files: MemoryFiles,
        root: str,
        folder: str,
        write: Callable[[bytes], None],
        read_line: Callable[[], Awaitable[bytes]],
    ) -> None:
        self.files = files
        self.root = root
        self.folder = folder
        self.variables: dict[str, str] = {}
        self.read_line = read_line
        self._write = write

    async def run(self, line: str) -> int:
        """Runs the line. Returns the exit code of its last command."""
        lexer = shlex.shlex(line.replace("\n", ";"), posix=True, punctuation_chars=";<>&|")
        lexer.whitespace_split = True
        words: list[str] = []
        code, skipped = 0, False
        try:
            for word in (*lexer, ";"):
                if word not in OPERATORS:
                    words.append(word)
                    continue
                if words and not skipped:
                    code = await self._command(words)
                words, skipped = [], word == "&&" and (skipped or code != 0)
        except Exit as end:
            return end.code
        return code

    async def _command(self, words: Sequence[str]) -> int:
        # If the command was killed, its task is cancelled at this checkpoint.
        await anyio.lowlevel.checkpoint()
        words, target, append = self._redirected([self._expanded(word) for word in words])
        name, *arguments = words
        known = COMMANDS.get(name)
        if known is None:
            self._write(f"{name}: command not found\n".encode())
            return 127
        try:
            output = await known(self, arguments)
            if target is None:
                self._write(output)
            else:
                path = joined(self.folder, target)
                before = self.files.read(path) if append and path in self.files.nodes else b""
                self.files.write(path, before + output)
        except ShellError as error:
            self._write(f"{name}: {error}\n".encode())
            return 1
        return int(name == "false")

    def _expanded(self, word: str) -> str:
        return _VARIABLE.sub(lambda found: self.variables.get(found[1], ""), word)

    def _redirected(self, words: Sequence[str]) -> tuple[list[str], str | None, bool]:
        """Returns the words without redirections, the file for the output, and whether the output
        is appended to the file."""
        kept: list[str] = []
        target, append = None, False
        rest = iter(words)
        for word in rest:
            if word in (">", ">>"):
                target, append = next(rest), word == ">>"
            elif word == ">&":
                # `>&2` is ignored, because this shell writes output and errors to the same place.
                next(rest)
            else:
                kept.append(word)
        return kept, target, append


async def _echo(shell: MemoryShell, arguments: Sequence[str]) -> bytes:
    return f"{' '.join(arguments)}\n".encode()


async def _cat(shell: MemoryShell, arguments: Sequence[str]) -> bytes:
    if arguments:
        return b"".join(shell.files.read(joined(shell.folder, path)) for path in arguments)
    lines = []
    while line := await shell.read_line():
        lines.append(line)
    return b"".join(lines)


async def _pwd(shell: MemoryShell, arguments: Sequence[str]) -> bytes:
    return f"{shell.root}/{shell.folder}".rstrip("/").encode() + b"\n"


async def _cd(shell: MemoryShell, arguments: Sequence[str]) -> bytes:
    folder = joined(shell.folder, arguments[0])
    shell.files.check_folder(folder)
    shell.folder = folder
    return b""


async def _mkdir(shell: MemoryShell, arguments: Sequence[str]) -> bytes:
    path = joined(shell.folder, arguments[0])
    shell.files.check_folder(path.rpartition("/")[0])
    if path in shell.files.nodes:
        raise ShellError(f"{path}: exists")
    shell.files.nodes[path] = None
    return b""


async def _ln(shell: MemoryShell, arguments: Sequence[str]) -> bytes:
    option, target, name = arguments
    path = joined(shell.folder, name)
    if option != "-s" or path in shell.files.nodes:
        raise ShellError("only `ln -s` with a new name is supported")
    shell.files.nodes[path] = MemoryLink(target=target)
    return b""


async def _sleep(shell: MemoryShell, arguments: Sequence[str]) -> bytes:
    await anyio.sleep(float(arguments[0]))
    return b""


async def _read(shell: MemoryShell, arguments: Sequence[str]) -> bytes:
    shell.variables[arguments[0]] = (await shell.read_line()).decode().rstrip("\n")
    return b""


async def _exit(shell: MemoryShell, arguments: Sequence[str]) -> bytes:
    raise Exit(int(arguments[0]))


async def _nothing(shell: MemoryShell, arguments: Sequence[str]) -> bytes:
    return b""


COMMANDS: dict[str, Callable[[MemoryShell, Sequence[str]], Awaitable[bytes]]] = {
    "cat": _cat,
    "cd": _cd,
    "echo": _echo,
    "exit": _exit,
    "false": _nothing,
    "ln": _ln,
    "mkdir": _mkdir,
    "pwd": _pwd,
    "read": _read,
    "sleep": _sleep,
    "true": _nothing,
}
