"""Checks for the tests of backends that run commands through another program, such as `docker` or
`ssh`."""

import os
import shutil
import signal
from pathlib import Path

import anyio
import pytest

from hermes.boundary.execution.handles import CALL_MARK
from hermes.control.routing import DEFAULT_AGENT
from hermes.testing.command_child import command_line
from hermes.testing.running import until
from hermes.testing.sandbox_contract import RecordedCommand
from hermes.testing.turns import PRIVATE, a_turn
from hermes.types.errors import ToolFailed
from hermes.types.execution import BackendOptions, ExecutionBackend, Sandbox, SandboxScope

APPEARING_CHECKS = 600
DAEMON = "(setsid sleep 600 >/dev/null 2>&1 &) ; echo begun >> begun; sleep 600; echo > late"
RACE = (
    "while :; do rm -rf x; mkdir x; rm -rf x; ln -s {secret} x;"
    " rm -f y; echo 1 > y; rm -f y; ln -s {secret}/f y; done"
)


def private_scope(workspace: str) -> SandboxScope:
    session = a_turn(source=PRIVATE).session
    return SandboxScope(agent=DEFAULT_AGENT, session=session, workspace=workspace)


def marked_processes(mark: str) -> list[int]:
    """Returns the processes of this machine that have this mark in their environment. Processes in
    containers are included."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"{CALL_MARK}={mark}".encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


class Swap(RecordedCommand):
    """Replaces an approved script after the sandbox has checked the script for the first time, and
    before the command begins."""

    def __init__(self, script: Path, *, rename: bool) -> None:
        super().__init__()
        self._script = script
        self._rename = rename

    async def started(self, handle: str) -> None:
        await super().started(handle)
        if self._rename:
            other = self._script.with_name("other")
            other.write_text("echo evil")
            other.rename(self._script)
        else:
            self._script.write_text("echo evil")


async def check_swapped_script(sandbox: Sandbox, workspace: Path, rounds: int) -> None:
    """Replaces an approved script right before its command begins. `workspace` is a folder on this
    machine. Checks that the command never runs."""
    for rename in (True, False) * (rounds // 2):
        (workspace / "x.sh").write_text("echo approved")
        place = await sandbox.locate(".", ["x.sh"])
        swap = Swap(workspace / "x.sh", rename=rename)
        with pytest.raises(ToolFailed, match=r"x.sh has changed since the approval"):
            await sandbox.run("bash x.sh; echo > ran", swap, seconds=30.0, place=place)
        assert swap.handles
    assert await sandbox.stat("ran") is None


async def check_pinned_script(sandbox: Sandbox, workspace: Path, home: Path) -> RecordedCommand:
    """Changes an approved script after its command has begun. The test overwrites the script,
    moves another file to the path of the script, and exchanges the script's folder. The command
    itself also tries to change the script. Checks that the approved script runs nevertheless.
    `workspace` and `home` are folders on this machine."""
    script, go = workspace / "tools" / "x.sh", home / ".go"
    script.parent.mkdir()
    script.parent.chmod(0o777)
    script.write_text("#!/bin/sh\necho tampered >> tools/x.sh; echo approved > made; cat made\n")
    script.chmod(0o755)
    os.mkfifo(go)
    go.chmod(0o666)
    place = await sandbox.locate(".", ["tools/x.sh"])

    class Change(RecordedCommand):
        def progress(self, text: str) -> None:
            assert text == "begun"
            script.write_text("echo evil")
            exchange_path(script)
            exchange_path(script.parent)
            go.write_text("")

    change = Change()
    # The command itself also tries to replace the script.
    attack = "rm -f tools/x.sh; echo evil > y; chmod +x y; mv -f y tools/x.sh"
    command = f"{attack}; echo begun; cat ~/.go; tools/x.sh"
    outcome = await sandbox.run(command, change, seconds=30.0, place=place)
    lines = outcome.text.splitlines()
    assert "begun" in lines
    assert lines[-1] == "approved", outcome.text
    assert "cannot create tools/x.sh" in outcome.text
    assert script.read_text() == "echo evil"
    # The approved script has also written its file into the workspace.
    assert (workspace / "made").read_text() == "approved\n"
    go.unlink()
    return change


def exchange_path(path: Path) -> None:
    """Replaces the file or folder at the path by a copy with the same content. The copy is moved to
    the path."""
    other = path.with_name(f"other-{path.name}")
    if path.is_dir():
        shutil.copytree(path, other)
        path.rename(path.with_name(f"old-{path.name}"))
    else:
        shutil.copy(path, other)
    other.rename(path)


async def check_killed_gateway(
    options: BackendOptions, backend: ExecutionBackend, workspace: str, *scripts: str
) -> None:
    """Starts a command with approved scripts in a child process, and kills the child process.
    Checks that the command ends by itself, that it has run once, and that its files stay."""
    scope = private_scope(workspace)
    sandbox = await backend.open(scope)
    child = await anyio.open_process(
        command_line(options, scope, DAEMON, *scripts), stderr=None, start_new_session=True
    )
    assert child.stdout
    handle = (await child.stdout.receive()).decode().strip()
    await appears(sandbox, "begun")
    mark = handle.rpartition(":")[2]
    assert marked_processes(mark)
    os.killpg(child.pid, signal.SIGKILL)
    await child.aclose()
    await until(lambda: not marked_processes(mark), within=60.0)
    assert not await backend.end(handle)
    assert await sandbox.read("begun") == b"begun\n"
    assert await sandbox.stat("late") is None


async def appears(sandbox: Sandbox, path: str) -> None:
    """Waits until the file exists."""
    for _ in range(APPEARING_CHECKS):
        if await sandbox.stat(path):
            return
        await anyio.sleep(0.05)
    raise AssertionError(f"{path} does not appear")


async def check_race(sandbox: Sandbox, secret: anyio.Path, rounds: int) -> None:
    """Uses the file tools while a command replaces files and folders by links to a folder outside
    of the workspace. Checks that no file tool reaches that folder."""
    await (secret / "f").write_text("opensesame")
    process = await sandbox.start(RACE.format(secret=secret))
    seen = 0
    for _ in range(rounds):
        for path in ("x/f", "y"):
            try:
                assert b"opensesame" not in await sandbox.read(path)
                seen += 1
            except ToolFailed:
                seen += 1
            try:
                await sandbox.write(path, b"changed")
            except ToolFailed:
                seen += 1
    await process.kill()
    assert seen
    assert await (secret / "f").read_text() == "opensesame"
    assert [path.name async for path in secret.iterdir()] == ["f"]


async def output_of(sandbox: Sandbox, command: str) -> str:
    return (await sandbox.run(command, RecordedCommand(), seconds=30.0)).text
