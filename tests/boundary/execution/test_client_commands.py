"""Tests foreground commands that run through a client program. A shell of this machine stands in
for the client."""

from collections.abc import Callable, Mapping
from pathlib import Path

import anyio
import pytest

from hermes.boundary.execution.client_commands import ClientCommand, ClientCommands
from hermes.boundary.execution.handles import CALL_MARK
from hermes.testing.commands import lives
from hermes.testing.sandbox_contract import RecordedCommand
from hermes.types.errors import ToolFailed
from hermes.types.execution import CommandOutcome


class ThisMachine:
    """A machine whose client program is `env`, which runs each command on this machine."""

    name = "test"
    shared = True

    def __init__(self, folder: Path, program: str = "/usr/bin/env", limit: int = 0) -> None:
        self.files = (str(folder) if limit else "", limit)
        self.environment: Mapping[str, str] = {"PATH": "/usr/bin:/bin"}
        self.cleared = 0
        self.reached: Callable[[], str] | None = None
        self._program = program

    async def prepare(self) -> None:
        return

    def client(self, mark: str, *arguments: str, lasting: bool = False) -> tuple[str, ...]:
        return (self._program, f"{CALL_MARK}={mark}", "sh", *arguments)

    def watch(self) -> Callable[[], str] | None:
        return self.reached

    def terminal(self, folder: str) -> tuple[str, ...]:
        return ("sh",)

    def failure(self, said: str) -> ToolFailed:
        return ToolFailed(f"failure: {said}")

    async def clear(self) -> None:
        self.cleared += 1


async def no_check() -> None:
    return


async def run(machine: ThisMachine, folder: Path, text: str, seconds: float) -> CommandOutcome:
    command = ClientCommand(command=text, folder=str(folder), environment={})
    return await ClientCommands(machine).run(command, seconds, RecordedCommand(), no_check)


async def test_the_outcome_of_a_command_is_returned(tmp_path: Path) -> None:
    outcome = await run(ThisMachine(tmp_path), tmp_path, "echo a; sleep 600 & exit 3", 30.0)
    assert (outcome.text, outcome.code, outcome.left) == ("a\n", 3, 1)
    assert (outcome.timed_out, outcome.exceeded) == (False, "")


async def test_a_client_that_can_not_be_started_is_explained(tmp_path: Path) -> None:
    machine = ThisMachine(tmp_path, "/missing/client")
    with pytest.raises(ToolFailed, match=r"failure: .*No such file"):
        await run(machine, tmp_path, "true", 30.0)


async def test_the_message_of_a_client_that_fails_is_passed_on(tmp_path: Path) -> None:
    client = tmp_path / "client"
    client.write_text("#!/bin/sh\necho no such machine >&2\nexit 255\n")
    client.chmod(0o755)
    machine = ThisMachine(tmp_path, str(client))
    with pytest.raises(ToolFailed, match="failure: no such machine"):
        await run(machine, tmp_path, "true", 30.0)
    assert machine.cleared == 1


async def test_a_missing_folder_is_explained(tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match="can't be opened"):
        await run(ThisMachine(tmp_path), tmp_path / "missing", "true", 30.0)


async def test_a_command_that_fills_the_disk_is_ended(tmp_path: Path) -> None:
    machine = ThisMachine(tmp_path, limit=1_000_000)
    command = "head -c 60000000 /dev/zero > big; sleep 600"
    with anyio.fail_after(60):
        outcome = await run(machine, tmp_path, command, 600.0)
    assert outcome.exceeded == "workspace"


async def test_a_command_that_has_killed_its_supervisor_is_ended_in_time(tmp_path: Path) -> None:
    machine = ThisMachine(tmp_path)
    killing = "kill -9 $PPID; echo $$ > pid; exec sleep 600"
    outcome = await run(machine, tmp_path, killing, 1.0)
    assert (outcome.timed_out, outcome.code) == (True, -9)
    assert not lives(int((tmp_path / "pid").read_text()))
    assert await ClientCommands(machine).end("unknown") is False


async def test_a_command_that_reaches_a_limit_is_ended_without_its_supervisor(
    tmp_path: Path,
) -> None:
    machine = ThisMachine(tmp_path)
    machine.reached = lambda: "processes" if (tmp_path / "pid").exists() else ""
    stopping = "kill -STOP $PPID; echo $$ > new; mv new pid; exec sleep 600"
    outcome = await run(machine, tmp_path, stopping, 600.0)
    assert (outcome.exceeded, outcome.timed_out, outcome.code) == ("processes", False, -9)
    assert not lives(int((tmp_path / "pid").read_text()))


async def test_a_limit_that_has_ended_a_command_is_reported(tmp_path: Path) -> None:
    machine = ThisMachine(tmp_path)
    machine.reached = lambda: "memory" if (tmp_path / "begun").exists() else ""
    outcome = await run(machine, tmp_path, "echo > begun; kill -9 $$", 600.0)
    assert (outcome.exceeded, outcome.code) == ("memory", -9)
