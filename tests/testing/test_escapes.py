"""Attempts to escape from the sandbox, at each level that this machine offers."""

import ctypes
import json
import os
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import anyio
import pytest

from hermes.boundary.execution.levels import Level
from hermes.control.routing import DEFAULT_AGENT
from hermes.testing import escapes
from hermes.testing.commands import EMPTY_ENVIRONMENT, local_backend, sandbox_backend
from hermes.testing.containers import ContainerStage
from hermes.testing.escapes import ESCAPES, Planted
from hermes.testing.sandbox_contract import RecordedCommand
from hermes.testing.turns import PRIVATE, a_turn
from hermes.types.execution import BackendOptions, ExecutionBackend, Mount, SandboxScope

PYTHON = Path(sys.base_prefix)
SHARED_KEY = 0x4E5C
VISIBLE_WITHOUT_A_SANDBOX = {
    "read_a_secret_file",
    "read_the_keys_of_the_agent",
    "read_a_file_of_another_session",
    "read_through_dots",
    "read_through_its_own_root",
    "read_the_command_line_of_a_process",
    "read_shared_memory_of_the_host",
    "list_the_home_of_the_agent",
    "list_the_devices_of_the_host",
    "write_a_file_of_the_host",
    "follow_a_link_out",
    "change_permissions",
    "change_times",
    "signal_a_process",
    "change_the_priority_of_a_process",
    "attach_shared_memory",
    "gain_privileges_by_execution",
    "call_the_api_of_the_gateway",
    "connect_to_a_service",
    "connect_to_an_abstract_socket",
}
"""Attempts that must succeed without a sandbox on every Linux machine. If one of them failed there,
its failure in a sandbox would prove nothing."""


@contextmanager
def planted_in(folder: Path) -> Iterator[Planted]:
    """Yields things outside of the sandbox, at which attempts to escape are aimed."""
    for name, text in (
        ("secret", "s"),
        ("home/.env", "KEY=1"),
        ("other/file", "o"),
        ("user/f", ""),
    ):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
        (folder / name).chmod(0o600)
    libc, null = ctypes.CDLL(None), Path("/dev/null").stat()
    shared = Path(f"/dev/shm/hermes-escape-{os.getpid()}")
    abstract = f"hermes-escape-{os.getpid()}"
    with ExitStack() as opened, pytest.MonkeyPatch.context() as patch:
        patch.setenv("HERMES_PLANTED", "1")
        process = opened.enter_context(subprocess.Popen(["sleep", "600"], cwd=folder))
        opened.callback(process.kill)
        api = opened.enter_context(socket.create_server(("", 0)))
        for name in (str(folder / "socket"), f"\0{abstract}"):
            service = opened.enter_context(socket.socket(socket.AF_UNIX))
            service.bind(name)
            service.listen()
        shared.write_text("s")
        opened.callback(shared.unlink)
        segment = libc.shmget(SHARED_KEY, 4096, 0o1600)
        opened.callback(libc.shmctl, segment, 0, None)
        yield Planted(
            secret=str(folder / "secret"),
            home=str(folder / "home"),
            other=str(folder / "other" / "file"),
            pid=process.pid,
            port=api.getsockname()[1],
            address=socket.gethostbyname(socket.gethostname()),
            socket=str(folder / "socket"),
            abstract=abstract,
            shared_key=SHARED_KEY,
            shared_file=str(shared),
            user_home=str(folder / "user"),
            device=[null.st_dev, null.st_ino],
        )


async def tried(
    backend: ExecutionBackend, folder: Path, planted: Planted, names: Sequence[str] = ()
) -> set[str]:
    """Makes the named attempts, or all attempts. Returns the names of those that succeed."""
    scope = SandboxScope(
        agent=DEFAULT_AGENT,
        session=a_turn(source=PRIVATE).session,
        workspace=str(folder / "work"),
        home=planted["home"],
    )
    (folder / "work").mkdir()
    command = shlex.join(
        [str(PYTHON / "bin" / "python3"), "-I", "-S", "escapes.py", json.dumps(planted), *names]
    )
    sandbox = await backend.open(scope)
    await sandbox.write("escapes.py", Path(escapes.__file__).read_bytes())
    outcome = await sandbox.run(command, RecordedCommand(), seconds=60.0)
    assert outcome.code == 0, outcome.text
    result = json.loads(outcome.text)
    assert result["tried"] == len(names or ESCAPES)
    return set(result["succeeded"])


@pytest.fixture(scope="module")
def succeeded(tmp_path_factory: pytest.TempPathFactory) -> dict[Level, set[str]]:
    """Makes all attempts to escape, with one command for each isolation level. Returns the names of
    the attempts that have succeeded at each level."""
    found: dict[Level, set[str]] = {}
    levels: tuple[Level, ...] = ("bubblewrap", "landlock")
    for level in levels:
        folder = tmp_path_factory.mktemp(level)
        options = BackendOptions(
            processes=folder / "processes",
            environment=EMPTY_ENVIRONMENT,
            sandboxes=folder / "home" / "sandboxes",
            mounts=(Mount(path=str(PYTHON)),),
        )
        with planted_in(folder) as planted, sandbox_backend(folder, level, options) as backend:
            found[level] = anyio.run(tried, backend, folder, planted)
    return found


@pytest.fixture(scope="module")
def succeeded_in_a_container(
    containers: ContainerStage, tmp_path_factory: pytest.TempPathFactory
) -> set[str]:
    """Makes all attempts with one command in a container."""
    folder = tmp_path_factory.mktemp("container")
    with planted_in(folder) as planted, containers.empty(folder):
        return anyio.run(tried, containers.backend(folder), folder, planted)


def test_there_are_at_least_sixty_attempts() -> None:
    assert len(ESCAPES) >= 60


@pytest.mark.parametrize("name", ESCAPES)
@pytest.mark.parametrize("level", ["bubblewrap", "landlock"])
def test_no_attempt_to_escape_succeeds(
    succeeded: dict[Level, set[str]], level: Level, name: str
) -> None:
    assert name not in succeeded[level]


@pytest.mark.parametrize("name", ESCAPES)
def test_no_attempt_to_escape_from_a_container_succeeds(
    succeeded_in_a_container: set[str], name: str
) -> None:
    assert name not in succeeded_in_a_container


async def test_attempts_succeed_without_a_sandbox(tmp_path: Path) -> None:
    with planted_in(tmp_path) as planted, local_backend(tmp_path) as backend:
        succeeded = await tried(backend, tmp_path, planted, sorted(VISIBLE_WITHOUT_A_SANDBOX))
    assert succeeded == VISIBLE_WITHOUT_A_SANDBOX
