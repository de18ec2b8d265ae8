"""The tool `terminal` runs a shell command and returns its output."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
import pytest

from hermes.boundary.execution.background import RECORD, BackgroundProcess
from hermes.boundary.execution.environment import child_environment
from hermes.boundary.execution.local import LocalBackend
from hermes.core.danger.detector import judge
from hermes.core.tools.call import UNKNOWN_OUTCOME, scope_of
from hermes.core.tools.schema import tools_json
from hermes.core.tools.terminal import is_contained, terminal_tools
from hermes.testing.commands import FILES_ONLY, background_of, lives, local_backend
from hermes.testing.platforms import ChatServer, PlainAdapter
from hermes.testing.running import Conditions, running, until
from hermes.testing.scripted import ScriptedModel, says
from hermes.testing.turns import Notebook, a_turn, review
from hermes.testing.turns import use as use_in_call
from hermes.types.approvals import ProposedAction
from hermes.types.errors import ToolFailed
from hermes.types.identity import CallId, SessionKey, new_id
from hermes.types.messages import ToolMessage

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
    backend: LocalBackend,
    workspace: Path,
    arguments: Mapping[str, object],
    notes: Notebook | None = None,
    timeout: float = 60.0,
) -> str:
    """Runs `terminal` with a call id that no other test uses."""
    terminal, _ = terminal_tools(timeout, backend.isolation)
    call, turn = CallId(new_id()), a_turn(workspace=workspace)
    return await use_in_call(terminal, turn, arguments, notes=notes, call=call, backend=backend)


@pytest.fixture
def local(tmp_path: Path) -> Iterator[LocalBackend]:
    (tmp_path / "work").mkdir()
    with local_backend(tmp_path) as local:
        yield local


async def run(
    local: LocalBackend, tmp_path: Path, command: str, *, usual: float = 60.0, **more: object
) -> str:
    arguments = {"command": command, **more}
    return await use(local, tmp_path / "work", arguments, timeout=usual)


async def test_the_output_is_the_answer(local: LocalBackend, tmp_path: Path) -> None:
    (tmp_path / "work" / "inner").mkdir()
    assert await run(local, tmp_path, "echo yes; echo") == "yes"
    assert await run(local, tmp_path, "pwd", workdir="inner") == str(tmp_path / "work" / "inner")


async def test_the_output_of_a_failed_command_is_the_answer(
    local: LocalBackend, tmp_path: Path
) -> None:
    assert await run(local, tmp_path, "true") == "[no output]"
    told = await run(local, tmp_path, "echo no; exit 3")
    assert told.startswith("no\n[exit code 3, 0.")
    assert (await run(local, tmp_path, "kill -9 $$")).startswith("[no output]\n[exit code -9, ")


async def test_a_command_that_takes_too_long_is_ended_and_reported(
    local: LocalBackend, tmp_path: Path
) -> None:
    for told in (
        await run(local, tmp_path, "echo so far; sleep 600", usual=0.2),
        await run(local, tmp_path, "echo so far; exec sleep 600", timeout=0.2),
    ):
        assert told.startswith("so far\n[timed out and ended after 0.")


async def test_processes_that_a_command_leaves_running_are_ended_and_reported(
    local: LocalBackend, tmp_path: Path
) -> None:
    told = await run(local, tmp_path, "sleep 600 >/dev/null 2>&1 & echo begun")
    assert (
        told
        == "begun\n[the processes that it left running were ended; set `background` to keep it]"
    )


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
async def test_a_command_that_can_not_be_started_is_reported_as_a_failure(
    local: LocalBackend, tmp_path: Path, arguments: dict[str, object]
) -> None:
    with pytest.raises(ToolFailed):
        await use(local, tmp_path / "work", arguments)
    assert list((tmp_path / "work").iterdir()) == []


class AtTheGate(Notebook):
    """A checkpoint that records the environment of the command's process while the process waits
    until its handle is committed."""

    async def started(self, call: CallId, handle: str | None = None) -> None:
        assert handle
        self.log.append(environ_of(int(handle.split(":")[2])))


def environ_of(pid: int) -> str:
    return Path(f"/proc/{pid}/environ").read_text()


LOOK = "env; tr '\\0' '\\n' < /proc/$$/environ"


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalBackend]:
    assert len(SECRETS) >= 40
    for name in SECRETS:
        monkeypatch.setenv(name, f"planted-{name}")
    monkeypatch.setenv("GIVEN", "by the operator")
    with local_backend(tmp_path, child_environment(os.environ, ["GIVEN"])) as local:
        yield local


def expect_no_secret(text: str, times: int) -> None:
    assert text.count("GIVEN=by the operator") == times
    assert "planted" not in text


async def test_no_secret_reaches_a_command(planted: LocalBackend, tmp_path: Path) -> None:
    notes = AtTheGate()
    shown = await use(planted, tmp_path, {"command": LOOK}, notes)
    expect_no_secret(shown, 2)
    # While the process waits for the commit of its handle, it has no environment variables at all.
    assert notes.log == [""]


async def test_no_secret_reaches_a_command_in_the_background(
    planted: LocalBackend, tmp_path: Path
) -> None:
    turn, background = a_turn(workspace=tmp_path), background_of(planted)
    assert planted.commands
    command = f"{LOOK}; cat"
    launch = planted.commands.launcher.launch(command, tmp_path, background=True)
    started = await background.start(command, launch, scope_of(turn))

    def shown() -> str:
        return background.output(started.id, turn.session).data.decode()

    await until(lambda: shown().count("GIVEN") == 2)
    expect_no_secret(shown(), 2)
    expect_no_secret(environ_of(started.process.group), 1)


async def test_a_background_command_continues_after_its_call(
    local: LocalBackend, tmp_path: Path
) -> None:
    notes, work, background = Notebook(), tmp_path / "work", background_of(local)
    told = await use(local, work, {"command": "sleep 600", "background": True}, notes)
    assert notes.handles == []
    (status,) = background.of(a_turn().session)
    assert told == f"[started in the background as process {status.id}]"
    assert status.running
    assert background.record(status.id, a_turn().session).workdir == str(work)


async def test_commands_are_refused_if_they_are_not_allowed(tmp_path: Path) -> None:
    for background in (False, True):
        with pytest.raises(ToolFailed, match="Commands are not allowed here"):
            await use(FILES_ONLY, tmp_path, {"command": "touch ran", "background": background})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("isolation", "words"),
    [("none", "with the user's rights: there is no sandbox."), ("docker", "a sandbox (docker).")],
)
def test_the_tool_description_names_the_isolation_of_commands(isolation: str, words: str) -> None:
    terminal, _ = terminal_tools(60.0, isolation)
    assert terminal.description.splitlines()[0].endswith(words)


def test_the_declarations_of_the_tools_are_short() -> None:
    tools = terminal_tools(60.0, "none")
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
from hermes.core.tools.terminal import is_contained, terminal_tools
from hermes.testing.platforms import ChatServer, PlainAdapter
from hermes.testing.running import Conditions, running
from hermes.testing.scripted import ScriptedModel, calls

async def main():
    home = Path(sys.argv[1])
    server = ChatServer()
    server.says("work")
    model = ScriptedModel([
        calls(("terminal", {"command": "echo $$ > kept; sleep 600", "background": True})),
        calls(("terminal", {"command": "echo $$ > cut; sleep 600"})),
    ])
    conditions = Conditions(tools=terminal_tools(600.0, "none"))
    async with running(home, [PlainAdapter(server)], model, conditions):
        await anyio.sleep_forever()

anyio.run(main)
"""


