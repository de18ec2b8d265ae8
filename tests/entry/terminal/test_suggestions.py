"""The prompt suggests lines from the history."""

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.history import InMemoryHistory

from hermes.entry.terminal.suggestions import HistorySuggestions

COMMANDS = {"status": (), "stop": ("cancel",), "model": ()}


def suggested(suggestions: HistorySuggestions, typed: str, *history: str) -> str | None:
    buffer = Buffer(history=InMemoryHistory())
    for line in history:
        buffer.history.append_string(line)
    found = suggestions.get_suggestion(buffer, Document(typed))
    return found.text if found else None


def test_the_newest_line_with_the_same_beginning_is_suggested() -> None:
    suggestions = HistorySuggestions(COMMANDS)
    assert suggested(suggestions, "buy", "buy milk", "buy bread", "sell") == " bread"
    assert suggested(suggestions, "buy", "sell\nbuy milk") == " milk"
    assert suggested(suggestions, "buy", "sell") is None
    assert suggested(suggestions, " ", " indented") is None


def test_a_command_that_does_not_exist_is_not_suggested() -> None:
    suggestions = HistorySuggestions(COMMANDS)
    assert suggested(suggestions, "/sta", "/status", "/stauts") == "tus"
    assert suggested(suggestions, "/s", "/st") is None
    assert suggested(suggestions, "/c", "/cancel") == "ancel"
    assert suggested(suggestions, "/e", "/etc/passwd is a file") == "tc/passwd is a file"


def test_a_command_that_failed_is_not_suggested() -> None:
    suggestions = HistorySuggestions(COMMANDS)
    assert suggested(suggestions, "/mod", "/model nope") == "el nope"
    suggestions.skip("/model nope")
    assert suggested(suggestions, "/mod", "/model fake", "/model nope") == "el fake"
