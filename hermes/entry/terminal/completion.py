"""What can be completed at the prompt: slash commands, and names of files."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from hermes.text.console import printable

LISTED = 200
"""Names that a folder offers at most."""
_COMMAND = re.compile(r"/[\w-]*")
_WORD = re.compile(r"\S*\Z")


class Completions(Completer):
    """Commands at the beginning of a message; files after @, and in words that look like paths."""

    def __init__(self, commands: Mapping[str, str], folder: Path) -> None:
        self._commands = commands
        """Their help, by name."""
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
        found = _WORD.search(text)
        word = found[0] if found else ""
        if word.startswith("@") or _is_path(word):
            path = word.removeprefix("@")
            start = -len(path.rpartition("/")[2])
            for name in names(self._folder, path):
                yield Completion(name, start, display=printable(name))


def names(folder: Path, begun: str) -> Iterator[str]:
    """What the last part of a path can become, folders with a slash behind; hidden when asked."""
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
        # No such folder, not ours to read, or the home of nobody.
        return
    yield from found[:LISTED]


def _is_path(word: str) -> bool:
    return "/" in word and "://" not in word
