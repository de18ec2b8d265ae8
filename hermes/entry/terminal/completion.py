"""Completes slash commands and the names of files at the prompt."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from hermes.text.console import printable

LISTED = 200
"""Maximum number of names that are offered for one folder."""
_COMMAND = re.compile(r"/[\w-]*")
_SPACE = re.compile(r"\s")
_MENTION = re.compile(r'(?<!\S)@(?P<quote>"?)(?P<path>(?<=")[^"\n]*|(?<!")\S*)\Z')
_WORD = re.compile(r"\S*\Z")


class Completions(Completer):
    """Completes commands at the beginning of a message, files after @, and paths."""

    def __init__(self, commands: Mapping[str, str], folder: Path) -> None:
        self._commands = commands
        """The help of each command, by its name."""
        self._folder = folder

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        text = document.text_before_cursor
        if _COMMAND.fullmatch(text):
            for name, meaning in self._commands.items():
                if name.startswith(text[1:].lower()):
                    yield Completion(f"/{name}", -len(text), display_meta=meaning)
            return
        if mention := _MENTION.search(text):
            yield from self._mentions(mention["path"], len(mention["quote"]))
            return
        found = _WORD.search(text)
        path = found[0] if found else ""
        if _is_path(path):
            start = -len(path.rpartition("/")[2])
            for name in names(self._folder, path):
                yield Completion(name, start, display=printable(name))

    def _mentions(self, path: str, quote: int) -> Iterable[Completion]:
        """Completes files after @. A path with a space is put into quotes."""
        folder, slash, _ = path.rpartition("/")
        for name in names(self._folder, path):
            whole = f"{folder}{slash}{name}"
            if quote or _SPACE.search(whole):
                # The quotes stay open after a folder, so that its files can follow.
                whole = f'"{whole}' if name.endswith("/") else f'"{whole}"'
            yield Completion(whole, -len(path) - quote, display=printable(name))


def names(folder: Path, begun: str) -> Iterator[str]:
    """Yields the files and folders with which a person can complete the path `begun`. Their names
    begin with the last part of the path. A slash is added to the name of a folder.

    Hidden files are left out, unless the last part begins with a dot.
    """
    place, _, start = begun.rpartition("/")
    try:
        where = folder / Path(f"{place}/" if "/" in begun else "").expanduser()
        with os.scandir(where) as entries:
            found = sorted(
                f"{entry.name}/" if entry.is_dir() else entry.name
                for entry in entries
                if entry.name.startswith(start)
                and (start.startswith(".") or not entry.name.startswith("."))
            )
    except (OSError, RuntimeError):
        # The folder does not exist or can't be read, or it is the home of an unknown user.
        return
    yield from found[:LISTED]


def offers_menu(text: str) -> bool:
    """Returns whether completions are shown without Tab: for commands and after @."""
    return text.startswith("/") or _MENTION.search(text) is not None


def _is_path(word: str) -> bool:
    return "/" in word and "://" not in word
