"""The command `hermes sandbox`."""

import json
import os
import subprocess
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from msgspec.structs import replace

from hermes.app.application import Application
from hermes.boundary.execution.container import CONTAINER_USER
from hermes.control.sessions import NoSuchSession
from hermes.entry.cli.main import cli
from hermes.entry.cli.sandbox import sandbox
from hermes.settings import Settings
from hermes.testing.containers import ContainerStage
from hermes.types.errors import ConfigError
from hermes.types.execution import SandboxInfo
from hermes.types.identity import AgentId, PersonId, SessionKey
from hermes.types.sandboxes import HomeSandboxes

Run = Callable[..., "subprocess.CompletedProcess[str]"]

KEY = "agent:main:cli:private:trip"
TRIP = SandboxInfo(
    id="a" * 32, agent=AgentId("main"), session=KEY, used_at=86400.0, bytes=2_500_000
)
ANNS = SandboxInfo(
    id="b" * 32, agent=AgentId("main"), session="agent:main:telegram:private:7", person="ann"
)


class Sandboxes:
    """A fake of the sandboxes of a home: has the given sandboxes, and records the shells that are
    opened."""

    def __init__(self, *known: SandboxInfo) -> None:
        self.known = list(known)
        self.shells: list[tuple[str, str | None]] = []
        self.opened: list[Path] = []
        """For each shell, the workspace in the settings with which it was opened."""
        self.command: Sequence[str] = ("/bin/sh", "-c", "exit 7")

    async def listed(self) -> Sequence[SandboxInfo]:
        return tuple(self.known)

    async def reset(self, sandbox: SandboxInfo) -> bool:
        if sandbox not in self.known:
            return False
        self.known.remove(sandbox)
        return True

    async def shell(self, session: SessionKey, person: PersonId | None) -> Sequence[str]:
        self.shells.append((str(session), person))
        return self.command


class SandboxApplication(Application):
    """An application that has the given sandboxes."""

    def __init__(self, sandboxes: Sandboxes) -> None:
        self._sandboxes = sandboxes

    @asynccontextmanager
    async def open_sandboxes(self, settings: Settings) -> AsyncIterator[HomeSandboxes]:
        shells = len(self._sandboxes.shells)
        yield self._sandboxes
        if len(self._sandboxes.shells) > shells:
            self._sandboxes.opened.append(settings.workspace)


@pytest.fixture
def kept() -> Sandboxes:
    return Sandboxes(TRIP, ANNS)


def run(home: Path, kept: Sandboxes, *args: str, answer: str = "") -> Result:
    runner = CliRunner(env={"HERMES_HOME": str(home)})
    return runner.invoke(sandbox, args, obj=SandboxApplication(kept), input=answer)


def test_the_list_shows_the_owner_and_the_size(tmp_path: Path, kept: Sandboxes) -> None:
    first, second = run(tmp_path, kept).stdout.splitlines()
    assert first.split() == ["aaaaaaaaaaaa", "1970-01-02", first.split()[2], "2.5", "MB", KEY]
    assert second.endswith("agent:main:telegram:private:7 (ann)")


def test_the_list_can_be_read_by_programs(tmp_path: Path, kept: Sandboxes) -> None:
    first, second = run(tmp_path, kept, "list", "--json").stdout.splitlines()
    assert json.loads(first)["bytes"] == 2_500_000
    assert json.loads(first)["person"] == ""
    assert json.loads(second)["person"] == "ann"


def test_an_empty_list_says_how_a_sandbox_is_created(tmp_path: Path) -> None:
    assert "the first command of a conversation creates one" in run(tmp_path, Sandboxes()).stdout


@pytest.mark.parametrize("name", [KEY, "a" * 32, "a" * 12])
def test_a_reset_asks_first(tmp_path: Path, kept: Sandboxes, name: str) -> None:
    done = run(tmp_path, kept, "reset", name, answer="n\n")
    assert (done.exit_code, kept.known) == (1, [TRIP, ANNS])
    assert f"the sandbox of {KEY} with 2.5 MB" in done.stdout
    done = run(tmp_path, kept, "reset", name, answer="y\n")
    assert (done.exit_code, kept.known) == (0, [ANNS])


def test_a_reset_with_the_option_yes_does_not_ask(tmp_path: Path, kept: Sandboxes) -> None:
    done = run(tmp_path, kept, "reset", "--yes", KEY)
    assert (done.exit_code, done.stdout) == (0, f"reset the sandbox of {KEY}\n")
    assert kept.known == [ANNS]


