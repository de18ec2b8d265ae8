"""`hermes chat` works in a terminal. The tests type keys and read the screen."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.request import Request, urlopen

import msgspec
import pytest

from hermes.entry.cli.interactive_chat import HOST, STILL_OPEN
from hermes.testing.scripted import Plan
from hermes.testing.terminal import Terminal

HERMES = (sys.executable, "-m", "hermes")
ENTER, TAB, ALT_ENTER, CTRL_C, CTRL_D, UP = "\r", "\t", "\x1b\r", "\x03", "\x04", "\x1b[A"
COLOR = re.compile(rb"\x1b\[(\d+;)*(3|4|9|10)\d[;m]")
STATUS = re.compile(r"^fake · context \S+ of 128k$", re.MULTILINE)
ANSWER = """\
# Plan
Some **bold** words, `code` and a [link](http://x.org):

1. one
1. two

```python
def f(x):
    return x
```

| name | 数量 |
|------|-----:|
| 漢字 | 3 |
| 🙂 | 12 |

The end.
"""


class Person:
    """A person at `hermes chat`, in a folder of their own."""

    def __init__(self, root: Path, model_url: str) -> None:
        self.folder = root / "project"
        self.folder.mkdir()
        (self.folder / "todo.txt").write_text("Buy milk.\n")
        self.model_url = model_url
        self.environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(root),
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "HERMES_HOME": str(root / "home"),
            "HERMES_CUSTOM_BASE_URL": model_url,
            "HERMES_MODEL": "fake",
        }

    def starts(self, *args: str, columns: int = 80, **names: str) -> Terminal:
        environ = {**self.environ, **names}
        return Terminal([*HERMES, "chat", *args], environ, self.folder, columns=columns)

    def hears(self, plan: Plan) -> None:
        """Makes the model answer with this plan from now on."""
        address = self.model_url.removesuffix("/v1") + "/_ctl"
        with urlopen(Request(address, msgspec.json.encode({"default": plan}))):
            pass

    def asked(self) -> str:
        """Returns the last message that the model received."""
        with urlopen(self.model_url.removesuffix("/v1") + "/_last") as reply:
            said: str = json.load(reply)["messages"][-1]["content"]
        return said


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory, model_url: str) -> Person:
    return Person(tmp_path_factory.mktemp("person"), model_url)


@pytest.fixture(scope="module")
def running(person: Person) -> Iterator[Terminal]:
    with person.starts() as terminal:
        yield terminal


@pytest.fixture
def terminal(running: Terminal, person: Person) -> Terminal:
    """Starts a chat with a model that echoes, and waits for the empty prompt."""
    person.hears(Plan())
    running.until(at_prompt(running))
    return running


def at_prompt(terminal: Terminal) -> Callable[[], bool]:
    return lambda: terminal.row == "›"


def ask(terminal: Terminal, text: str) -> list[str]:
    """Sends a question, and returns the lines on the screen from the question on."""
    before = terminal.text.count("\n")
    terminal.send(text + ENTER)
    # It is not enough to wait for the prompt: the old prompt may still be on the screen. So the
    # test also waits for new lines.
    terminal.until(lambda: terminal.text.count("\n") > before and at_prompt(terminal)())
    return terminal.text.split("\n")[before:]


def test_the_first_line_names_the_model_and_the_workspace(terminal: Terminal) -> None:
    title, hint, *_ = terminal.lines
    assert re.fullmatch(r"Hermes \S+ · fake \(custom\) · ~/project", title)
    assert "/help" in hint
    assert HOST not in terminal.text


def test_words_appear_as_they_arrive_and_a_spinner_is_shown(terminal: Terminal) -> None:
    terminal.send("tokens:40 delay:0.03 ttft:0.5 reasoning:2" + ENTER)
    terminal.until("thinking")
    terminal.until("you said:")
    assert any(line.startswith("[") for line in terminal.lines)
    assert "thinking" not in terminal.text
    terminal.until(at_prompt(terminal))
    assert re.search(r"· \d\.\d s · [\d,]+ tokens in · 40 out", terminal.text)


def test_markdown_is_rendered(terminal: Terminal, person: Person) -> None:
    person.hears(Plan(text=ANSWER, delay=0.005))
    lines = ask(terminal, "what is the plan?")
    start = lines.index("Plan")
    assert lines[start : start + 17] == [
        "Plan",
        "",
        "Some bold words, code and a link (http://x.org):",
        "",
        "1. one",
        "2. two",
        "",
        "  def f(x):",
        "      return x",
        "",
        "name   数量",
        "───────────",
        "漢字      3",
        "🙂       12",
        "",
        "The end.",
        "",
    ]
    assert terminal.style("bold words").bold
    assert terminal.style("def f").fg != terminal.style("Some").fg


def test_a_tool_has_a_line_with_its_duration_and_its_result(terminal: Terminal) -> None:
    lines = ask(terminal, 'tool:read_file{"path":"todo.txt"} tool:read_file{"path":"none"}')
    assert any(
        re.fullmatch(r"· read_file todo.txt \(\d\.\d s\): Buy milk.*", line) for line in lines
    )
    failed = r"✗ read_file none \(failed, \d\.\d s\): 'none': No such file.*"
    assert any(re.fullmatch(failed, line) for line in lines)
    assert "Buy milk." in " ".join(lines)


def test_a_change_is_shown_as_a_coloured_diff(terminal: Terminal, person: Person) -> None:
    (person.folder / "list.txt").write_text("eggs\n\tmilk\n")
    change = '{"path":"list.txt","old":"milk","new":"oat\\u001b[2Jmilk"}'
    lines = ask(terminal, f"tool:patch{change}")
    start = next(at for at, line in enumerate(lines) if line.startswith("· patch list.txt ("))
    assert lines[start + 1 : start + 5] == [
        "  @@ -1,2 +1,2 @@",
        "   eggs",
        "  -   milk",
        "  +   oatmilk",
    ]
    assert terminal.style("-   milk").fg == "red"
    assert terminal.style("+   oatmilk").fg == "green"


def test_a_status_line_shows_the_model_and_the_used_share_of_its_window(terminal: Terminal) -> None:
    ask(terminal, "hello")
    above = terminal.lines[terminal.lines.index("›") - 1]
    assert re.fullmatch(r"fake · context (\d|<1)% of 128k", above)
    terminal.send("hang" + ENTER)
    terminal.until(lambda: any(line == f"{above} · Esc stops" for line in terminal.lines))
    terminal.send(CTRL_C)
    terminal.until(at_prompt(terminal))
    # Only the current status line is on the screen: when a message is sent, no copy of the line is
    # left above it.
    assert terminal.text.count("fake · context") == 1


def test_esc_stops_the_turn_and_keeps_the_line(terminal: Terminal) -> None:
    terminal.send("hang" + ENTER)
    terminal.until("thinking")
    terminal.send("not sent yet")
    terminal.until(lambda: terminal.row == "› not sent yet")
    terminal.send("\x1b")
    # While the agent works, the status line ends with a hint. A line without the hint means that
    # the turn has stopped.
    terminal.until(lambda: STATUS.search(terminal.text))
    terminal.until(lambda: terminal.row == "› not sent yet")
    assert "Stopped." in terminal.lines
    terminal.send(CTRL_C + "x\b")
    terminal.until(at_prompt(terminal))


def test_a_file_is_attached(terminal: Terminal, person: Person) -> None:
    ask(terminal, "what is in @todo.txt")
    assert "[file todo.txt]\nBuy milk.\n" in person.asked()
    lines = ask(terminal, "and in @nope.txt")
    assert "There is no file 'nope.txt'. Type @@nope.txt if you don't mean a file." in lines
    assert "Buy milk." in person.asked()


def test_a_command_that_failed_is_not_suggested(terminal: Terminal) -> None:
    assert any("There is no command" in line for line in ask(terminal, "/statsu"))
    assert "Idle." in ask(terminal, "/status")
    ask(terminal, "/statsu")
    terminal.send("/stat")
    terminal.until(lambda: terminal.row == "› /status")
    terminal.send(CTRL_C + "x\b")
    terminal.until(at_prompt(terminal))


def test_the_hint_after_ctrl_c_is_cleared(terminal: Terminal) -> None:
    terminal.send(CTRL_C)
    terminal.until("Ctrl-C again leaves")
    terminal.send(ENTER)
    terminal.until(lambda: "Ctrl-C again leaves" not in terminal.text)
    terminal.until(at_prompt(terminal))
    terminal.send(CTRL_C)
    terminal.until("Ctrl-C again leaves")
    terminal.until(at_prompt(terminal))
    assert "Ctrl-C again leaves" not in terminal.text


def test_a_long_answer_scrolls_and_no_line_is_shown_twice(
    terminal: Terminal, person: Person
) -> None:
    code = "".join(f"step_{number} = {number}\n" for number in range(40))
    listed = "".join(f"- item {number} of it\n" for number in range(40))
    person.hears(Plan(text=f"```py\n{code}```\n\n{listed}\nEnd.", delay=0.002))
    lines = ask(terminal, "at length")
    assert [line for line in lines if "step_" in line] == [
        f"  step_{number} = {number}" for number in range(40)
    ]
    assert [line for line in lines if "item" in line] == [
        f"• item {number} of it" for number in range(40)
    ]


def test_a_paste_of_several_lines_is_one_message(terminal: Terminal, person: Person) -> None:
    terminal.send("\x1b[200~one\ntwo\nthree\x1b[201~")
    terminal.until("  three")
    ask(terminal, " and four")
    assert person.asked() == "one\ntwo\nthree and four"


def test_lines_can_be_added_before_the_message_is_sent(terminal: Terminal, person: Person) -> None:
    terminal.send(f"one{ALT_ENTER}two\\{ENTER}three")
    terminal.until("  three")
    ask(terminal, "")
    assert person.asked() == "one\ntwo\nthree"


def test_the_up_arrow_shows_earlier_messages(terminal: Terminal, person: Person) -> None:
    ask(terminal, "remember me")
    ask(terminal, "forget me")
    terminal.send(UP + UP)
    terminal.until(lambda: terminal.row == "› remember me")
    ask(terminal, "")
    assert person.asked() == "remember me"
    history = Path(person.environ["HERMES_HOME"]) / "history"
    assert history.stat().st_mode & 0o777 == 0o600
    assert "+forget me" in history.read_text()


def test_commands_are_completed_with_their_help(terminal: Terminal) -> None:
    terminal.send("/st")
    terminal.until("show what the agent is doing")
    assert any("/stop" in line and "stop the running turn" in line for line in terminal.lines)
    terminal.send(TAB + TAB)
    terminal.until(lambda: terminal.row.startswith("› /status"))
    terminal.send(ENTER)
    terminal.until("Idle.")


def test_files_of_the_current_directory_are_completed(terminal: Terminal) -> None:
    terminal.send("see @to")
    terminal.until(lambda: any(line.strip() == "todo.txt" for line in terminal.lines))
    terminal.send(TAB)
    terminal.until(lambda: terminal.row.startswith("› see @todo.txt"))
    terminal.send(CTRL_C)
    terminal.until("Ctrl-C again leaves")
    terminal.send("x\b")


def test_ctrl_c_stops_the_turn_and_not_the_program(terminal: Terminal) -> None:
    terminal.send("hang" + ENTER)
    terminal.until("thinking")
    terminal.send(CTRL_C)
    terminal.until("Stopped.")
    terminal.until(at_prompt(terminal))
    assert "still here" in " ".join(ask(terminal, "still here"))


def test_text_that_is_typed_during_a_turn_is_kept_for_the_prompt(
    terminal: Terminal, person: Person
) -> None:
    terminal.send("tokens:30 delay:0.03" + ENTER)
    terminal.until("you said:")
    terminal.send("typed ahead")
    terminal.until(lambda: terminal.row == "› typed ahead")
    assert terminal.text.count("typed ahead") == 1
    ask(terminal, "")
    assert person.asked() == "typed ahead"


def test_messages_sent_during_a_turn_are_queued_and_commands_act_at_once(
    terminal: Terminal, person: Person
) -> None:
    terminal.send("hang" + ENTER)
    terminal.until("thinking")
    terminal.send("and then" + ENTER + "/status" + ENTER)
    terminal.until("Queued (1): and then")
    terminal.until("/stop ends it. 1 queued.")
    terminal.send("/stop" + ENTER)
    terminal.until("Stopped. 1 queued message follows.")
    terminal.until(at_prompt(terminal))
    assert person.asked() == "and then"
    lines = terminal.text.split("\n")
    assert "you said:" in lines[lines.index("› and then") + 1]


def test_the_size_of_the_terminal_may_change_in_the_middle_of_a_turn(
    terminal: Terminal, person: Person
) -> None:
    words = [f"word{number:03}" for number in range(60)]
    person.hears(Plan(text=f"{' '.join(words)}\n\n{ANSWER}", ttft=0.3, delay=0.01))
    terminal.send("narrow" + ENTER)
    terminal.until("thinking")
    terminal.resize(40, 24)
    terminal.until(words[9])
    assert words[4] not in terminal.row
    terminal.resize(90, 24)
    terminal.until("The end.")
    terminal.until(at_prompt(terminal))
    assert re.findall(r"word\d+", terminal.text) == words
    assert "漢字      3" in terminal.text


def test_help_names_the_commands_that_leave_the_chat(terminal: Terminal) -> None:
    lines = ask(terminal, "/help")
    assert "/stop or /cancel: stop the running turn" in lines
    assert "/exit or /quit: leave the chat" in lines
    assert "Ctrl-D leaves." in lines


def test_another_terminal_lists_the_conversation_and_resumes_it(
    terminal: Terminal, person: Person
) -> None:
    ask(terminal, "a word about owls")
    ask(terminal, "/title Owls at night")
    with person.starts() as other:
        other.until(at_prompt(other))
        assert "There is no conversation with “larks”" in "".join(ask(other, "/sessions larks"))
        found = re.search(r"/resume (\d+): Owls at night \(", "\n".join(ask(other, "/sess OWLS")))
        assert found
        assert "there is no session 'none'" in "".join(ask(other, "/resume none"))
        resumed = ask(other, f"/resume {found[1]}")
        confirmed = r"“Owls at night” is continued\. It has \d+ messages so far\."
        assert any(re.fullmatch(confirmed, line) for line in resumed)
        assert "› a word about owls" in resumed
        ask(other, "/new")
        assert "› a word about owls" in ask(other, "/resume owls at")
        assert "The title is “Owls at night”" in "".join(ask(other, "/title"))


def test_ctrl_d_leaves_the_chat_and_the_option_continue_resumes_it(
    terminal: Terminal, person: Person
) -> None:
    person.hears(Plan(text="The answer was **42**."))
    ask(terminal, "what was the answer?")
    terminal.send(CTRL_D)
    assert terminal.ended() == 0
    name = re.search(r"To continue: hermes chat --resume (\w+)", terminal.text)
    assert name
    with person.starts("--continue", columns=40) as again:
        again.until(at_prompt(again))
        assert "› what was the answer?\nThe answer was **42**." in again.text
        person.hears(Plan(text=ANSWER))
        assert "漢字      3" in ask(again, "and the plan?")
        again.send("/exi" + ENTER)
        assert again.ended() == 0
        assert name[1] in again.text


def test_ctrl_c_twice_leaves_the_chat_and_colors_can_be_off(person: Person) -> None:
    with person.starts(NO_COLOR="1", TERMINAL_ENV="local", HERMES_WORKSPACE="/") as terminal:
        terminal.until(at_prompt(terminal))
        assert HOST in terminal.text
        assert "the agent can read and write the files in /" in terminal.text
        person.hears(Plan(text=ANSWER))
        ask(terminal, "what is the plan?")
        terminal.send("half" + CTRL_C)
        terminal.until("Ctrl-C again leaves")
        assert "half" not in terminal.row
        terminal.send(CTRL_C)
        assert terminal.ended() == 0
        assert not COLOR.search(terminal.written)


def test_a_question_is_asked_again_when_the_conversation_is_resumed(person: Person) -> None:
    person.hears(Plan())
    asks = 'tool:clarify{"question":"Which color?","choices":["red","blue"]}'
    with person.starts() as terminal:
        terminal.until(at_prompt(terminal))
        assert ask(terminal, asks)[-7:-3] == [
            "? Which color?",
            "  1. red",
            "  2. blue",
            "  a number picks one, or answer in your own words; /stop drops the question",
        ]
        terminal.send(CTRL_D)
        assert terminal.ended() == 0
    with person.starts("-c") as again:
        again.until(at_prompt(again))
        assert "? Which color?\n  1. red\n  2. blue" in again.text
        assert "tool said: " in (answer := " ".join(ask(again, "2")))
        assert "blue" in answer


def deletes(person: Person, name: str) -> str:
    """Makes a folder. Returns a message that makes the agent try to delete the folder."""
    (person.folder / name).mkdir()
    person.hears(Plan())
    return f'tool:terminal{{"command":"rm -rf {name}"}}'


def approval_of(name: str) -> list[str]:
    """Returns the first lines of the prompt for the deletion of the folder."""
    return [
        "┃ I am about to run a command, which needs your approval:",
        "┃",
        f"┃   rm -rf {name}",
    ]


def test_a_dangerous_command_is_shown_and_runs_after_a_yes(person: Person) -> None:
    with person.starts(TERMINAL_ENV="local") as terminal:
        terminal.until(at_prompt(terminal))
        lines = ask(terminal, deletes(person, "old"))
        start = lines.index("┃ I am about to run a command, which needs your approval:")
        assert lines[start : start + 3] == approval_of("old")
        assert f"┃ in {person.folder} (local)" in lines
        assert "┃ Reason: deletes old with everything in it." in lines
        assert "┃ 1. Once   2. This session   3. Always   4. No" in lines
        assert (person.folder / "old").exists()
        ask(terminal, "first tell me why")
        assert "Your message is answered after the open question is decided." in terminal.text
        assert (person.folder / "old").exists()
        terminal.send("yes" + ENTER)
        terminal.until(lambda: terminal.text.count("first tell me why") == 3)
        terminal.until(at_prompt(terminal))
        assert not (person.folder / "old").exists()
        assert "· terminal rm -rf old (" in terminal.text


def test_an_approval_is_asked_again_after_a_restart(person: Person) -> None:
    with person.starts(TERMINAL_ENV="local") as terminal:
        terminal.until(at_prompt(terminal))
        ask(terminal, deletes(person, "older"))
        terminal.send(CTRL_D)
        assert terminal.ended() == 0
        assert STILL_OPEN.split(":")[0] in terminal.text
    with person.starts("-c", TERMINAL_ENV="local") as terminal:
        terminal.until("3. Always   4. No")
        os.kill(terminal.process.pid, signal.SIGKILL)
    with person.starts("-c", TERMINAL_ENV="local") as again:
        again.until(at_prompt(again))
        assert "\n".join(approval_of("older")) in again.text
        assert (person.folder / "older").exists()
        ask(again, "1")
        assert not (person.folder / "older").exists()
        assert "· terminal rm -rf older (" in again.text


def test_an_approval_can_be_given_in_a_plain_terminal(person: Person) -> None:
    with person.starts(TERMINAL_ENV="local", TERM="dumb") as terminal:
        terminal.until(at_prompt(terminal))
        terminal.send(deletes(person, "plain") + "\n")
        terminal.until("┃ 1. Once   2. This session   3. Always   4. No")
        assert "┃ rm -rf plain" in terminal.lines
        terminal.send("yes\n")
        terminal.until("you said")
        assert not (person.folder / "plain").exists()


def test_esc_cancels_an_approval(person: Person) -> None:
    with person.starts(TERMINAL_ENV="local") as terminal:
        terminal.until(at_prompt(terminal))
        ask(terminal, deletes(person, "kept"))
        terminal.send("\x1b")
        terminal.until("Stopped.")
        terminal.until(at_prompt(terminal))
        assert "you said" in " ".join(ask(terminal, "yes"))
        assert (person.folder / "kept").exists()


def test_text_that_is_typed_after_esc_is_sent(person: Person) -> None:
    with person.starts(TERMINAL_ENV="local") as terminal:
        terminal.until(at_prompt(terminal))
        ask(terminal, deletes(person, "left"))
        terminal.send("\x1bhello" + ENTER)
        terminal.until("you said:")
        terminal.until(at_prompt(terminal))
        assert "Stopped." in terminal.text
        assert person.asked() == "hello"
        assert (person.folder / "left").exists()


def test_a_turn_continues_after_an_approval_from_another_terminal(person: Person) -> None:
    with person.starts(TERMINAL_ENV="local") as terminal:
        terminal.until(at_prompt(terminal))
        ask(terminal, deletes(person, "other"))
        id = re.search(r"Approval (\w{8});", terminal.text)
        assert id
        command = [*HERMES, "approvals", "approve", id[1]]
        subprocess.run(command, env=person.environ, check=True, capture_output=True)
        terminal.until("· terminal rm -rf other (")
        assert not (person.folder / "other").exists()
        terminal.until(at_prompt(terminal))
        assert "you said" in " ".join(ask(terminal, "yes"))


def test_without_a_model_the_demo_model_is_offered(person: Person) -> None:
    with person.starts(HERMES_CUSTOM_BASE_URL="", HERMES_MODEL="") as terminal:
        terminal.until("embedded demo model")
        terminal.send("n\n")
        assert terminal.ended() == 78


@pytest.mark.parametrize("busy", [False, True])
def test_sigterm_restores_the_terminal(person: Person, busy: bool) -> None:
    with person.starts(HERMES_RESTART_DRAIN_TIMEOUT="0") as terminal:
        terminal.until(at_prompt(terminal))
        if busy:
            terminal.send("hang" + ENTER)
            terminal.until("thinking")
        os.kill(terminal.process.pid, signal.SIGTERM)
        assert terminal.ended() == 0
        assert terminal.echoes
