"""A command on a remote machine begins at most once. It never begins if the request to end it
arrives before the request to start it."""

from pathlib import Path

import pytest

from hermes.boundary.execution.remote_calls import RemoteCalls
from hermes.boundary.execution.remote_command import MOST_COMMANDS, CommandFolder
from hermes.testing.remote_host import HostMachine
from hermes.types.errors import ToolFailed
from hermes.types.value import Value


def launch(id: str) -> dict[str, object]:
    order = {"command": "echo >> ran", "owner": "s", "environment": {}, "secrets": []}
    return {"id": id, "workdir": ".", "order": {**order, "seconds": 30.0}, "place": None, "wait": 9}


async def test_a_command_that_was_ended_first_never_begins(tmp_path: Path) -> None:
    calls = RemoteCalls(HostMachine(tmp_path), "")
    assert not await calls.end("a1")
    with pytest.raises(ToolFailed, match="ended before it began"):
        await calls.call("start", Value, launch("a1"))
    assert not (tmp_path / "work/ran").exists()


async def test_a_request_that_arrives_twice_starts_one_command(tmp_path: Path) -> None:
    calls = RemoteCalls(HostMachine(tmp_path), "")
    await calls.call("start", Value, launch("a1"))
    with pytest.raises(ToolFailed, match="ended before it began"):
        await calls.call("start", Value, launch("a1"))
    assert (tmp_path / "work/ran").read_text() == "\n"


def test_output_is_read_in_pieces_and_a_loss_is_noticed(tmp_path: Path) -> None:
    folder = CommandFolder(tmp_path)
    assert not folder.claim()
    (tmp_path / "output.3").write_bytes(b"abc")
    (tmp_path / "output.4").write_bytes(b"def")
    assert folder.output(3, 1, 3) == (b"bcd", 4, 1, False)
    assert folder.output(4, 1, 9) == (b"ef", 4, 3, False)
    assert folder.output(0, 7, 9) == (b"abcdef", 4, 3, True)
    assert MOST_COMMANDS == 64
