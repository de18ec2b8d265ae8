"""Stores tool results in files if they are too long for the model. The agent can read such a file
in parts."""

import contextlib
import os
import re
import shutil
from pathlib import Path

from hermes.state.paths import file_name, write_private
from hermes.types.errors import StoreUnavailable, ToolFailed

PREFIX = "spill:"
LINE_CHARS = 2000
"""Maximum number of characters in a line of a stored text. Longer lines are broken, because tools
read files by line, and so could not read a part of a very long line."""
_CALL = re.compile(r"[0-9A-Za-z_-]{1,80}")


class Spill:
    """Stores each text under its session and the id of its tool call. No other session can read the
    text."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, session: str, call: str, text: str) -> str:
        """Stores the text, and returns the name under which the session can read it."""
        safe = text.encode("utf-8", "replace").decode()
        path = self._path(session, call)
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_private(path, folded(safe))
        except OSError as error:
            raise StoreUnavailable(f"a long result can't be stored in {path}: {error}") from error
        return f"{PREFIX}{call}"

    def open(self, session: str, name: str) -> int:
        """Returns a descriptor for reading. The caller must close it."""
        try:
            path = self._path(session, name.removeprefix(PREFIX))
            return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise ToolFailed(
                f"There is no result {name!r} in this conversation. Old results are deleted."
            ) from error

    def read(self, session: str, name: str) -> str:
        with os.fdopen(self.open(session, name), "rb") as file:
            return file.read().decode()

    def forget(self, before: float) -> None:
        """Deletes the texts that were stored before this time."""
        for folder in self._folder.glob("*"):
            # Hermes can list and delete every entry that it has created. An entry that causes an
            # error belongs to another program, so it is kept.
            with contextlib.suppress(OSError):
                unused = folder.stat().st_mtime < before
                left = [path for path in folder.iterdir() if not _forgotten(path, before)]
                if unused and not left:
                    folder.rmdir()

    def forget_session(self, session: str) -> None:
        shutil.rmtree(self._folder / file_name(session), ignore_errors=True)

    def _path(self, session: str, call: str) -> Path:
        if not _CALL.fullmatch(call):
            raise ToolFailed(
                f"{call!r} is not the name of a stored result. Copy the name from the line that"
                " says how many characters were left out."
            )
        return self._folder / file_name(session) / call


def _forgotten(path: Path, before: float) -> bool:
    if path.stat().st_mtime >= before:
        return False
    path.unlink()
    return True


def folded(text: str) -> str:
    """Returns the text with every line broken after `LINE_CHARS` characters."""
    return "\n".join(
        line[start : start + LINE_CHARS]
        for line in text.split("\n")
        for start in range(0, max(len(line), 1), LINE_CHARS)
    )


def trimmed(text: str, limit: int, name: str) -> str:
    """Returns a short text unchanged. A long text is reduced to its beginning and its end. A line
    between them says how to read the missing part."""
    if len(text) <= limit:
        return text
    room = limit - len(_note(len(text), 10 * len(text), name)) - 1
    if room <= 0:
        return text[:limit]
    half = room // 2
    head, tail = _head(text[:half]), _tail(text[-half:] if half else "")
    left_out = len(text) - len(head) - len(tail)
    note = _note(left_out, folded(head).count("\n") + 1, name)
    gap = "" if head.endswith("\n") else "\n"
    return f"{head}{gap}{note}{tail}"


def _note(left_out: int, line: int, name: str) -> str:
    return (
        f"[… {left_out} characters left out: read_file {name!r} has them from line {line} on …]\n"
    )


def _head(piece: str) -> str:
    """Returns the piece without its incomplete last line. If that line is at least half of the
    piece, returns the whole piece."""
    end = piece.rfind("\n") + 1
    return piece[:end] if end > len(piece) // 2 else piece


def _tail(piece: str) -> str:
    """Returns the piece without its incomplete first line. If that line is at least half of the
    piece, returns the whole piece."""
    start = piece.find("\n") + 1
    return piece[start:] if start < len(piece) // 2 else piece
