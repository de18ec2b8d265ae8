"""Suggests lines of the history that complete the typed text, but no commands that failed."""

from collections.abc import Collection, Mapping

from prompt_toolkit.auto_suggest import AutoSuggest, Suggestion
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document

from hermes.text.commands import parse_command, resolve


class HistorySuggestions(AutoSuggest):
    """Suggests the newest line of the history that begins with the typed text."""

    def __init__(self, commands: Mapping[str, Collection[str]]) -> None:
        self._commands = commands
        """The aliases of each command, by its name."""
        self._failed: set[str] = set()

    def skip(self, text: str) -> None:
        """Stops suggesting this line."""
        self._failed.add(text.strip())

    def get_suggestion(self, buffer: Buffer, document: Document) -> Suggestion | None:
        typed = document.text.rpartition("\n")[2]
        if not typed.strip():
            return None
        for entry in reversed(buffer.history.get_strings()):
            if entry.strip() in self._failed or self._is_unknown(entry):
                continue
            for line in reversed(entry.split("\n")):
                if line.startswith(typed):
                    return Suggestion(line[len(typed) :])
        return None

    def _is_unknown(self, entry: str) -> bool:
        """Returns whether the entry is a command that does not exist or is ambiguous."""
        command = parse_command(entry)
        return command is not None and not isinstance(resolve(command.name, self._commands), str)
