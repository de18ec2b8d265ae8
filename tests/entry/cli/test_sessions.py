"""Earlier conversations on the command line."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hermes.app.application import Application
from hermes.entry.cli.main import cli
from hermes.entry.cli.sessions import told
from hermes.state.transcript import Entry
from hermes.text.console import printable
from hermes.types.messages import Attachment, UserMessage

KEY = "agent:main:cli:private:trip"
Run = Callable[..., Result]


def hermes(home: Path, model_url: str, *args: str) -> Result:
    environ = {
        "HERMES_HOME": str(home),
        "HERMES_CUSTOM_BASE_URL": model_url,
        "HERMES_MODEL": "fake",
    }
    return CliRunner(env=environ).invoke(cli, args, obj=Application())


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, model_url: str) -> Path:
    """Two conversations: one about a trip, in which a tool was used, and one about bread."""
    made = tmp_path_factory.mktemp("talked")
    for session, text in (
        ("trip", "A trip to Oslo"),
        ("trip", 'look tool:todo{"todos":[]}'),
        ("bread", "Rye bread"),
    ):
        assert hermes(made, model_url, "chat", "-s", session, "-q", text).exit_code == 0
    return made


@pytest.fixture
def talked(home: Path, tmp_path: Path, model_url: str) -> Run:
    own = tmp_path / "home"
    shutil.copytree(home, own)
    return lambda *args: hermes(own, model_url, *args)


HOSTILE = (
    "hi \x1b]52;c;ZXZpbA==\x07\x1b[2J\x9b31m \u202eexe.gpj\u200b\n[2026-01-01 10:00] you: forged"
)


@pytest.mark.parametrize(
    "command",
    [
        ("list",),
        ("list", "--json"),
        ("show", "odd"),
        ("show", "odd", "--json"),
        ("search", "forged"),
        ("search", "forged", "--json"),
        ("export", "--all"),
        ("show", "odd", "\x1b[2J\u202e"),
        ("delete", "odd"),
        ("delete", "odd", "--yes"),
    ],
    ids=" ".join,
)
def test_stored_text_can_t_control_the_terminal(
    tmp_path: Path, model_url: str, command: tuple[str, ...]
) -> None:
    name = "odd\x1b]0;name\x07\u202e"
    assert hermes(tmp_path, model_url, "chat", "-s", name, "-q", HOSTILE).exit_code == 0
    shown = hermes(tmp_path, model_url, "sessions", *command).output
    assert shown
    assert printable(shown) == shown
    if command == ("list",):
        assert len(shown.splitlines()) == 1


def test_json_of_hostile_text_is_lossless(tmp_path: Path, model_url: str) -> None:
    assert hermes(tmp_path, model_url, "chat", "-s", "odd", "-q", HOSTILE).exit_code == 0
    first = hermes(tmp_path, model_url, "sessions", "export", "odd").stdout.splitlines()[0]
    assert json.loads(first)["message"]["text"] == HOSTILE


def test_conversations_are_listed_newest_first_with_their_first_words(talked: Run) -> None:
    bread, trip = talked("sessions", "list").stdout.splitlines()
    assert bread.endswith("bread  Rye bread")
    assert trip.endswith("trip   A trip to Oslo")
    found = [json.loads(line) for line in talked("sessions", "list", "--json").stdout.splitlines()]
    assert [one["chat"] for one in found] == ["bread", "trip"]
    assert talked("sessions", "list", "--platform", "telegram").stdout.startswith("No conversa")
    assert talked("sessions", "list", "--limit", "0").exit_code == 2
    assert bread.index("bread") == trip.index("trip")


def test_a_conversation_is_shown_as_it_was_said(talked: Run) -> None:
    shown = talked("sessions", "show", "tr").stdout
    assert "you: A trip to Oslo" in shown
    assert "hermes: " in shown
    assert "· todo" in shown
    assert "a new conversation" not in shown
    talked("chat", "-s", "trip", "-q", "/new")
    talked("chat", "-s", "trip", "-q", "And Bergen")
    before, _, after = talked("sessions", "show", "trip").stdout.partition("── a new conversation")
    assert "Oslo" in before
    assert "you: And Bergen" in after


def test_words_are_found_in_all_of_them(talked: Run) -> None:
    found = talked("sessions", "search", "rye")
    assert found.exit_code == 0
    assert "agent:main:cli:private:bread" in found.stdout
    nothing = talked("sessions", "search", "zebra")
    assert nothing.exit_code == 1
    assert nothing.stderr == "Nothing was found.\n"


def test_an_export_has_a_message_a_line(talked: Run, tmp_path: Path) -> None:
    lines = [json.loads(line) for line in talked("sessions", "export", "trip").stdout.splitlines()]
    assert {line["session"] for line in lines} == {KEY}
    assert [line["message"]["role"] for line in lines] == [
        *("user", "assistant"),
        *("user", "assistant", "tool", "assistant"),
    ]
    done = talked("sessions", "export", "--all", "-o", str(tmp_path / "all.jsonl"))
    assert "8 messages of 2 conversations" in done.stderr
    assert len((tmp_path / "all.jsonl").read_text("utf-8").splitlines()) == 8
    assert talked("sessions", "export").exit_code == 2
    assert (tmp_path / "all.jsonl").stat().st_mode & 0o777 == 0o600
    nowhere = talked("sessions", "export", "--all", "-o", str(tmp_path / "none" / "x"))
    assert str(nowhere.exception).endswith("can't be written: No such file or directory")


def test_a_deleted_one_is_gone(talked: Run) -> None:
    assert talked("sessions", "delete", "trip").exit_code == 1, "nobody said yes"
    assert talked("sessions", "delete", "trip", "--yes").stdout == f"deleted {KEY}\n"
    assert "trip" not in talked("sessions", "list").stdout
    assert talked("sessions", "search", "Oslo").exit_code == 1


def test_a_name_that_fits_none_or_several_is_explained(talked: Run) -> None:
    missing = talked("sessions", "show", "nothing")
    assert str(missing.exception).startswith("there is no session 'nothing'")
    talked("chat", "-s", "trip2", "-q", "hi")
    assert "could be" in str(talked("sessions", "show", "tri").exception)
    assert "A trip to Oslo" in talked("sessions", "show", "trip").stdout


def test_what_was_never_summarised_needs_no_restoring(talked: Run) -> None:
    assert talked("sessions", "restore", "trip").stdout == "there was no summary\n"


def test_an_attachment_is_named_where_it_was_sent() -> None:
    cat = Attachment(kind="image", path="a", name="cat.png", at=5)
    message = UserMessage(text="Look.", attachments=(cat,))
    shown = told(Entry(at=0.0, generation=0, turn="t", message=message))
    assert shown.endswith("you: Look.\n[image cat.png]")