@pytest.mark.slow
async def test_a_restart_ends_foreground_commands_and_keeps_background_processes(
    local: LocalBackend, tmp_path: Path
) -> None:
    kept, cut = (tmp_path / "workspace" / name for name in ("kept", "cut"))
    with subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)]) as gateway:
        await until(lambda: cut.exists() and cut.read_text(), within=30.0)
        assert lives(int(cut.read_text()))
        # After the kill, another gateway starts. It must end the foreground command and keep the
        # background process.
        gateway.kill()
    server, model = ChatServer(), ScriptedModel([says("done")])
    conditions = Conditions(tools=terminal_tools(600.0, "none"))
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
    background = background_of(local)
    assert background.find(record.id, session).running
    assert not (await background.kill(record.id, session)).running


@pytest.mark.parametrize("workdir", ["a" * 5000, "loop", "loop/x"])
async def test_an_invalid_workdir_is_reported(tmp_path: Path, workdir: str) -> None:
    (tmp_path / "loop").symlink_to("loop")
    backend = LocalBackend(tmp_path / "p", {})
    with pytest.raises(ToolFailed, match=r"workdir '.{1,80}' is not a folder"):
        await use(backend, tmp_path, {"command": "true", "workdir": workdir})


async def reviewed(
    backend: LocalBackend, workspace: Path, command: str, *, offline: bool = False
) -> ProposedAction | None:
    terminal, _ = terminal_tools(30.0, "none", offline=offline)
    return await review(
        terminal, a_turn(workspace=workspace), {"command": command}, backend=backend
    )


