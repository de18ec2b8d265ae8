"""Commands can use sudo, and do not see its password."""

from pathlib import Path

from hermes.boundary.execution.local import LOCAL_BACKEND
from hermes.boundary.execution.sudo import sudo_access
from hermes.core.tools.call import scope_of
from hermes.testing.commands import EMPTY_ENVIRONMENT
from hermes.testing.fake_sudo import SUDO_PASSWORD, sudo_backend
from hermes.testing.sandbox_contract import RecordedCommand
from hermes.testing.turns import a_turn
from hermes.types.execution import BackendOptions


async def test_no_command_sees_the_password(tmp_path: Path) -> None:
    looking = (
        "env; sudo env; sudo cat; cat $(command -v sudo) /proc/self/cmdline;"
        " cat /proc/[0-9]*/cmdline /proc/self/environ | tr '\\0' ' '; bash -c 'sudo env'"
    )
    with sudo_backend(tmp_path) as backend:
        sandbox = await backend.open(scope_of(a_turn(workspace=tmp_path / "work")))
        done = await sandbox.run(looking, RecordedCommand(), seconds=30.0)
    assert done.text.count("AS=root") == 2
    assert "HERMES_SUDO=hermes-sudo-" in done.text
    assert SUDO_PASSWORD not in done.text
    assert "-S -v" in (tmp_path / "calls").read_text()


async def test_the_password_is_redacted_in_background_output(tmp_path: Path) -> None:
    with sudo_backend(tmp_path) as backend:
        sandbox = await backend.open(scope_of(a_turn(workspace=tmp_path / "work")))
        process = await sandbox.start(f"echo {SUDO_PASSWORD[:8]}''{SUDO_PASSWORD[8:]}")
        await process.wait(30.0)
        assert (await process.output()).data == b"[redacted]\n"


async def test_the_local_backend_passes_secrets_by_name(tmp_path: Path) -> None:
    options = BackendOptions(
        processes=tmp_path / "processes", environment=EMPTY_ENVIRONMENT, secrets={"TOKEN": "abc123"}
    )
    backend = LOCAL_BACKEND.make(options)
    try:
        sandbox = await backend.open(scope_of(a_turn(workspace=tmp_path)))
        done = await sandbox.run("echo $TOKEN", RecordedCommand(), seconds=30.0)
    finally:
        await backend.aclose()
    assert done.text == "abc123\n"


def test_without_a_password_there_is_no_access(tmp_path: Path) -> None:
    assert sudo_access("", tmp_path) is None
