"""An agent that runs dangerous commands on this machine, for tests of approvals."""

from pathlib import Path

from msgspec.structs import replace

from hermes.app.gateway import GatewayOverrides
from hermes.boundary.execution.local import LocalBackend
from hermes.core.tools.terminal import terminal_tools
from hermes.core.tools.write_file import write_file
from hermes.settings.approvals import ApprovalSettings
from hermes.testing.commands import EMPTY_ENVIRONMENT
from hermes.testing.running import QUIET
from hermes.testing.scripted import Answer, ScriptedModel, calls
from hermes.types.messages import ToolMessage

DANGEROUS = replace(QUIET, tools=(*terminal_tools(30.0, "none"), write_file))
"""The settings and tools of a gateway whose agent runs commands on this machine."""
UNASKED = replace(DANGEROUS, approvals=ApprovalSettings(mode="off"))


def dangerous_service(home: Path) -> GatewayOverrides:
    """Returns the settings for a service whose agent runs commands on this machine."""
    backend = LocalBackend(home / "processes", EMPTY_ENVIRONMENT)
    return GatewayOverrides(tools=DANGEROUS.tools, backend=backend, unread_seconds=0.2)


def runs(*commands: str) -> Answer:
    """Returns an answer of the model that calls the tool `terminal` with each of these commands."""
    return calls(*(("terminal", {"command": command}) for command in commands))


def make_folders(workspace: Path, *names: str) -> None:
    """Makes folders that a command could delete."""
    for name in names:
        folder = workspace / name
        folder.mkdir(parents=True)
        (folder / "file").write_text("x")


def results(model: ScriptedModel, request: int = -1) -> list[str]:
    """Returns the tool results that a request to the model contained. `request` is the index of
    the request in `model.requests`; -1 is the last request."""
    messages = model.requests[request].messages
    return [message.text for message in messages if isinstance(message, ToolMessage)]
