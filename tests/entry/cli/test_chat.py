"""`hermes chat`, as a person or a script uses it."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Self
from urllib.request import urlopen

import anyio
import pytest

from hermes.app import Parts, open_gateway
from hermes.control.gateway import Gateway
from hermes.entry.cli.chat import LEFT, Conversation, Ending, Screen
from hermes.settings import Settings
from hermes.settings.sections import ModelSettings
from hermes.state.paths import Home
from hermes.testing.running import until
from hermes.testing.scripted import Answer, ScriptedModel, calls, hangs, says
from hermes.testing.tools import TEST_TOOLS

Run = Callable[..., "subprocess.CompletedProcess[str]"]
TAG = re.compile(r"\[[0-9a-f]{4}:\d+(?:\.\d+)?\] ?|call \d+: ")


def plain(text: str) -> str:
    """An answer of the fake model without the tags that make it unique."""
    return TAG.sub("", text).strip()


def test_one_question_is_answered_on_stdout(hermes: Run) -> None:
    done = hermes("chat", "-q", "hello there")
    assert done.returncode == 0
    assert plain(done.stdout) == "you said: hello there"
    assert done.stdout.endswith("\n")
    assert done.stderr == ""
    assert "\x1b" not in done.stdout


def test_hermes_alone_is_chat(hermes: Run) -> None:
    assert plain(hermes(stdin="good morning").stdout) == "you said: good morning"
    assert plain(hermes("-q", "hello").stdout) == "you said: hello"


def test_piped_text_is_added_to_the_question(hermes: Run) -> None:
    done = hermes("chat", "-q", "summarise", stdin="a long text\n")
    assert plain(done.stdout) == "you said: summarise a long text"


def test_tools_are_shown_as_lines(hermes: Run, tmp_path: Path) -> None:
    workspace = tmp_path / "home" / "workspace"
    workspace.mkdir(parents=True)
    (workspace / "note.txt").write_text("remember the milk")
    done = hermes("chat", "-q", 'tool:read_file{"path":"note.txt"}')
    first, *rest = done.stdout.splitlines()
    assert first.startswith("· read_file note.txt (")
    assert "remember the milk" in plain("".join(rest))


def test_a_failed_turn_says_why_and_exits_with_1(hermes: Run) -> None:
    done = hermes("chat", "-q", "status:401")
    assert done.returncode == 1
    assert "Traceback" not in done.stdout + done.stderr
    assert done.stdout.strip()


def test_without_a_model_the_answer_says_how_to_set_one(hermes: Run) -> None:
    done = hermes("chat", "-q", "hi", HERMES_CUSTOM_BASE_URL="", HERMES_MODEL="")
    assert done.returncode == 1
    assert "hermes config set model.base_url" in done.stdout


def test_json_is_one_event_per_line(hermes: Run) -> None:
    done = hermes("chat", "--json", "-q", "hello")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert events[-1] == {"type": "TurnFinished", "outcome": "completed"}
    said = "".join(event["text"] for event in events if event["type"] == "TextDelta")
    assert plain(said) == "you said: hello"


def test_a_named_session_goes_on(hermes: Run, model_url: str) -> None:
    hermes("chat", "--session", "work", "-q", "first")
    done = hermes("chat", "-s", "work", "-q", "second")
    assert done.returncode == 0
    with urlopen(f"{model_url.removesuffix('/v1')}/_last") as reply:
        roles = [message["role"] for message in json.load(reply)["messages"]]
    assert roles == ["system", "user", "assistant", "user"]


def test_a_slash_command_is_answered_without_a_turn(hermes: Run) -> None:
    done = hermes("chat", "-q", "/status")
    assert (done.stdout, done.returncode) == ("Idle.\n", 0)
    shown = hermes("chat", "--json", "-q", "/status").stdout
    assert json.loads(shown) == {"type": "Notice", "text": "Idle."}


@pytest.mark.parametrize("args", [("--json",), ("-q", " ")])
def test_nothing_to_ask_is_a_mistake(hermes: Run, args: tuple[str, ...]) -> None:
    done = hermes("chat", *args)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


class Terminal:
    """`hermes chat` at a terminal of its own."""

    def __init__(self, environ: dict[str, str], *args: str) -> None:
        self.descriptor, other = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "hermes", "chat", *args],
            stdin=other,
            stdout=other,
            stderr=other,
            env=environ,
            start_new_session=True,
            preexec_fn=_own_terminal,  # noqa: PLW1509  # no thread is running
        )
        os.close(other)
        self.seen = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.descriptor)

    def types(self, text: str) -> None:
        os.write(self.descriptor, text.encode())

    def expect(self, text: str, seconds: float = 20.0) -> str:
        """What was shown up to the text; fails when it does not come."""
        until = time.monotonic() + seconds
        while text not in self.seen:
            left = until - time.monotonic()
            assert left > 0, f"no {text!r} in {self.seen!r}"
            if select.select([self.descriptor], [], [], left)[0]:
                try:
                    self.seen += os.read(self.descriptor, 65536).decode(errors="replace")
                except OSError:
                    assert text in self.seen, f"ended without {text!r}: {self.seen!r}"
        before, _, self.seen = self.seen.partition(text)
        return before


def _own_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@pytest.fixture
def terminal(environ: dict[str, str]) -> Iterator[Terminal]:
    with Terminal(environ) as terminal:
        terminal.expect("› ")
        yield terminal


def test_a_person_talks_line_by_line_and_leaves_with_ctrl_d(terminal: Terminal) -> None:
    terminal.types("hello\n")
    assert "you said:" in terminal.expect("› ")
    terminal.types("/status\n")
    assert "Idle." in terminal.expect("› ")
    terminal.types("\x04")
    terminal.expect("To continue: hermes chat --session ")
    assert terminal.process.wait(10) == 0


def test_ctrl_c_stops_the_turn_and_then_the_program(terminal: Terminal) -> None:
    terminal.types("tokens:200 delay:0.05\n")
    terminal.expect("[")
    terminal.types("\x03")
    assert "topped" in terminal.expect("› ", seconds=5)
    terminal.types("and on\n")
    assert "and on" in terminal.expect("› ")
    terminal.types("\x03")
    terminal.expect("To continue")
    assert terminal.process.wait(10) == 0


def test_a_paste_is_one_message(terminal: Terminal) -> None:
    terminal.types("one\ntwo\nthree\n")
    assert terminal.expect("› ").count("you said:") == 1


def test_sigterm_leaves_in_the_middle_of_a_turn(
    environ: dict[str, str], model_url: str, until_asked: Callable[[str], None]
) -> None:
    with Terminal({**environ, "HERMES_RESTART_DRAIN_TIMEOUT": "0"}) as terminal:
        terminal.expect("› ")
        terminal.types("hang\n")
        until_asked(model_url)
        os.kill(terminal.process.pid, signal.SIGTERM)
        assert terminal.process.wait(15) == 0


def test_ctrl_c_ends_one_question_with_130(environ: dict[str, str]) -> None:
    with Terminal(environ, "-q", "tokens:200 delay:0.05") as terminal:
        terminal.expect("[")
        terminal.types("\x03")
        terminal.expect("topped")
        assert terminal.process.wait(10) == 130


def test_no_color_is_respected(environ: dict[str, str]) -> None:
    question = ("-q", 'tool:read_file{"path":"none"}')
    with Terminal(environ, *question) as terminal:
        assert "\x1b[" in terminal.expect("you said")
    with Terminal({**environ, "NO_COLOR": "1"}, *question) as terminal:
        assert "\x1b[" not in terminal.expect("you said")


@asynccontextmanager
async def conversing(
    tmp_path: Path, *answers: Answer
) -> AsyncIterator[tuple[Gateway, Conversation]]:
    """A conversation with an agent in this process."""
    settings = Settings(
        home=Home(root=tmp_path / "home"),
        workspace=tmp_path,
        model=ModelSettings(default="m", base_url="http://127.0.0.1:9", provider="custom"),
    )
    parts = Parts(model=ScriptedModel(answers), tools=TEST_TOOLS)
    async with open_gateway(settings, parts, terminal=True) as gateway:
        yield gateway, Conversation(gateway, "s", lambda: Screen(as_json=False, color=False))


async def test_the_next_line_answers_a_question(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asks = calls(("ask", {"question": "Red or blue?"}))
    async with conversing(tmp_path, asks, says("Blue it is.")) as (_, conversation):
        assert await conversation.say("paint it") == "suspended"
        assert "Red or blue?" in capsys.readouterr().out
        assert await conversation.say("blue") == "completed"
    assert capsys.readouterr().out.endswith("Blue it is.\n")


async def test_a_turn_that_is_left_to_another_process_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    endings: list[Ending] = []

    async def talk(conversation: Conversation) -> None:
        endings.append(await conversation.say("wait"))

    async with conversing(tmp_path, hangs()) as (gateway, conversation):
        async with anyio.create_task_group() as group:
            group.start_soon(talk, conversation)
            await until(lambda: gateway.busy)
            await gateway.drain(0)
    assert endings == ["left"]
    assert capsys.readouterr().out == f"{LEFT}\n"
