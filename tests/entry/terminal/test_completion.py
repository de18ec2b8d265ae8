"""The prompt completes commands and file names."""

from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from hermes.entry.terminal.completion import LISTED, Completions, names, offers_menu

COMMANDS = {"stop": "stop the running turn", "status": "what is going on", "new": "begin anew"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("todo.txt", "notes.md", ".hidden", "src/main.py", "two words.txt"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    return tmp_path


def completed(folder: Path, text: str) -> list[str]:
    """Returns the texts to which Tab can complete the typed text."""
    completions = Completions(COMMANDS, folder)
    found = completions.get_completions(Document(text), CompleteEvent(completion_requested=True))
    return [text[: len(text) + one.start_position] + one.text for one in found]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("/st", ["/stop", "/status"]),
        ("/ST", ["/stop", "/status"]),
        ("/", ["/stop", "/status", "/new"]),
        ("/stop now", []),
        ("say /st", []),
        ("see @", ["see @notes.md", "see @src/", "see @todo.txt", 'see @"two words.txt"']),
        ("see @to", ["see @todo.txt"]),
        ("see @tw", ['see @"two words.txt"']),
        ('see @"two w', ['see @"two words.txt"']),
        ('see @"sr', ['see @"src/']),
        ('see @"src/', ['see @"src/main.py"']),
        ('see @"todo.txt"', []),
        ("see @./to", ["see @./todo.txt"]),
        ("./n", ["./notes.md"]),
        ("in src/", ["in src/main.py"]),
        ("@.h", ["@.hidden"]),
        ("to", []),
        ("http://to", []),
        ("@nowhere/x", []),
        ("~nobody-of-this-name/x", []),
    ],
)
def test_commands_and_files_are_completed(folder: Path, text: str, wanted: list[str]) -> None:
    assert completed(folder, text) == wanted


@pytest.mark.parametrize(
    ("text", "shown"),
    [("/st", True), ("see @to", True), ('@"two w', True), ("see to", False), ("a@b", False)],
)
def test_the_menu_is_shown_for_commands_and_mentions(text: str, shown: bool) -> None:
    assert offers_menu(text) == shown


def test_an_absolute_path_is_not_a_command(folder: Path) -> None:
    assert completed(folder, f"{folder}/to") == [f"{folder}/todo.txt"]


def test_a_command_is_completed_together_with_its_help(folder: Path) -> None:
    completions = Completions(COMMANDS, folder)
    (only,) = completions.get_completions(Document("/sto"), CompleteEvent())
    assert only.display_meta_text == "stop the running turn"


def test_only_some_files_of_a_large_folder_are_offered(tmp_path: Path) -> None:
    for number in range(LISTED + 5):
        (tmp_path / f"{number:04}").touch()
    assert len(list(names(tmp_path, ""))) == LISTED
