"""A background command runs until it ends or is killed, even after its gateway has ended."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import anyio
import msgspec
import pytest
from msgspec.structs import replace

from hermes.boundary.execution.background import (
    FINISHED_SECONDS,
    MOST_FINISHED,
    MOST_RUNNING,
    PROCESS_MARK,
    RECORD,
    Background,
)
from hermes.boundary.execution.local import LocalBackend
from hermes.boundary.execution.output_files import OUTPUT_PIECE
from hermes.boundary.execution.process import end_marked
from hermes.control.routing import DEFAULT_AGENT
from hermes.testing.commands import background_of, children, lives, shell_launch
from hermes.testing.running import until
from hermes.testing.turns import GROUP, a_turn
from hermes.types.errors import ToolFailed
from hermes.types.execution import ProcessStatus, SandboxScope
from hermes.types.identity import AgentId

BASH = shutil.which("bash") or ""
OURS, THEIRS = a_turn().session, a_turn(source=GROUP).session


@pytest.fixture
def background(local: LocalBackend) -> Background:
    return background_of(local)


async def start(
    background: Background, command: str, agent: str = DEFAULT_AGENT, shell: str = BASH
) -> str:
    folder = background._root.parent
    scope = SandboxScope(agent=AgentId(agent), session=OURS, workspace=str(folder))
    launch = shell_launch(command, folder, shell=shell)
    return (await background.start(command, launch, scope)).id


def output(background: Background, id: str) -> bytes:
    return background.output(id, OURS).data


async def ended(background: Background, id: str) -> ProcessStatus:
    status = await background.wait(id, OURS, 20.0)
    assert not status.running
    return status


async def test_a_process_is_listed_from_its_start_to_its_end(
    background: Background, tmp_path: Path
) -> None:
    before = children()
    id = await start(background, "pwd; until [ -e go ]; do sleep 0.01; done; exit 3")
    (status,) = background.of(OURS)
    assert (status.id, status.running, status.code) == (id, True, None)
    record = background.record(id, OURS)
    assert record.workdir == str(tmp_path)
    assert lives(record.process.group)
    assert children() <= before
    (tmp_path / "go").touch()
    assert (await ended(background, id)).code == 3
    assert output(background, id) == f"{tmp_path}\n".encode()


async def test_another_gateway_finds_a_background_process(
    background: Background, tmp_path: Path
) -> None:
    id = await start(background, "read word; echo heard $word; sleep 600")
    later = Background(background._root)
    assert [one.running for one in later.of(OURS)] == [True]
    later.write(id, OURS, b"hello\n")
    await until(lambda: output(later, id) == b"heard hello\n")
    assert (await later.kill(id, OURS)).code == -signal.SIGTERM
    assert not background.find(id, OURS).running


KILLED = """
import sys
from pathlib import Path
import anyio
from hermes.boundary.execution.background import Background
from hermes.core.tools.call import scope_of
from hermes.testing.commands import shell_launch
from hermes.testing.turns import a_turn

async def main():
    root = Path(sys.argv[1])
    turn = a_turn()
    command = "echo begun; sleep 600"
    background = Background(root / "processes")
    await background.start(command, shell_launch(command, root), scope_of(turn))
    print("started", flush=True)
    await anyio.sleep_forever()

