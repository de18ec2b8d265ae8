"""The program that commands find instead of sudo."""

from pathlib import Path

from hermes.core.tools.call import scope_of
from hermes.testing.fake_sudo import sudo_backend
from hermes.testing.sandbox_contract import RecordedCommand
from hermes.testing.turns import a_turn


async def test_sudo_fails_if_its_gateway_has_ended(tmp_path: Path) -> None:
    with sudo_backend(tmp_path) as backend:
        sandbox = await backend.open(scope_of(a_turn(workspace=tmp_path / "work")))
        done = await sandbox.run("HERMES_SUDO=gone sudo touch ran", RecordedCommand(), seconds=30.0)
    assert done.text == "sudo: the gateway that started this command has ended\n"
    assert done.code == 1
    assert not (tmp_path / "work" / "ran").exists()
