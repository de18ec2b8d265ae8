"""The command `hermes chat` answers people and scripts."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from urllib.request import urlopen

import anyio
import pytest

from hermes.testing.running import until
from hermes.testing.terminal import Terminal
from tests.entry.cli.conftest import Service

HERMES = (sys.executable, "-m", "hermes")
Run = Callable[..., "subprocess.CompletedProcess[str]"]
TAG = re.compile(r"\[[0-9a-f]{4}:\d+(?:\.\d+)?\] ?|call \d+: ")


def plain(text: str) -> str:
    """Removes the tags that make each answer of the fake model unique."""
    return TAG.sub("", text).strip()


def test_one_question_is_answered_on_stdout(hermes: Run) -> None:
    done = hermes("chat", "-q", "hello there")
    assert done.returncode == 0
    assert plain(done.stdout) == "you said: hello there"
    assert done.stdout.endswith("\n")
    assert done.stderr == ""
    assert "\x1b" not in done.stdout


def test_hermes_without_a_command_starts_a_chat(hermes: Run) -> None:
    assert plain(hermes(stdin="good morning").stdout) == "you said: good morning"
    assert plain(hermes("-q", "hello").stdout) == "you said: hello"


def test_the_model_option_applies_to_one_chat(hermes: Run, model_url: str) -> None:
    def answered() -> str:
        with urlopen(f"{model_url.removesuffix('/v1')}/_last") as reply:
            name: str = json.load(reply)["model"]
            return name

    assert hermes("-m", "custom/other", "-q", "hi", "-s", "one").returncode == 0
    assert answered() == "other"
    assert hermes("chat", "-s", "one", "-q", "hi again").returncode == 0
    assert answered() == "fake"
    # The model on the command line takes precedence over the model that was chosen in the session.
    assert "third of custom" in hermes("chat", "-s", "one", "-q", "/model third").stdout
    assert hermes("chat", "-s", "one", "-q", "hi").returncode == 0
    assert answered() == "third"
    assert hermes("chat", "-s", "one", "-m", "other", "-q", "hi").returncode == 0
    assert answered() == "other"


def test_the_error_for_a_model_that_can_not_answer_is_one_sentence(hermes: Run) -> None:
    done = hermes("chat", "-m", "groq/a/b", "-q", "hi")
    assert done.returncode == 78
    assert "Groq needs a key: set GROQ_API_KEY" in done.stderr
    assert hermes("chat", "-m", "nobody has this", "-q", "hi").stderr == (
        "'nobody has this' is not the name of a model: write MODEL or provider/MODEL\n"
    )


def test_piped_text_is_added_to_the_question(hermes: Run) -> None:
    done = hermes("chat", "-q", "summarise", stdin="a long text\n")
    assert plain(done.stdout) == "you said: summarise a long text"


def test_only_a_question_and_not_piped_text_can_attach_files(
    environ: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "todo.txt").write_text("Buy milk.")
    said = {}
    for text, piped in (("see @todo.txt", ""), ("see this", "@todo.txt"), ("@nope.txt", "")):
        command = [*HERMES, "chat", "-q", text]
        said[text] = subprocess.run(
            command, input=piped, env=environ, cwd=tmp_path, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
    assert "Buy milk." in plain(said["see @todo.txt"].stdout)
    assert said["see @todo.txt"].stderr == "[Attached: todo.txt]\n"
    assert plain(said["see this"].stdout) == "you said: see this @todo.txt"
    assert said["@nope.txt"].returncode == 1
    assert said["@nope.txt"].stderr.startswith("There is no file 'nope.txt'.")


def test_tools_are_shown_as_lines_and_work_in_the_current_directory(hermes: Run) -> None:
    done = hermes("chat", "-q", 'tool:read_file{"path":"pyproject.toml"}')
    assert done.stderr.startswith("· read_file pyproject.toml (")
    assert done.stdout.startswith("[")
    assert "hermes-gateway" in plain(done.stdout)


def test_a_configured_workspace_is_used(hermes: Run, tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("remember the milk")
    question = 'tool:read_file{"path":"note.txt"}'
    done = hermes("chat", "-q", question, HERMES_WORKSPACE=str(tmp_path))
    assert "remember the milk" in plain(done.stdout)


def test_a_failed_turn_says_why_and_exits_with_1(hermes: Run) -> None:
    done = hermes("chat", "-q", "status:401")
    assert done.returncode == 1
    assert "Traceback" not in done.stdout + done.stderr
    assert done.stdout == ""
    assert done.stderr.strip()


def test_without_a_model_the_answer_says_how_to_set_one(hermes: Run) -> None:
    done = hermes("chat", "-q", "hi", HERMES_CUSTOM_BASE_URL="", HERMES_MODEL="")
    assert done.returncode == 1
    assert "hermes config set model.base_url" in done.stderr


@pytest.mark.parametrize("args", [("--json",), ()])
def test_a_chat_ends_silently_when_the_reader_of_its_output_has_ended(
    environ: dict[str, str], args: tuple[str, ...]
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [*HERMES, "chat", *args, "-q", "hello"]
    done = subprocess.run(
        command, env=environ, stdout=writer, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")


def test_json_is_one_event_per_line(hermes: Run) -> None:
    done = hermes("chat", "--json", "-q", "hello")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert events[0]["type"] == "Session"
    assert hermes("chat", "--resume", events[0]["name"], "-q", "hi").returncode == 0
    assert events[-1] == {"type": "TurnFinished", "outcome": "completed"}
    said = "".join(event["text"] for event in events if event["type"] == "TextDelta")
    assert plain(said) == "you said: hello"


def test_a_named_session_is_continued(hermes: Run, model_url: str) -> None:
    hermes("chat", "--session", "work", "-q", "first")
    done = hermes("chat", "-s", "work", "-q", "second")
    assert done.returncode == 0
    with urlopen(f"{model_url.removesuffix('/v1')}/_last") as reply:
        roles = [message["role"] for message in json.load(reply)["messages"]]
    assert roles == ["system", "user", "assistant", "user"]


def test_a_conversation_is_resumed_by_the_beginning_of_its_name(
    hermes: Run, model_url: str
) -> None:
    hermes("chat", "-s", "one", "-q", "first")
    hermes("chat", "-s", "other", "-q", "second")
    done = hermes("chat", "--resume", "on", "-q", "third")
    assert done.returncode == 0
    with urlopen(f"{model_url.removesuffix('/v1')}/_last") as reply:
        said = [one["content"] for one in json.load(reply)["messages"] if one["role"] == "user"]
    assert said == ["first", "third"]


def test_a_conversation_is_resumed_by_its_title(hermes: Run, environ: dict[str, str]) -> None:
    for session, title in (("one", "Trip to Rome"), ("two", "Food in Rome")):
        hermes("chat", "--session", session, "-q", "first")
        hermes("sessions", "rename", session, title)
    assert hermes("chat", "--resume", "trip TO", "-q", "again").returncode == 0
    assert "again" in hermes("sessions", "show", "one").stdout
    several = hermes("chat", "--resume", "rome", "-q", "again")
    assert several.returncode == 1
    assert "“rome” could be one of these:\n--resume " in several.stderr


def test_a_conversation_that_does_not_exist_cannot_be_resumed(hermes: Run) -> None:
    done = hermes("chat", "--resume", "nothing", "-q", "hi")
    assert done.returncode == 1
    assert "hermes sessions list" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_slash_command_is_answered_without_a_turn(hermes: Run) -> None:
    done = hermes("chat", "-q", "/status")
    assert (done.stdout, done.returncode) == ("Idle.\n", 0)
    shown = hermes("chat", "--json", "-q", "/status").stdout
    assert json.loads(shown.splitlines()[1]) == {"type": "Notice", "text": "Idle."}


def test_the_error_for_input_that_is_not_text_is_one_sentence(
    environ: dict[str, str], tmp_path: Path
) -> None:
    command = [*HERMES, "chat"]
    done = subprocess.run(command, input=b"\xff\x00", env=environ, capture_output=True, check=False)
    assert done.returncode == 1
    assert done.stderr == b"standard input is not text: only UTF-8 can be sent\n"


def test_a_question_says_how_to_answer_it(hermes: Run) -> None:
    done = hermes("chat", "-s", "my talk", "-q", 'tool:clarify{"question":"Which color?"}')
    assert done.returncode == 3
    assert done.stdout == ""
    assert done.stderr.count("Which color?") == 1
    assert "--session 'my talk'" in done.stderr


DELETION = 'tool:terminal{"command":"rm -rf old"}'


@pytest.fixture
def old(environ: dict[str, str], tmp_path: Path) -> Path:
    """Returns a folder that the agent is asked to delete."""
    environ |= {"TERMINAL_ENV": "local", "HERMES_WORKSPACE": str(tmp_path)}
    folder = tmp_path / "old"
    folder.mkdir()
    return folder


def test_an_approval_in_a_pipe_ends_the_command_and_names_the_next_step(
    hermes: Run, old: Path
) -> None:
    done = hermes("chat", "-s", "my talk", "-q", DELETION)
    assert (done.returncode, done.stdout) == (3, "")
    assert "┃ rm -rf old\n" in done.stderr
    assert "┃ Reason: deletes old with everything in it.\n" in done.stderr
    named = re.search(r"waits for your approval (\w{8}): rm -rf old\n", done.stderr)
    assert named
    id = named[1]
    assert f"hermes approvals approve {id}  or  hermes approvals deny {id}\n" in done.stderr
    assert f"hermes chat --session 'my talk' -q '/approve {id}'" in done.stderr
    waits = hermes("chat", "-s", "my talk", "-q", "and then?")
    assert waits.returncode == 3
    assert f"hermes approvals approve {id}" in waits.stderr
    assert old.exists()
    assert hermes("approvals", "approve", id).returncode == 0
    last = hermes("chat", "-s", "my talk", "-q", "the last question")
    assert last.returncode == 0
    assert plain(last.stdout) == "you said: the last question"
    assert not old.exists()


def test_a_command_decides_an_approval_and_prints_the_rest_of_the_turn(
    hermes: Run, old: Path
) -> None:
    id = hermes("chat", "-s", "talk", "-q", DELETION).stderr.rpartition("/deny ")[2][:8]
    denied = hermes("chat", "-s", "talk", "-q", f"/deny {id} keep it")
    assert denied.returncode == 0
    assert "you said:" in denied.stdout
    assert old.exists()


def test_a_running_gateway_continues_a_turn_that_was_begun_in_a_pipe(
    hermes: Run, old: Path, environ: dict[str, str]
) -> None:
    with Service(environ, "--port", "0"):
        id = hermes("chat", "-s", "talk", "-q", DELETION).stderr.rpartition("/deny ")[2][:8]
        assert old.exists()
        done = hermes("approvals", "approve", id)
        assert (done.returncode, done.stdout) == (0, f"{id} is approved once:\n┃ rm -rf old\n")
        anyio.run(partial(until, lambda: not old.exists(), within=20.0))


def test_the_json_event_of_an_approval_has_everything_that_a_program_needs(
    hermes: Run, old: Path
) -> None:
    done = hermes("chat", "--json", "-q", DELETION)
    assert done.returncode == 3
    events = {event["type"]: event for event in map(json.loads, done.stdout.splitlines())}
    asked = events["QuestionAsked"]
    assert asked["kind"] == "approval"
    assert asked["detail"] == "rm -rf old"
    assert asked["reason"] == "deletes old with everything in it"
    assert asked["choices"] == ["Once", "This session", "Always"]
    assert f"hermes approvals approve {asked['id'][-8:]}" in done.stderr
    assert old.exists()


def test_the_error_for_a_home_that_cannot_be_created_is_one_sentence(hermes: Run) -> None:
    done = hermes("chat", "-q", "hi", HERMES_HOME="/proc/nope")
    assert done.returncode == 78
    assert "'/proc/nope' can't be created" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("args", [("--json",), ("-q", " "), ("-c", "-s", "x", "-q", "hi")])
def test_a_wrong_option_is_reported(hermes: Run, args: tuple[str, ...]) -> None:
    done = hermes("chat", *args)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


@pytest.fixture
def terminal(environ: dict[str, str], tmp_path: Path) -> Iterator[Terminal]:
    """A chat in a terminal that can only print text and can't move its cursor."""
    with Terminal([*HERMES, "chat"], {**environ, "TERM": "dumb"}, tmp_path) as terminal:
        terminal.until(at_prompt(terminal))
        yield terminal
        assert b"\x1b" not in terminal.written