async def test_a_harmless_command_needs_no_approval(local: LocalBackend, tmp_path: Path) -> None:
    assert await reviewed(local, tmp_path, "ls -l | wc") is None
    assert await reviewed(local, tmp_path, "curl http://a.example", offline=True) is None
    leaving = await reviewed(local, tmp_path, "curl http://a.example")
    assert leaving is not None
    assert (leaving.outcome, leaving.leaves) == ("run", True)


@pytest.mark.parametrize(
    ("name", "text", "outcome", "reason"),
    [
        ("x.sh", "echo hello", None, ""),
        ("x.sh", "git reset --hard", "ask", "x.sh: throws uncommitted changes away"),
        ("x.sh", "rm -rf /", "never", "x.sh: deletes / with everything in it"),
        ("x.py", "import shutil; shutil.rmtree('photos')", "ask", "x.py: deletes photos"),
        ("x", "#!/usr/bin/env python3\nprint(1)", None, ""),
        ("x.js", "anything: (", "run", ""),
    ],
)
async def test_the_scripts_of_a_command_are_judged(
    local: LocalBackend, tmp_path: Path, name: str, text: str, outcome: str | None, reason: str
) -> None:
    (tmp_path / name).write_text(text)
    program = {".py": "python3 ", ".sh": "bash ", ".js": "node "}.get(Path(name).suffix, "./")
    found = await reviewed(local, tmp_path, program + name)
    assert (found and found.outcome) == outcome
    if found and reason:
        assert found.reason.startswith(reason)
        assert found.locate is not None
        assert [Path(one.path).name for one in (await found.locate()).scripts] == [name]


@pytest.mark.parametrize(
    ("command", "text", "outcome"),
    [
        ("bash x.txt", b"rm -rf photos", "ask"),
        (". ./x.inc", b"rm -rf photos", "ask"),
        ("python3 x.txt", b"import shutil; shutil.rmtree('photos')", "ask"),
        ("./x", b"#!/bin/bash -e\nrm -rf photos", "ask"),
        ("./x", b"#!/usr/bin/env -S bash -e\nrm -rf photos", "ask"),
        ("./x.txt", b"rm -rf photos", "ask"),
        ("bash x.js", b"rm -rf photos", "ask"),
        ("bash x", b"#!/usr/bin/perl\nrm -rf photos", "ask"),
        ("bash x", b"rm -rf photos # \xff", "ask"),
        ("bash x; python3 x", b"echo", "ask"),
        ("bash 1.sh; bash 2.sh; bash 3.sh; bash 4.sh; bash 5.sh; bash 6.sh", b"echo", "ask"),
        ("bash /tmp/no-such-folder/../x.sh", b"", "ask"),
        ("bash missing.sh", b"", "run"),
        ("./x", b"\x7fELF\0\1", "run"),
        ("./x.py", b"#!/usr/bin/env python3\nprint(1)", None),
        ("bash x", b"echo hello", None),
    ],
)
async def test_a_script_is_judged_in_the_language_in_which_it_runs(
    local: LocalBackend, tmp_path: Path, command: str, text: bytes, outcome: str | None
) -> None:
    for name in ("x", "x.txt", "x.inc", "x.js", "x.py"):
        (tmp_path / name).write_bytes(text)
    found = await reviewed(local, tmp_path, command)
    assert (found and found.outcome) == outcome


async def test_python_code_can_not_hide_its_rest_behind_a_false_end(
    local: LocalBackend, tmp_path: Path
) -> None:
    code = "\"{__import__('shutil').rmtree('photos')}\""
    (tmp_path / "x.py").write_text(
        f"HERMES_END_OF_INPUT = 1\nHERMES_END_OF_INPUT\neval({code!r}); f{code}"
    )
    found = await reviewed(local, tmp_path, "python3 x.py")
    assert found is not None
    assert found.reason.startswith("x.py: ")


async def test_a_sandbox_that_shares_files_with_the_user_makes_fewer_commands_harmless(
    local: LocalBackend, tmp_path: Path
) -> None:
    class Private:
        private_files = True

    class Shared:
        private_files = False

    for command, expected in (
        ("useradd x", (True, True)),
        ("$(cat x)", (True, False)),
        ("rm -rf photos", (False, False)),
    ):
        verdict = judge(command)
        found = tuple(is_contained(verdict, one) for one in (Private(), Shared()))  # type: ignore[arg-type]  # only this property is read
        assert found == expected
