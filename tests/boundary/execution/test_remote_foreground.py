"""The gateway reads the output of a command on a remote machine until the command has ended."""

from pathlib import Path

import pytest

from hermes.boundary.execution.remote_calls import RemoteCalls
from hermes.boundary.execution.remote_foreground import RemoteForeground
from hermes.testing.remote_host import HostMachine
from hermes.testing.sandbox_contract import RecordedCommand
from hermes.types.errors import ToolFailed

ORDER = {"owner": "s", "environment": {}, "secrets": [], "seconds": 30.0}


async def test_output_that_was_dropped_is_noted(tmp_path: Path) -> None:
    calls = RemoteCalls(HostMachine(tmp_path), "")
    running = RemoteForeground(calls, "a1", RecordedCommand())
    command = "yes | head -c 15000000; echo end"
    launch = {"workdir": ".", "order": {**ORDER, "command": command}, "place": None}
    result = await running.follow(launch)
    assert result.code == 0
    text = running.output.text()
    assert text.endswith("end\n")
    assert len(text) < 1_000_000


async def test_a_command_that_never_began_has_no_result(tmp_path: Path) -> None:
    calls = RemoteCalls(HostMachine(tmp_path), "")
    running = RemoteForeground(calls, "a1", RecordedCommand())
    await running.end()
    launch = {"workdir": ".", "order": {**ORDER, "command": "echo"}, "place": None}
    with pytest.raises(ToolFailed, match="ended before it began"):
        await running.follow(launch)