def at_prompt(terminal: Terminal) -> Callable[[], bool]:
    return lambda: terminal.row == "›"


def test_a_plain_terminal_reads_line_by_line_until_ctrl_d(terminal: Terminal) -> None:
    terminal.send("hello\n")
    terminal.until("you said:")
    terminal.until(at_prompt(terminal))
    terminal.send("/status\n")
    terminal.until("Idle.")
    terminal.until(at_prompt(terminal))
    terminal.send("\x04")
    assert terminal.ended() == 0
    assert "To continue: hermes chat --resume " in terminal.text


def test_ctrl_c_stops_the_turn_and_then_the_program(terminal: Terminal) -> None:
    terminal.send("tokens:200 delay:0.05\n")
    terminal.until("[")
    terminal.send("\x03")
    terminal.until("stopped")
    terminal.until(at_prompt(terminal))
    terminal.send("and on\n")
    terminal.until("and on [")
    terminal.until(at_prompt(terminal))
    terminal.send("\x03")
    assert terminal.ended() == 0


def test_a_paste_is_one_message(terminal: Terminal) -> None:
    terminal.send("one\ntwo\nthree\n")
    terminal.until("you said:")
    terminal.until(at_prompt(terminal))
    assert terminal.text.count("you said:") == 1


def test_sigterm_ends_the_chat_in_the_middle_of_a_turn(
    environ: dict[str, str], tmp_path: Path, model_url: str, until_asked: Callable[[str], None]
) -> None:
    environ |= {"HERMES_RESTART_DRAIN_TIMEOUT": "0", "TERM": "dumb"}
    with Terminal([*HERMES, "chat"], environ, tmp_path) as terminal:
        terminal.until(at_prompt(terminal))
        terminal.send("hang\n")
        until_asked(model_url)
        os.kill(terminal.process.pid, signal.SIGTERM)
        assert terminal.ended() == 0


def test_ctrl_c_ends_one_question_with_130(environ: dict[str, str], tmp_path: Path) -> None:
    question = [*HERMES, "-q", "tokens:200 delay:0.05"]
    with Terminal(question, environ, tmp_path) as terminal:
        terminal.until("[")
        terminal.send("\x03")
        assert terminal.ended() == 130
        assert "stopped" in terminal.text


def test_the_variable_no_color_turns_colors_off(environ: dict[str, str], tmp_path: Path) -> None:
    question = [*HERMES, "-q", 'tool:read_file{"path":"none"}']
    environ["TERM"] = "xterm"
    with Terminal(question, environ, tmp_path) as terminal:
        assert terminal.ended() == 0
        assert b"\x1b[" in terminal.written
    with Terminal(question, {**environ, "NO_COLOR": "1"}, tmp_path) as terminal:
        assert terminal.ended() == 0
        assert b"\x1b" not in terminal.written
