"""When a foreground command ends, all processes that it has started end too."""

import os
import shlex
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from hermes.boundary.execution.foreground import PROGRESS_SECONDS, Foreground
from hermes.core.tools.call import CallContext
from hermes.testing.commands import lives, no_process_left, shell_launch
from hermes.testing.running import until
from hermes.testing.turns import Notebook, a_turn, files_of
from hermes.types.errors import ClaimLost, ToolFailed
from hermes.types.events import AgentEvent, ToolProgress
from hermes.types.execution import CommandOutcome
from hermes.types.identity import CallId, new_id

BASH = shutil.which("bash") or ""


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": request.param}


def context(notes: Notebook | None = None, events: list[AgentEvent] | None = None) -> CallContext:
    """Returns the context of a call. Each context has a unique call id, because several tests may
    run at the same time."""
    heard = events if events is not None else []
    turn = a_turn()
    return CallContext(turn, CallId(new_id()), files_of(turn), heard.append, notes or Notebook())


@pytest.fixture
def local() -> Iterator[Foreground]:
    with no_process_left():
        foreground = Foreground()
        yield foreground
        foreground.close()


async def run(
    local: Foreground, command: str, folder: Path, seconds: float = 60.0
) -> CommandOutcome:
    return await local.run(shell_launch(command, folder), seconds, context())


def group_in(handle: str) -> int:
    return int(handle.split(":")[2])


def pid_in(path: Path) -> int:
    """Returns the pid in the file, or 0 if the file is not written completely yet."""
    text = path.read_text() if path.exists() else ""
    return int(text) if text.endswith("\n") else 0


async def test_output_and_errors_keep_their_order(local: Foreground, tmp_path: Path) -> None:
    ended = await run(local, "pwd; echo wrong >&2; echo right; exit 3", tmp_path)
    assert ended.text == f"{tmp_path}\nwrong\nright\n"
    assert (ended.code, ended.timed_out, ended.left) == (3, False, 0)


async def test_a_command_has_no_input(local: Foreground, tmp_path: Path) -> None:
    assert (await run(local, "cat; echo over", tmp_path)).text == "over\n"


async def test_the_process_group_is_recorded_before_the_command_begins(
    local: Foreground, tmp_path: Path
) -> None:
    class Watching(Notebook):
        async def started(self, call: CallId, handle: str | None = None) -> None:
            await super().started(call, handle)
            assert handle
            assert lives(group_in(handle))
            with pytest.raises(AssertionError):
                await until((tmp_path / "ran").exists, within=0.2)

    notes = Watching()
    await local.run(shell_launch("echo $$ > ran", tmp_path), 60.0, context(notes))
    assert [group_in(handle) for handle in notes.handles] == [pid_in(tmp_path / "ran")]


async def test_a_turn_whose_claim_was_lost_starts_no_command(
    local: Foreground, tmp_path: Path
) -> None:
    class Losing(Notebook):
        async def started(self, call: CallId, handle: str | None = None) -> None:
            raise ClaimLost("taken over")

    with pytest.raises(ClaimLost):
        await local.run(shell_launch("touch ran", tmp_path), 60.0, context(Losing()))
    assert list(tmp_path.iterdir()) == []


DEEP = "setsid bash -c 'echo $$ > away; sleep 600' & bash -c 'echo $$ > near; sleep 600' & wait"


@pytest.mark.slow
async def test_a_timeout_ends_the_whole_tree(local: Foreground, tmp_path: Path) -> None:
    near, away = tmp_path / "near", tmp_path / "away"
    ended = await run(local, f"echo so far; {DEEP}", tmp_path, seconds=0.5)
    assert ended.timed_out
    assert ended.text == "so far\n"
    assert not lives(pid_in(near))
    await until(lambda: not lives(pid_in(away)))


@pytest.mark.slow
async def test_a_command_that_ignores_sigterm_is_killed(local: Foreground, tmp_path: Path) -> None:
    ended = await run(local, "trap 'echo never' TERM; while :; do sleep 600; done", tmp_path, 0.3)
    assert (ended.timed_out, ended.code) == (True, -signal.SIGKILL)


async def test_a_command_gets_time_to_handle_sigterm(local: Foreground, tmp_path: Path) -> None:
    ended = await run(local, "trap 'echo tidied; exit 5' TERM; sleep 600 & wait", tmp_path, 0.3)
    assert (ended.timed_out, ended.code, ended.text) == (True, 5, "tidied\n")


