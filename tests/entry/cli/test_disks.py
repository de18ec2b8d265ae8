"""If the home is on a full or read-only disk, commands print one sentence, and the service answers
503."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import click
import pytest

from hermes.entry.cli.main import cli

Run = Callable[..., "subprocess.CompletedProcess[str]"]

COMMANDS = [
    *("gateway run --port 0", "gateway status", "gateway stop", "gateway new-key"),
    *("sessions list", "sessions show trip", "sessions search hello", "sessions export --all"),
    *("sessions delete trip --yes", "sessions restore trip"),
    *("config show", "config get timezone", "config set timezone UTC", "config unset timezone"),
    *("config explain timezone", "config check", "config path", "config migrate"),
    *("model show", "model list", "model use groq/x", "model test"),
    *("sessions rename trip journey", "sessions prune --older-than 1 --yes"),
    *("prompt show", "chat -q hello", "help", "status", "logs"),
    "store copy --to copy.db",
    *("approvals explain pwd", "approvals list", "approvals approve 1234abcd"),
    *("approvals deny 1234abcd", "approvals rules", "approvals revoke 1234abcd"),
    "send --list",
    *("pairing list", "pairing approve telegram ABCD2345", "pairing revoke telegram 7"),
    *("people list", "people link telegram:7 matrix:@a:b.c", "people unlink telegram:7"),
    *("audit 1", "doctor", "sandbox list", "sandbox shell trip", "sandbox reset trip --yes"),
    *("context list", "context allow AGENTS.md", "context revoke AGENTS.md"),
]


@pytest.fixture
def disk(environ: dict[str, str]) -> Iterator[Path]:
    """Yields a home on a small file system of its own."""
    home = Path(environ["HERMES_HOME"])
    home.mkdir(mode=0o700)
    mount = shutil.which("mount")
    made = mount and subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=8m,mode=0700", "tmpfs", home],
        check=False,
        capture_output=True,
    )
    if not made or made.returncode:
        pytest.skip("only root can mount a small disk")
    try:
        yield home
    finally:
        subprocess.run(["umount", "-l", home], check=True)


@pytest.fixture
def used(disk: Path, hermes: Run) -> Path:
    """Returns a home on the small disk, with a conversation and a changed setting in it."""
    assert hermes("chat", "--session", "trip", "-q", "hello").returncode == 0
    assert hermes("config", "set", "timezone", "UTC").returncode == 0
    return disk


def test_the_list_of_tested_commands_is_complete() -> None:
    names = set()
    context = click.Context(cli)
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        below = command.list_commands(context) if isinstance(command, click.Group) else [""]
        names |= {f"{name} {one}".strip() for one in below}
    assert names <= {
        name for line in COMMANDS for name in (line.split()[0], " ".join(line.split()[:2]))
    }


def test_every_command_prints_one_sentence_for_a_read_only_home(used: Path, hermes: Run) -> None:
    subprocess.run(["mount", "-o", "remount,ro", used], check=True)
    said = {}
    for command in COMMANDS:
        done = hermes(*command.split())
        told = done.stderr.strip()
        assert "Traceback" not in told, f"{command}: {told}"
        assert len(told.splitlines()) <= 1, f"{command}: {told}"
        said[command] = (done.returncode, told)
    for command in ("sessions list", "config set timezone UTC", "gateway new-key", "chat -q hello"):
        code, told = said[command]
        assert code != 0, command
        assert "ead-only" in told, f"{command}: {told}"


class Waiting:
    """`hermes gateway` on a disk that may be full."""

    def __init__(self, environ: dict[str, str]) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self._key = (Path(environ["HERMES_HOME"]) / "api_server.key").read_text().strip()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "hermes", "gateway", "--port", str(self._port)],
            env=environ,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def status(self, path: str, body: dict[str, object] | None = None) -> int:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        request = Request(f"http://127.0.0.1:{self._port}{path}", data, headers)
        try:
            with urlopen(request, timeout=10) as reply:
                found: int = reply.status
                return found
        except HTTPError as error:
            return error.code
        except (URLError, OSError):
            return 0

    def until(self, path: str, status: int) -> None:
        deadline = time.monotonic() + 30
        while self.status(path) != status:
            assert self.process.poll() is None, self.process.communicate()[1]
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def end(self) -> tuple[int, str]:
        self.process.send_signal(signal.SIGTERM)
        logged = self.process.communicate(timeout=30)[1]
        return self.process.returncode, logged


def fill(disk: Path) -> Path:
    """Creates a file that takes the remaining space."""
    ballast = disk / "ballast"
    with ballast.open("wb") as file, pytest.raises(OSError, match="No space"):  # noqa: PT012
        while True:
            os.write(file.fileno(), bytes(4096))
    return ballast


ASKED: dict[str, object] = {
    "model": "hermes-agent",
    "messages": [{"role": "user", "content": "hello"}],
}


def test_a_service_that_starts_on_a_full_disk_answers_503_until_there_is_room(
    used: Path, hermes: Run, environ: dict[str, str]
) -> None:
    assert hermes("gateway", "new-key").returncode == 0
    ballast = fill(used)
    service = Waiting(environ)
    try:
        service.until("/health", 200)
        assert service.status("/ready") == 503
        assert service.status("/v1/chat/completions", ASKED) == 503
        assert service.status("/v1/models") == 503
        ballast.unlink()
        service.until("/ready", 200)
        assert service.status("/v1/chat/completions", ASKED) == 200
        code, logged = service.end()
    finally:
        service.process.kill()
    assert code == 0
    assert logged.count("is full: nothing is accepted") == 1
    assert "Traceback" not in logged


def test_a_service_that_waits_for_room_can_be_stopped(
    used: Path, hermes: Run, environ: dict[str, str]
) -> None:
    assert hermes("gateway", "new-key").returncode == 0
    fill(used)
    service = Waiting(environ)
    try:
        service.until("/ready", 503)
        assert service.end()[0] == 0
    finally:
        service.process.kill()


@pytest.mark.parametrize("names", [["hermes.db"], ["hermes.db", "hermes.db-wal", "hermes.db-shm"]])
def test_a_service_whose_database_is_removed_answers_503_and_the_next_start_restores_a_snapshot(
    hermes: Run, environ: dict[str, str], names: list[str]
) -> None:
    home = Path(environ["HERMES_HOME"])
    assert hermes("chat", "--session", "trip", "-q", "hello").returncode == 0
    assert hermes("gateway", "new-key").returncode == 0
    service = Waiting(environ)
    try:
        service.until("/ready", 200)
        taken = wait_for(lambda: sorted(home.glob("backups/hermes-*.db")))
        for name in names:
            (home / name).unlink()
        # The gateway notices the missing database by itself, although it has nothing to store.
        service.until("/ready", 503)
        assert service.status("/v1/chat/completions", ASKED) == 503
        assert service.status("/health") == 200
        code, logged = service.end()
    finally:
        service.process.kill()
    assert code == 0
    assert "Traceback" not in logged
    assert logged.count("CRITICAL") == 1
    assert sorted(home.glob("backups/hermes-*.db")) == taken
    listed = hermes("sessions", "list")
    assert "trip" in listed.stdout
    assert "restored a snapshot that is" in listed.stderr


def wait_for(look: Callable[[], list[Path]]) -> list[Path]:
    deadline = time.monotonic() + 30
    while not (found := look()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found
