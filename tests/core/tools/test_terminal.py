"""Shell commands, for the agent."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
import pytest

from hermes.boundary.execution.background import RECORD, BackgroundProcess
from hermes.boundary.execution.environment import child_environment
from hermes.boundary.execution.local import LocalExecution
from hermes.core.tools.call import UNKNOWN_OUTCOME
from hermes.core.tools.schema import tools_json
from hermes.core.tools.terminal import terminal_tools
from hermes.testing.commands import lives, local_execution
from hermes.testing.platforms import ChatServer, PlainAdapter
from hermes.testing.running import Conditions, running, until
from hermes.testing.scripted import ScriptedModel, says
from hermes.testing.turns import Notebook, a_turn
from hermes.testing.turns import use as use_in_call
from hermes.types.errors import ToolFailed
from hermes.types.identity import CallId, SessionKey, new_id
from hermes.types.messages import ToolMessage
from hermes.types.tools import Process, Tool
from hermes.types.turns import Turn

SECRETS = [
    "ANTHROPIC_API_KEY",
    "API_SERVER_KEY",
    "AUTH",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AZURE_CLIENT_SECRET",
    "BASH_ENV",
    "BRAVE_API_KEY",
    "COOKIE",
    "DATABASE_URL",
    "DISCORD_BOT_TOKEN",
    "DOCKER_PASSWORD",
    "ENV",
    "GH_TOKEN",
    "GITHUB_TOKEN",
    "GITLAB_TOKEN",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "HERMES_HOME",
    "HERMES_KEY",
    "HF_TOKEN",
    "HOME_KEY",
    "JWT_SECRET",
    "KUBECONFIG",
    "LANG_KEY",
    "LD_PRELOAD",
    "MY_DB_PASSWORD",
    "NPM_TOKEN",
    "OPENAI_API_KEY",
    "PATH_TOKEN",
    "PGPASSWORD",
    "PYTHONPATH",
    "REDIS_URL",
    "SECRET",
    "SENTRY_DSN",
    "SLACK_BOT_TOKEN",
    "SMTP_PASS",
    "SSH_AUTH_SOCK",
    "STRIPE_SECRET",
    "TAVILY_API_KEY",
    "TELEGRAM_BOT_TOKEN",
    "USER_PASSWORD",
]


async def use(
    tool: Tool, turn: Turn, arguments: Mapping[str, object], notes: Notebook | None = None
) -> str:
    """In a call that no other test has: they may run at the same time."""
    return await use_in_call(tool, turn, arguments, notes=notes, call=CallId(new_id()))


@pytest.fixture
def local(tmp_path: Path) -> Iterator[LocalExecution]:
    (tmp_path / "work").mkdir()
    with local_execution(tmp_path) as local:
        yield local


async def run(
    local: LocalExecution, tmp_path: Path, command: str, *, usual: float = 60.0, **more: object
) -> str:
    terminal, _ = terminal_tools(local, usual)
    return await use(terminal, a_turn(workspace=tmp_path / "work"), {"command": command, **more})


async def test_the_output_is_the_answer(local: LocalExecution, tmp_path: Path) -> None:
    (tmp_path / "work" / "inner").mkdir()
    assert await run(local, tmp_path, "echo yes; echo") == "yes"
    assert await run(local, tmp_path, "pwd", workdir="inner") == str(tmp_path / "work" / "inner")


async def test_what_went_wrong_is_an_answer_too(local: LocalExecution, tmp_path: Path) -> None:
    assert await run(local, tmp_path, "true") == "[no output]"
    told = await run(local, tmp_path, "echo no; exit 3")
    assert told.startswith("no\n[exit code 3, 0.")
    assert (await run(local, tmp_path, "kill -9 $$")).startswith("[no output]\n[exit code -9, ")


async def test_what_takes_too_long_is_ended_and_told(local: LocalExecution, tmp_path: Path) -> None:
    for told in (
        await run(local, tmp_path, "echo so far; sleep 600", usual=0.2),
        await run(local, tmp_path, "echo so far; exec sleep 600", timeout=0.2),
    ):
        assert told.startswith("so far\n[timed out and ended after 0.")


async def test_what_is_left_running_is_ended_and_told(
    local: LocalExecution, tmp_path: Path
) -> None:
    told = await run(local, tmp_path, "sleep 600 >/dev/null 2>&1 & echo begun")
    assert told == "begun\n[what it left running was ended; set `background` to keep it]"


@pytest.mark.parametrize(
    "arguments",
    [
        {"command": "pwd", "workdir": ".."},
        {"command": "pwd", "workdir": "/etc"},
        {"command": "pwd", "workdir": "missing"},
        {"command": "pwd", "workdir": "a\0b"},
        {"command": "touch ran; \0"},
        {"command": "touch ran; \0", "background": True},
        {"command": "x" * 200_000},
    ],
)
async def test_what_can_not_be_run_is_a_failure(
    local: LocalExecution, tmp_path: Path, arguments: dict[str, object]
) -> None:
    terminal, _ = terminal_tools(local, 60.0)
    with pytest.raises(ToolFailed):
        await use(terminal, a_turn(workspace=tmp_path / "work"), arguments)
    assert list((tmp_path / "work").iterdir()) == []


class AtTheGate(Notebook):
    """Looks at what waits for its record."""

    async def started(self, call: CallId, process: Process | None = None) -> None:
        assert process
        self.log.append(environ_of(process))


def environ_of(process: Process) -> str:
    return Path(f"/proc/{process.group}/environ").read_text()


LOOK = "env; tr '\\0' '\\n' < /proc/$$/environ"


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalExecution]:
    assert len(SECRETS) >= 40
    for name in SECRETS:
        monkeypatch.setenv(name, f"planted-{name}")
    monkeypatch.setenv("GIVEN", "by the operator")
    with local_execution(tmp_path, child_environment(os.environ, ["GIVEN"])) as local:
        yield local


def expect_no_secret(text: str, times: int) -> None:
    assert text.count("GIVEN=by the operator") == times
    assert "planted" not in text


async def test_no_secret_reaches_a_command(planted: LocalExecution, tmp_path: Path) -> None:
    terminal, _ = terminal_tools(planted, 60.0)
    notes = AtTheGate()
    shown = await use(terminal, a_turn(workspace=tmp_path), {"command": LOOK}, notes=notes)
    expect_no_secret(shown, 2)
    expect_no_secret("".join(notes.log), 1)


async def test_no_secret_reaches_a_command_in_the_background(
    planted: LocalExecution, tmp_path: Path
) -> None:
    turn, background = a_turn(workspace=tmp_path), planted.background
    started = await background.start(f"{LOOK}; cat", tmp_path, turn.session, turn.agent)

    def shown() -> str:
        return background.output(started.id, turn.session).data.decode()

    await until(lambda: shown().count("GIVEN") == 2)
    expect_no_secret(shown(), 2)
    expect_no_secret(environ_of(started.process), 1)


async def test_a_background_command_is_not_the_calls_to_end(
    local: LocalExecution, tmp_path: Path
) -> None:
    terminal, _ = terminal_tools(local, 60.0)
    turn, notes = a_turn(workspace=tmp_path / "work"), Notebook()
    told = await use(terminal, turn, {"command": "sleep 600", "background": True}, notes=notes)
    assert notes.processes == []
    (status,) = local.background.of(turn.session)
    assert told == f"[started in the background as process {status.record.id}]"
    assert status.running
    assert status.record.workdir == str(tmp_path / "work")


def test_the_tools_are_told_briefly(tmp_path: Path) -> None:
    tools = terminal_tools(LocalExecution({}, tmp_path), 60.0)
    assert len(tools_json(tools)) <= 1600
    for tool in tools:
        assert (tool.toolset, tool.risk, tool.read_only, tool.repeatable) == (
            "terminal",
            "high",
            False,
            False,
        )


KILLED = """
import sys
from pathlib import Path
import anyio
from hermes.boundary.execution.environment import child_environment
from hermes.boundary.execution.local import LocalExecution
from hermes.core.tools.terminal import terminal_tools
from hermes.testing.platforms import ChatServer, PlainAdapter
from hermes.testing.running import Conditions, running
from hermes.testing.scripted import ScriptedModel, calls

