"""The command `hermes sessions` lists, shows and changes earlier conversations."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hermes.app.application import Application
from hermes.control.sessions import Summary
from hermes.entry.cli.main import cli
from hermes.entry.cli.sessions import rows, told
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
    """Creates two conversations: one about a trip, with a tool call, and one about bread."""
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


def test_json_output_keeps_hostile_text_unchanged(tmp_path: Path, model_url: str) -> None:
    assert hermes(tmp_path, model_url, "chat", "-s", "odd", "-q", HOSTILE).exit_code == 0
    first = hermes(tmp_path, model_url, "sessions", "export", "odd").stdout.splitlines()[0]
    assert json.loads(first)["message"]["text"] == HOSTILE


def test_conversations_are_listed_newest_first_with_their_first_words(talked: Run) -> None:
    bread, trip = talked("sessions", "list").stdout.splitlines()
    assert bread.startswith("1  bread  20")
    assert bread.endswith("  2 messages  cli  Rye bread")
    assert trip.startswith("2  trip   20")
    assert trip.endswith("  6 messages  cli  A trip to Oslo")
    found = [json.loads(line) for line in talked("sessions", "list", "--json").stdout.splitlines()]
    assert [one["chat"] for one in found] == ["bread", "trip"]
    assert [(one["number"], one["id"]) for one in found] == [(1, "bread"), (2, "trip")]
    assert talked("sessions", "list", "--platform", "telegram").stdout.startswith("No conversa")
    assert talked("sessions", "list", "--limit", "0").exit_code == 2


def test_the_messages_of_a_conversation_are_shown_unchanged(talked: Run) -> None:
    shown = talked("sessions", "show", "tr").stdout
    assert "you: A trip to Oslo" in shown
    assert "hermes: " in shown
    assert "· todo" in shown


def test_the_command_new_starts_another_row_and_the_earlier_conversation_can_be_resumed(
    talked: Run,
) -> None:
    talked("chat", "-s", "trip", "-q", "/new")
    talked("chat", "-s", "trip", "-q", "And Bergen")
    listed = [line.split() for line in talked("sessions", "list").stdout.splitlines()]
    assert [words[1] for words in listed] == ["trip", "bread", "trip.1"]
    assert [words[-1] for words in listed] == ["Bergen", "bread", "Oslo"]
    assert "Oslo" not in talked("sessions", "show", "trip").stdout
    assert "Oslo" in talked("sessions", "show", "trip.1").stdout
    assert "  trip.1  user: " in talked("sessions", "search", "Oslo").stdout
    assert "Oslo" in talked("sessions", "show", "3").stdout
    asked = talked("chat", "--resume", "3", "-q", "messages?")
    assert asked.exit_code == 0
    listed = [line.split() for line in talked("sessions", "list").stdout.splitlines()]
    assert [words[1] for words in listed] == ["trip", "trip.2", "bread"]
    resumed = talked("sessions", "show", "trip").stdout
    assert "A trip to Oslo" in resumed
    assert "messages?" in resumed
    talked("chat", "-s", "trip", "-q", "/new")
    talked("chat", "-s", "trip", "-q", "A third one")
    assert "trip.1" in talked("sessions", "list").stdout
    assert "trip.2" in talked("sessions", "list").stdout


def test_one_conversation_of_a_session_is_deleted_and_the_others_stay(talked: Run) -> None:
    talked("chat", "-s", "trip", "-q", "/new")
    talked("chat", "-s", "trip", "-q", "And Bergen")
    assert talked("sessions", "delete", "trip.1", "--yes").stdout == "deleted trip.1\n"
    assert talked("sessions", "search", "Oslo").exit_code == 1
    assert "Bergen" in talked("sessions", "show", "trip").stdout
    talked("chat", "-s", "trip", "-q", "/new")
    talked("chat", "-s", "trip", "-q", "And Tromsø")
    assert talked("sessions", "delete", "trip", "--yes").exit_code == 0
    assert talked("sessions", "search", "Tromsø").exit_code == 1
    assert "Bergen" in talked("sessions", "list").stdout
    assert talked("sessions", "delete", "trip.2", "--yes").exit_code == 0
    assert "there is no session 'trip'" in str(talked("sessions", "show", "trip").exception)


def test_a_generated_name_has_a_short_id(talked: Run) -> None:
    assert talked("chat", "-q", "Porridge").exit_code == 0
    _, id, *_ = talked("sessions", "list").stdout.splitlines()[0].split()
    assert len(id) == 8
    assert talked("chat", "--resume", id, "-q", "with milk").exit_code == 0
    shown = talked("sessions", "show", id).stdout
    assert "Porridge" in shown
    assert "with milk" in shown


def test_a_number_from_a_filtered_list_means_the_same_conversation(talked: Run) -> None:
    (trip,) = [
        line
        for line in talked("sessions", "list", "--platform", "cli").stdout.splitlines()
        if "Oslo" in line
    ]
    assert "Oslo" in talked("sessions", "show", trip.split()[0]).stdout


def test_a_conversation_is_renamed(talked: Run) -> None:
    assert talked("sessions", "rename", "trip", "Norway", "in May").stdout == (
        "trip is now 'Norway in May'\n"
    )
    assert "Norway in May" in talked("sessions", "list").stdout
    talked("chat", "-s", "trip", "-q", "And Bergen")
    assert "Norway in May" in talked("sessions", "list").stdout, "a later message keeps the title"
    empty = talked("sessions", "rename", "trip", " ")
    assert empty.exit_code == 2
    assert empty.stderr == "the title is empty: give it at least one word\n"
    talked("chat", "-s", "trip", "-q", "/new")
    assert talked("sessions", "rename", "trip.1", "Oslo 1").stdout == "trip.1 is now 'Oslo 1'\n"
    assert "Oslo 1" in talked("sessions", "list").stdout


def test_old_conversations_are_pruned(talked: Run) -> None:
    assert talked("sessions", "prune").stdout == "No conversation is older than 90 days.\n"
    listed = talked("sessions", "prune", "--older-than", "0", "--dry-run")
    assert "bread (Rye bread) with 2 messages" in listed.stdout
    assert talked("sessions", "prune", "--older-than", "0").exit_code == 1, "nobody said yes"
    other = talked("sessions", "prune", "--older-than", "0", "--platform", "telegram", "--yes")
    assert other.stdout == "No conversation is older than 0 days.\n"
    done = talked("sessions", "prune", "--older-than", "0", "--yes")
    assert done.stdout.splitlines()[-1] == "deleted 2 conversations"
    assert talked("sessions", "list").stdout.startswith("No conversations yet")


def test_search_finds_messages_in_all_conversations(talked: Run) -> None:
    found = talked("sessions", "search", "rye")
    assert found.exit_code == 0
    assert "  bread  user: " in found.stdout
    nothing = talked("sessions", "search", "zebra")
    assert nothing.exit_code == 1
    assert nothing.stderr == "Nothing was found.\n"


def test_an_export_has_one_message_per_line(talked: Run, tmp_path: Path) -> None:
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


def test_an_export_may_be_markdown(talked: Run, tmp_path: Path) -> None:
    shown = talked("sessions", "export", "trip", "--format", "markdown").stdout
    title, place, asked = shown.split("\n\n")[:3]
    assert title == "# A trip to Oslo"
    assert place.startswith(f"cli · {KEY} · 20")
    assert asked.startswith("## You, 20")
    assert "## Hermes, 20" in shown
    assert "Tool `todo`:\n\n```json\n" in shown
    assert "Result:\n\n```\n" in shown
    talked("sessions", "export", "--all", "-o", str(tmp_path / "all.md"))
    written = (tmp_path / "all.md").read_text("utf-8")
    assert "# A trip to Oslo" in written
    assert "# Rye bread" in written


def test_a_deleted_conversation_is_not_listed(talked: Run) -> None:
    assert talked("sessions", "delete", "trip").exit_code == 1, "nobody said yes"
    assert talked("sessions", "delete", "trip", "--yes").stdout == f"deleted {KEY}\n"
    assert "trip" not in talked("sessions", "list").stdout
    assert talked("sessions", "search", "Oslo").exit_code == 1


def test_a_name_that_matches_no_conversation_or_several_is_explained(talked: Run) -> None:
    missing = talked("sessions", "show", "nothing")
    assert str(missing.exception).startswith("there is no session 'nothing'")
    talked("chat", "-s", "trip2", "-q", "hi")
    assert "could be" in str(talked("sessions", "show", "tri").exception)
    assert "A trip to Oslo" in talked("sessions", "show", "trip").stdout


def test_a_conversation_without_summaries_needs_no_restoring(talked: Run) -> None:
    assert talked("sessions", "restore", "trip").stdout == "there was no summary\n"


def test_a_narrow_terminal_shows_a_conversation_on_several_lines() -> None:
    found = [
        Summary(
            key="agent:main:cli:private:trip",
            title="A weekend in the mountains with the children",
            platform="cli",
            chat="trip",
            messages=12,
            created_at=0.0,
            updated_at=0.0,
            generation=0,
            current=True,
            number=number,
            id="trip",
        )
        for number in (9, 10)
    ]
    first, _ = rows(found, 40)
    assert all(len(line) <= 40 for line in first.splitlines())
    assert first.split() == rows(found, None)[0].split()
    indents = [len(line) - len(line.lstrip()) for line in first.splitlines()]
    assert indents[1:] == [len(" 9  trip  ")] * (len(indents) - 1)


def test_an_attachment_is_named_at_its_place_in_the_conversation() -> None:
    cat = Attachment(kind="image", path="a", name="cat.png", at=5)
    message = UserMessage(text="Look.", attachments=(cat,))
    shown = told(Entry(at=0.0, generation=0, turn="t", message=message))
    assert shown.endswith("you: Look.\n[image cat.png]")