async def test_a_stop_ends_the_whole_tree_at_once(local: Foreground, tmp_path: Path) -> None:
    near, away = tmp_path / "near", tmp_path / "away"
    async with anyio.create_task_group() as group:
        group.start_soon(run, local, f"trap '' TERM; {DEEP}", tmp_path)
        await until(lambda: pid_in(near) and pid_in(away))
        group.cancel_scope.cancel()
    assert not lives(pid_in(near))
    await until(lambda: not lives(pid_in(away)))


@pytest.mark.parametrize(
    "command", ["sleep 600 & echo $! > left", "setsid sleep 600 & echo $! > left"]
)
async def test_processes_that_a_command_leaves_behind_end_with_it(
    local: Foreground, tmp_path: Path, command: str
) -> None:
    ended = await run(local, f"echo begun; {command}", tmp_path)
    assert (ended.text, ended.code, ended.left) == ("begun\n", 0, 1)
    assert ended.seconds < 60
    await until(lambda: not lives(pid_in(tmp_path / "left")))


DAEMON = """
import os, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 100)
        with open("left", "w") as file:
            print(os.getpid(), file=file)
        os.execve("/bin/sleep", ["sleep", "600"], {})
os._exit(0)
"""
ESCAPES = {
    "env -i setsid": "env -i setsid bash -c 'echo $$ > left; exec sleep 600' &",
    "nohup": "nohup env -i setsid bash -c 'echo $$ > left; exec sleep 600' >/dev/null 2>&1 &",
    "double fork": "(env -i setsid bash -c '(echo $BASHPID > left; exec -c sleep 600) &')",
    "daemon": shlex.join([sys.executable, "-c", DAEMON]),
}
"""Commands that try to leave a process behind: the process leaves the session, loses its parent and
clears its environment."""


@pytest.fixture(params=ESCAPES)
def escape(request: pytest.FixtureRequest) -> str:
    return f"{ESCAPES[request.param]}\nuntil [ -s left ]; do sleep 0.01; done"


async def test_a_process_that_left_its_session_ends_with_the_command(
    local: Foreground, tmp_path: Path, escape: str
) -> None:
    ended = await run(local, escape, tmp_path)
    assert (ended.code, ended.left) == (0, 1)
    assert not lives(pid_in(tmp_path / "left"))


@pytest.mark.slow
async def test_a_process_that_left_its_session_ends_at_the_timeout(
    local: Foreground, tmp_path: Path
) -> None:
    ended = await run(local, f"{ESCAPES['daemon']}; sleep 600", tmp_path, seconds=1.5)
    assert ended.timed_out
    assert not lives(pid_in(tmp_path / "left"))


async def test_a_process_that_left_its_session_ends_when_the_turn_is_stopped(
    local: Foreground, tmp_path: Path, escape: str
) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(run, local, f"{escape}; sleep 600", tmp_path)
        await until(lambda: pid_in(tmp_path / "left"))
        group.cancel_scope.cancel()
    assert not lives(pid_in(tmp_path / "left"))


async def test_processes_that_hide_and_multiply_are_ended(
    local: Foreground, tmp_path: Path
) -> None:
    spread = "for m in $(seq 500); do env -i setsid sleep 600 & echo >> begun; done"
    hidden = f"for n in 1 2 3; do env -i PATH=$PATH setsid bash -c '{spread}' & done"
    ended = await run(local, f"{hidden}; until [ -s begun ]; do sleep 0.01; done", tmp_path)
    assert ended.left > 3


async def test_a_command_that_kills_its_supervisor_leaves_nothing(
    local: Foreground, tmp_path: Path
) -> None:
    killing = f"{ESCAPES['env -i setsid']} until [ -s left ]; do :; done; kill -9 $PPID; sleep 600"
    with pytest.raises(ToolFailed, match="was killed: the exit code is unknown"):
        await run(local, killing, tmp_path)
    await until(lambda: not lives(pid_in(tmp_path / "left")))
    assert (await run(local, "echo well", tmp_path)).text == "well\n"


async def test_a_command_runs_after_the_fork_server_was_killed(
    local: Foreground, tmp_path: Path
) -> None:
    server = "read -r _ _ _ server _ < /proc/$PPID/stat; kill -9 $server; echo still"
    for _ in range(3):
        ended = await run(local, server, tmp_path)
        assert (ended.text, ended.code, ended.left) == ("still\n", 0, 0)


async def test_a_command_does_not_start_if_its_folder_is_missing(
    local: Foreground, tmp_path: Path
) -> None:
    with pytest.raises(ToolFailed, match=r"could not be started: .*No such file or directory"):
        await run(local, "touch ran", tmp_path / "missing")
    with pytest.raises(ToolFailed, match="at most 131071 bytes"):
        await run(local, "touch ran; echo \0", tmp_path)