anyio.run(main)
"""


@pytest.mark.slow
async def test_a_process_outlives_a_killed_gateway(background: Background, tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as gateway:
        assert gateway.stdout
        assert gateway.stdout.readline() == b"started\n"
        gateway.kill()
    (status,) = background.of(OURS)
    assert status.running
    await until(lambda: output(background, status.id) == b"begun\n")
    assert not (await background.kill(status.id, OURS)).running


async def test_a_session_sees_only_its_own_processes(background: Background) -> None:
    id = await start(background, "sleep 600")
    assert background.of(THEIRS) == []
    for stranger in (
        lambda: background.find(id, THEIRS),
        lambda: background.output(id, THEIRS),
        lambda: background.write(id, THEIRS, b"x"),
        lambda: background.find("../processes/" + id, OURS),
        lambda: background.find("", OURS),
    ):
        with pytest.raises(ToolFailed, match="There is no process"):
            stranger()
    with pytest.raises(ToolFailed, match="There is no process"):
        await background.kill(id, THEIRS)
    assert background.find(id, OURS).running


@pytest.mark.slow
async def test_a_kill_ends_everything_that_the_command_started(
    background: Background, tmp_path: Path
) -> None:
    away = "setsid bash -c 'trap \"\" TERM; echo $$ > away; while :; do sleep 600; done'"
    id = await start(background, f"trap '' TERM; {away} & echo $$ > near; wait; sleep 600")
    near, far = tmp_path / "near", tmp_path / "away"
    await until(lambda: near.exists() and far.exists() and near.read_text() and far.read_text())
    status = await background.kill(id, OURS)
    assert (status.running, status.code) == (False, -signal.SIGKILL)
    assert not lives(int(near.read_text()))
    assert not lives(int(far.read_text()))
    assert await background.kill(id, OURS) == status


async def test_a_kill_ends_a_process_that_left_its_session_and_its_environment(
    background: Background, tmp_path: Path
) -> None:
    away = "env -i setsid bash -c 'echo $$ > away; exec sleep 600' >/dev/null 2>&1"
    id = await start(background, f"({away} &); echo begun; sleep 600")
    far = tmp_path / "away"
    await until(lambda: output(background, id) and far.exists() and far.read_text())
    status = await background.kill(id, OURS)
    assert (status.running, status.code) == (False, -signal.SIGTERM)
    assert not lives(int(far.read_text()))


async def test_a_reused_process_number_is_not_killed(
    background: Background,
) -> None:
    id = await start(background, "echo begun; sleep 600")
    await until(lambda: output(background, id))
    record = background.record(id, OURS)
    stranger = replace(record.process, started=record.process.started - 1)
    path = background._root / id / RECORD
    path.write_bytes(msgspec.json.encode(replace(record, process=stranger, id="other")))
    path.parent.rename(background._root / "other")
    try:
        status = await background.kill("other", OURS)
        assert (status.running, status.code) == (False, None)
        assert lives(record.process.group)
    finally:
        end_marked(f"{PROCESS_MARK}={id}")


async def test_a_process_of_another_machine_is_left_alone(background: Background) -> None:
    id = await start(background, "exec sleep 600")
    record = background.record(id, OURS)
    path = background._root / id / RECORD
    path.write_bytes(msgspec.json.encode(replace(record, boot="another machine")))
    status = await background.kill(id, OURS)
    assert not status.running
    assert lives(record.process.group)
    path.write_bytes(msgspec.json.encode(replace(record, boot="")))
    assert not (await background.kill(id, OURS)).running
    await until(lambda: not lives(record.process.group))


async def test_a_killed_supervisor_is_reported(background: Background) -> None:
    id = await start(background, "echo begun; sleep 600")
    await until(lambda: output(background, id))
    os.kill(background.record(id, OURS).process.group, signal.SIGKILL)
    status = await ended(background, id)
    assert status.code is None
    assert await background.kill(id, OURS) == status
    assert end_marked(f"{PROCESS_MARK}={id}") == 0


async def test_input_reaches_the_process(background: Background) -> None:
    id = await start(background, "cat")
    background.write(id, OURS, "zwölf\n".encode())
    await until(lambda: output(background, id) == "zwölf\n".encode())
    await background.kill(id, OURS)
    with pytest.raises(ToolFailed, match="it has ended"):
        background.write(id, OURS, b"x")


async def test_a_write_does_not_wait_if_the_process_reads_no_input(background: Background) -> None:
    id = await start(background, "sleep 600")
    with pytest.raises(ToolFailed, match="took only the first 65536 of 100000 bytes"):
        background.write(id, OURS, b"x" * 100_000)
    with pytest.raises(ToolFailed, match="took only the first 0 of 1 bytes"):
        background.write(id, OURS, b"x")


async def test_the_stored_output_of_an_endless_command_is_limited(background: Background) -> None:
    id = await start(background, "echo first; yes | head -c 20000000; echo last")
    await ended(background, id)
    kept = background.output(id, OURS)
    assert not kept.whole
    assert OUTPUT_PIECE < len(kept.data) <= 2 * OUTPUT_PIECE
    assert kept.data.endswith(b"y\nlast\n")
    short = await start(background, "echo first")
    await ended(background, short)
    assert background.output(short, OURS).whole


async def test_a_wait_can_end_before_the_process_ends(background: Background) -> None:
    id = await start(background, "sleep 600")
    assert (await background.wait(id, OURS, 0.05)).running
    with anyio.move_on_after(0.05) as scope:
        await background.wait(id, OURS, 600.0)
    assert scope.cancelled_caught


async def test_a_command_that_can_not_start_leaves_no_files(background: Background) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(ToolFailed, match="could not be started"):
        await start(background, "x" * 200_000)
    assert list(background._root.iterdir()) == []
    assert len(list(Path("/proc/self/fd").iterdir())) == before


async def test_a_missing_shell_gives_an_exit_code(tmp_path: Path) -> None:
    background = Background(tmp_path / "processes")
    id = await start(background, "true", shell="/missing")
    assert (await ended(background, id)).code == 127


async def test_a_start_that_is_cancelled_runs_no_command(
    background: Background, tmp_path: Path
) -> None:
    with anyio.CancelScope() as scope:
        scope.cancel()
        await start(background, "touch ran")
    assert scope.cancelled_caught
    assert background.of(OURS) == []
    assert not list(background._root.glob("*"))
    assert not (tmp_path / "ran").exists()


def multiplied(background: Background, id: str, times: int) -> None:
    """Copies the record of the process `times` times. For the backend, each copy is the record of
    another, newer process."""
    record = background.record(id, OURS)
    for number in range(times):
        copy = replace(record, id=f"{id}{number:04d}")
        folder = background._root / copy.id
        folder.mkdir()
        (folder / RECORD).write_bytes(msgspec.json.encode(copy))


async def test_the_number_of_processes_of_an_agent_is_limited(background: Background) -> None:
    id = await start(background, "sleep 600")
    multiplied(background, id, MOST_RUNNING - 1)
    with pytest.raises(ToolFailed, match="64 background processes are running already"):
        await start(background, "sleep 600")
    await start(background, "sleep 600", agent="other")
    await background.kill(id, OURS)
    await start(background, "sleep 600")


def aged(background: Background, id: str) -> None:
    folder = background._root / id
    for path in (*folder.iterdir(), folder):
        os.utime(path, times=(0, time.time() - FINISHED_SECONDS - 1))


async def test_an_ended_process_is_kept_for_a_day(background: Background) -> None:
    live, old, fresh = [await start(background, word) for word in ("sleep 600", "true", "true")]
    await ended(background, old)
    await ended(background, fresh)
    (background._root / "torn").mkdir()
    (background._root / "torn" / RECORD).write_text("{")
    for one in (live, old, "torn"):
        aged(background, one)
    latest = await start(background, "true")
    left = {path.name for path in background._root.iterdir()}
    assert left == {live, fresh, latest}


async def test_only_the_newest_of_many_ended_processes_are_kept(background: Background) -> None:
    id = await start(background, "true")
    await ended(background, id)
    multiplied(background, id, MOST_FINISHED)
    latest = await start(background, "sleep 600")
    left = [one.id for one in background.of(OURS)]
    assert left[0] == f"{id}0000"
    assert (left[-1], len(left)) == (latest, MOST_FINISHED + 1)


async def test_only_the_owner_can_read_the_files_of_a_process(background: Background) -> None:
    id = await start(background, "true")
    assert (background._root / id).stat().st_mode & 0o077 == 0
    assert background._root.stat().st_mode & 0o077 == 0