async def main():
    home = Path(sys.argv[1])
    local = LocalExecution(child_environment({}), home / "processes")
    server = ChatServer()
    server.says("work")
    model = ScriptedModel([
        calls(("terminal", {"command": "echo $$ > kept; sleep 600", "background": True})),
        calls(("terminal", {"command": "echo $$ > cut; sleep 600"})),
    ])
    conditions = Conditions(tools=terminal_tools(local, 600.0))
    async with running(home, [PlainAdapter(server)], model, conditions):
        await anyio.sleep_forever()

anyio.run(main)
"""


@pytest.mark.slow
async def test_a_restart_ends_what_was_cut_and_keeps_what_is_in_the_background(
    local: LocalExecution, tmp_path: Path
) -> None:
    kept, cut = (tmp_path / "workspace" / name for name in ("kept", "cut"))
    with subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)]) as gateway:
        await until(lambda: cut.exists() and cut.read_text(), within=30.0)
        gateway.kill()
    assert lives(int(cut.read_text()))
    server, model = ChatServer(), ScriptedModel([says("done")])
    conditions = Conditions(tools=terminal_tools(local, 600.0))
    async with running(tmp_path, [PlainAdapter(server)], model, conditions):
        await until(server.texts)
    await until(lambda: not lives(int(cut.read_text())))
    assert lives(int(kept.read_text()))
    results = [m.text for m in model.requests[0].messages if isinstance(m, ToolMessage)]
    assert results[0].startswith("[started in the background as process ")
    assert results[1] == UNKNOWN_OUTCOME
    (path,) = (tmp_path / "processes").glob(f"*/{RECORD}")
    record = msgspec.json.decode(path.read_bytes(), type=BackgroundProcess)
    session = SessionKey.parse(record.session)
    assert local.background.find(record.id, session).running
    assert not (await local.background.kill(record.id, session)).running


@pytest.mark.parametrize("workdir", ["a" * 5000, "loop", "loop/x"])
async def test_a_workdir_that_can_be_no_folder_is_told(tmp_path: Path, workdir: str) -> None:
    (tmp_path / "loop").symlink_to("loop")
    terminal, _ = terminal_tools(LocalExecution({}, tmp_path / "p"), 5.0)
    with pytest.raises(ToolFailed, match=r"workdir '.{1,80}' can't be a folder"):
        await use_in_call(
            terminal, a_turn(workspace=tmp_path), {"command": "true", "workdir": workdir}
        )