async def test_a_missing_shell_gives_an_exit_code(tmp_path: Path) -> None:
    with no_process_left():
        foreground = Foreground()
        launch = shell_launch("true", tmp_path, {}, "/missing")
        ended = await foreground.run(launch, 60.0, context())
        foreground.close()
    assert ended.code == 127
    assert ended.text == "[Errno 2] No such file or directory: '/missing'\n"


async def test_commands_inherit_no_descriptors_and_signal_handlers_of_the_gateway(
    local: Foreground, tmp_path: Path
) -> None:
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    # This process ignores SIGHUP, as under `nohup`. The fork server inherits the ignored signal,
    # but the command must not inherit it.
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    shown = await run(local, "ls /proc/self/fd; grep -E 'Sig(Blk|Ign)' /proc/self/status", tmp_path)
    signal.signal(signal.SIGHUP, before)
    *descriptors, blocked, ignored = shown.text.split("\n")[:-1]
    os.close(reading)
    os.close(writing)
    # 0, 1 and 2 are the standard descriptors. `ls` itself opens descriptor 3, to read the folder.
    assert descriptors == ["0", "1", "2", "3"]
    assert int(blocked.removeprefix("SigBlk:"), 16) == 0
    # Signals above 31 are left out of the check, because the C library reserves them and may ignore
    # them.
    assert int(ignored.removeprefix("SigIgn:"), 16) % 2**31 == 0


async def test_many_commands_run_at_the_same_time(local: Foreground, tmp_path: Path) -> None:
    """Each command gets its own output, and the end of one command does not end another command."""
    texts: dict[int, str] = {}

    async def one(number: int) -> None:
        wait = f"touch {number}; until [ -e {(number + 1) % 20} ]; do sleep 0.01; done"
        texts[number] = (await run(local, f"{wait}; echo {number}", tmp_path)).text

    async with anyio.create_task_group() as group:
        for number in range(20):
            group.start_soon(one, number)
    assert texts == {number: f"{number}\n" for number in range(20)}


async def test_output_that_is_written_after_the_end_of_the_shell_is_read(
    local: Foreground, tmp_path: Path
) -> None:
    ended = await run(local, "exec > >(tee log); echo words", tmp_path)
    assert ended.text == "words\n"


async def test_endless_output_is_limited(local: Foreground, tmp_path: Path) -> None:
    ended = await run(local, "echo first; yes | head -c 50000000; echo last", tmp_path)
    assert ended.text.startswith("first\ny\n")
    assert ended.text.endswith("y\nlast\n")
    assert "bytes are left out here" in ended.text
    assert len(ended.text) < 210_000
    endless = await run(local, "yes", tmp_path, seconds=0.3)
    assert endless.timed_out
    assert len(endless.text) < 210_000


async def test_a_huge_line_and_binary_data_are_accepted_as_output(
    local: Foreground, tmp_path: Path
) -> None:
    line = await run(local, "head -c 1000000 /dev/zero | tr '\\0' x", tmp_path)
    assert line.text.strip() == "[1000000 bytes are left out here]"
    words = await run(local, "yes 1234567 | head -c 1000000 | tr '\\n' ' '", tmp_path)
    assert words.text.split().count("1234567") in (24_999, 25_000)
    binary = await run(local, "head -c 100000 /dev/urandom", tmp_path)
    assert "\0" not in binary.text
    assert "\N{REPLACEMENT CHARACTER}" in binary.text


def shown(events: list[AgentEvent]) -> list[str]:
    return [event.text for event in events if isinstance(event, ToolProgress)]


async def test_progress_shows_the_last_line_at_most_twice_a_second(
    local: Foreground, tmp_path: Path
) -> None:
    events: list[AgentEvent] = []
    read = shlex.join([sys.executable, "-c", "for n in range(100000): print(n, flush=True)"])
    command = f"{read}; until [ -e seen ]; do sleep 0.01; done"
    ended: list[CommandOutcome] = []

    async def attend() -> None:
        launch = shell_launch(command, tmp_path)
        ended.append(await local.run(launch, 60.0, context(None, events)))

    async with anyio.create_task_group() as group:
        group.start_soon(attend)
        await until(lambda: shown(events)[-1:] == ["99999"], within=20.0)
        (tmp_path / "seen").touch()
    assert len(events) <= ended[0].seconds / PROGRESS_SECONDS


async def test_a_command_that_can_not_start_is_an_error(local: Foreground, tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match="could not be started"):
        await run(local, "x" * 200_000, tmp_path)
