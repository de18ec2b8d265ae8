"""Checks for the tests of backends that run commands through another program, such as `docker` or
`ssh`."""

import os
import signal
from pathlib import Path

import anyio

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
    """Returns the processes of this machine that carry the mark, also those in containers."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"{CALL_MARK}={mark}".encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


async def check_killed_gateway(
    options: BackendOptions, backend: ExecutionBackend, workspace: str
) -> None:
    """Starts a command in a child process and kills this process. Checks that the command ends by
    itself, that it has run once, and that its files stay."""
    scope = private_scope(workspace)
    sandbox = await backend.open(scope)
    child = await anyio.open_process(
        command_line(options, scope, DAEMON), stderr=None, start_new_session=True
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
