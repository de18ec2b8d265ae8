"""A gateway starts commands through a fork server, and replaces a fork server that fails."""

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from hermes.boundary.execution.process_tree import descendants, find_process
from hermes.boundary.execution.supervised import (
    CommandEnd,
    CommandRequest,
    ForkServerClient,
    SupervisedCommand,
)
from hermes.testing.commands import children, lives, no_process_left, shell_launch
from hermes.testing.running import until


@pytest.fixture
def client() -> Iterator[ForkServerClient]:
    with no_process_left():
        client = ForkServerClient()
        yield client
        client.close()


def request(command: str, folder: Path) -> CommandRequest:
    return CommandRequest(launch=shell_launch(command, folder, {}, "/bin/sh"), mark=folder.name)


async def started(client: ForkServerClient, command: str, folder: Path) -> SupervisedCommand:
    supervised = await client.start(request(command, folder))
    await supervised.release()
    return supervised


def supervisor_of(supervised: SupervisedCommand) -> int:
    return int(supervised.handle.split(":")[5])


def state_of(pid: int) -> bytes:
    entry = find_process(pid)
    return entry.state if entry else b""


async def test_output_comes_in_pieces_and_ends(client: ForkServerClient, tmp_path: Path) -> None:
    supervised = await started(client, "echo one; exit 2", tmp_path)
    assert await supervised.output() == b"one\n"
    assert await supervised.output() == b""
    await supervised.shell_ended()
    assert await supervised.end() == CommandEnd(code=2, left=0, exceeded="")
    await supervised.aclose()


async def test_a_large_environment_is_passed(client: ForkServerClient, tmp_path: Path) -> None:
    """The environment is larger than the buffer of the socket to the fork server."""
    environment = {f"NAME{number}": "x" * 100_000 for number in range(10)}
    large = CommandRequest(launch=shell_launch("echo ${#NAME9}", tmp_path, environment), mark="")
    supervised = await client.start(large)
    await supervised.release()
    assert await supervised.output() == b"100000\n"
    await supervised.aclose()


async def test_after_the_supervisor_was_killed_the_exit_code_is_unknown(
    client: ForkServerClient, tmp_path: Path
) -> None:
    supervised = await started(client, "echo begun; exec sleep 600", tmp_path)
    assert await supervised.output() == b"begun\n"
    os.kill(supervisor_of(supervised), signal.SIGKILL)
    await supervised.shell_ended()
    assert await supervised.end() is None
    await supervised.aclose()


async def test_a_supervisor_that_does_not_answer_is_ended(
    client: ForkServerClient, tmp_path: Path
) -> None:
    supervised = await started(client, "echo begun; exec sleep 600", tmp_path)
    assert await supervised.output() == b"begun\n"
    supervised.ending_seconds = 0.0
    assert await supervised.end() is None
    assert not lives(supervisor_of(supervised))
    await supervised.aclose()


async def test_a_supervisor_that_the_command_has_stopped_still_ends_the_command(
    client: ForkServerClient, tmp_path: Path
) -> None:
    supervised = await started(client, "echo begun; kill -STOP $PPID; exec sleep 600", tmp_path)
    assert await supervised.output() == b"begun\n"
    await until(lambda: state_of(supervisor_of(supervised)) == b"T")
    ended = await supervised.end()
    assert ended is not None
    assert ended.code == -signal.SIGKILL
    await supervised.aclose()


async def test_a_server_that_does_not_answer_is_replaced(
    client: ForkServerClient, tmp_path: Path
) -> None:
    before = children()
    await (await started(client, "true", tmp_path)).aclose()
    (server,) = children() - before
    os.kill(server, signal.SIGSTOP)
    # The client replaces a server that does not answer within this time. The new server must also
    # start within this time.
    client.starting_seconds = 3.0
    supervised = await started(client, "echo well", tmp_path)
    assert await supervised.output() == b"well\n"
    await supervised.aclose()
    assert not lives(server)


async def test_a_stop_during_the_start_leaves_no_process(
    client: ForkServerClient, tmp_path: Path
) -> None:
    await (await client.start(request("true", tmp_path))).aclose()
    before = len(list(Path("/proc/self/fd").iterdir()))
    with anyio.CancelScope() as scope:
        scope.cancel()
        await client.start(request("touch ran", tmp_path))
    assert scope.cancelled_caught
    assert len(list(Path("/proc/self/fd").iterdir())) == before


async def test_the_server_ends_with_its_client(tmp_path: Path) -> None:
    before = children()
    client = ForkServerClient()
    await (await started(client, "true", tmp_path)).aclose()
    (server,) = children() - before
    await until(lambda: not descendants(server))
    del client
    gc.collect()
    assert children() == before