def test_an_unknown_session_is_refused(tmp_path: Path, kept: Sandboxes) -> None:
    for command in ("reset", "shell"):
        done = run(tmp_path, kept, command, "nonsense")
        assert isinstance(done.exception, NoSuchSession)
    assert kept.known == [TRIP, ANNS]


def test_a_short_part_of_an_id_selects_nothing(tmp_path: Path, kept: Sandboxes) -> None:
    done = run(tmp_path, kept, "reset", "--yes", "aaa")
    assert isinstance(done.exception, NoSuchSession)


def test_a_shell_is_opened_for_the_session_and_its_person(tmp_path: Path, kept: Sandboxes) -> None:
    assert run(tmp_path, kept, "shell", KEY).exit_code == 7
    assert run(tmp_path, kept, "shell", ANNS.session).exit_code == 7
    assert kept.shells == [(KEY, None), (ANNS.session, "ann")]


def test_a_shell_opens_the_directory_of_a_conversation_in_a_terminal(tmp_path: Path) -> None:
    kept = Sandboxes(replace(TRIP, workspace=str(tmp_path)))
    assert run(tmp_path / "home", kept, "shell", KEY).exit_code == 7
    assert kept.opened == [tmp_path]
    gone = Sandboxes(replace(TRIP, workspace=str(tmp_path / "gone")))
    done = run(tmp_path / "home", gone, "shell", KEY)
    assert isinstance(done.exception, ConfigError)
    assert "does not exist any more" in str(done.exception)


def test_a_sandbox_that_is_deleted_meanwhile_is_no_error(tmp_path: Path) -> None:
    class Vanishing(Sandboxes):
        async def reset(self, sandbox: SandboxInfo) -> bool:
            return False

    done = run(tmp_path, Vanishing(TRIP), "reset", "--yes", KEY)
    assert (done.exit_code, "does not exist any more" in done.stdout) == (0, True)


def test_control_characters_of_a_session_are_not_printed(tmp_path: Path) -> None:
    hostile = replace(TRIP, session="agent:main:cli:private:\x1b[2J")
    assert "\x1b" not in run(tmp_path, Sandboxes(hostile)).stdout


def test_a_person_can_look_into_the_sandbox_of_a_conversation(
    hermes: Run, environ: dict[str, str]
) -> None:
    runner = CliRunner(env=environ)
    asked = 'tool:terminal{"command":"echo kept > ~/note"}'

    def invoke(*args: str) -> Result:
        return runner.invoke(cli, args, obj=Application())

    assert invoke("chat", "-s", "trip", "-q", asked).exit_code == 0
    (listed,) = invoke("sandbox", "list", "--json").stdout.splitlines()
    assert json.loads(listed)["session"] == KEY
    assert invoke("sessions", "rename", "trip", "A weekend").exit_code == 0
    assert invoke("sandbox", "list").stdout.rstrip().endswith("A weekend")
    done = hermes("sandbox", "shell", "trip", stdin="cat ~/note; exit 5\n")
    assert (done.returncode, done.stdout) == (5, "kept\n"), done.stderr
    assert invoke("sandbox", "reset", "--yes", "trip").exit_code == 0
    assert invoke("sandbox", "list", "--json").stdout == ""


def test_a_person_can_look_into_a_container(
    hermes: Run,
    environ: dict[str, str],
    tmp_path: Path,
    containers: ContainerStage,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Commands in a container never run as root, so the project folder must not belong to root.
    project = tmp_path / "project"
    project.mkdir()
    if os.geteuid() == 0:
        os.chown(project, CONTAINER_USER, CONTAINER_USER)
    monkeypatch.chdir(project)
    chosen = {
        "TERMINAL_ENV": "docker",
        "TERMINAL_DOCKER_IMAGE": containers.image,
        "HERMES_DOCKER_BINARY": str(containers.engine),
    }
    runner = CliRunner(env={**environ, **chosen})
    asked = 'tool:terminal{"command":"echo kept > ~/note"}'

    def invoke(*args: str) -> Result:
        return runner.invoke(cli, args, obj=Application())

    assert invoke("chat", "-s", "trip", "-q", asked).exit_code == 0
    (listed,) = invoke("sandbox", "list", "--json").stdout.splitlines()
    assert json.loads(listed)["session"] == KEY
    done = hermes("sandbox", "shell", "trip", stdin="cat ~/note; pwd; exit 5\n", **chosen)
    assert (done.returncode, done.stdout) == (5, f"kept\n{project}\n"), done.stderr
    assert invoke("sandbox", "reset", "--yes", "trip").exit_code == 0
    assert invoke("sandbox", "list", "--json").stdout == ""
