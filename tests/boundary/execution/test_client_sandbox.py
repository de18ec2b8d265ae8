"""Tests the settings of a sandbox on another machine. The contract tests of docker and ssh cover
its methods."""

from hermes.boundary.execution.client_sandbox import CommandSetting
from hermes.control.routing import DEFAULT_AGENT
from hermes.testing.turns import PRIVATE, a_turn
from hermes.types.execution import SandboxScope


async def no_command(handle: str) -> bool:
    return False


def test_commands_on_another_machine_do_not_get_the_paths_of_this_machine() -> None:
    scope = SandboxScope(
        agent=DEFAULT_AGENT, session=a_turn(source=PRIVATE).session, workspace="/w"
    )
    setting = CommandSetting(
        backend="docker",
        scope=scope,
        environment={"PATH": "/opt/bin", "HOME": "/root", "LANG": "C", "EXTRA": "1"},
        secrets={"TOKEN": "t"},
        sandbox="1",
        private_files=True,
        end=no_command,
    )
    assert setting.variables() == {"LANG": "C", "EXTRA": "1", "TOKEN": "t"}
