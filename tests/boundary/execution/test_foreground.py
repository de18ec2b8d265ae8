"""Commands that run to their end."""

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
from hermes.testing.commands import EMPTY_ENVIRONMENT, children, lives
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
    """Of a call that no other test has: they may run at the same time."""
    heard = events if events is not None else []
    turn = a_turn()
    return CallContext(turn, CallId(new_id()), files_of(turn), heard.append, notes or Notebook())


@pytest.fixture
def local() -> Iterator[Foreground]:
    before = children()
    yield Foreground(BASH, EMPTY_ENVIRONMENT)
    assert children() <= before


async def run(
    local: Foreground, command: str, folder: Path, seconds: float = 60.0
) -> CommandOutcome:
    return await local.run(command, folder, seconds, context())


def group_in(handle: str) -> int:
    return int(handle.split(":")[2])


def pid_in(path: Path) -> int:
    """The process that wrote its number there, once it has."""
    text = path.read_text() if path.exists() else ""
    return int(text) if text.endswith("\n") else 0


async def test_output_and_errors_come_in_their_order(local: Foreground, tmp_path: Path) -> None:
    ended = await run(local, "pwd; echo wrong >&2; echo right; exit 3", tmp_path)
    assert ended.text == f"{tmp_path}\nwrong\nright\n"
    assert (ended.code, ended.timed_out, ended.left) == (3, False, 0)


async def test_there_is_no_input(local: Foreground, tmp_path: Path) -> None:
    assert (await run(local, "cat; echo over", tmp_path)).text == "over\n"


async def test_the_group_is_on_record_before_the_command_begins(
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
    await local.run("echo $$ > ran", tmp_path, 60.0, context(notes))
    assert [group_in(handle) for handle in notes.handles] == [pid_in(tmp_path / "ran")]


async def test_a_claim_that_was_lost_begins_nothing(local: Foreground, tmp_path: Path) -> None:
    class Losing(Notebook):
        async def started(self, call: CallId, handle: str | None = None) -> None:
            raise ClaimLost("taken over")

    with pytest.raises(ClaimLost):
        await local.run("touch ran", tmp_path, 60.0, context(Losing()))
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
async def test_what_does_not_want_to_end_is_killed(local: Foreground, tmp_path: Path) -> None:
    ended = await run(local, "trap 'echo never' TERM; while :; do sleep 600; done", tmp_path, 0.3)
    assert (ended.timed_out, ended.code) == (True, -signal.SIGKILL)


async def test_what_wants_to_end_well_is_given_the_time(local: Foreground, tmp_path: Path) -> None:
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
async def test_what_a_command_leaves_behind_ends_with_it(
    local: Foreground, tmp_path: Path, command: str
) -> None:
    ended = await run(local, f"echo begun; {command}", tmp_path)
    assert (ended.text, ended.code, ended.left) == ("begun\n", 0, 1)
    assert ended.seconds < 60
    await until(lambda: not lives(pid_in(tmp_path / "left")))


async def test_who_hides_from_us_does_not_hold_us_up(local: Foreground, tmp_path: Path) -> None:
    hidden = (
        "env -i setsid bash -c 'echo $$ > left; exec sleep 600' & until [ -s left ]; do :; done"
    )
    ended = await run(local, hidden, tmp_path)
    try:
        assert (ended.code, ended.left) == (0, 0)
    finally:
        os.kill(pid_in(tmp_path / "left"), signal.SIGKILL)


async def test_the_last_words_behind_a_pipe_are_heard(local: Foreground, tmp_path: Path) -> None:
    ended = await run(local, "exec > >(tee log); echo words", tmp_path)
    assert ended.text == "words\n"


async def test_output_without_end_fits(local: Foreground, tmp_path: Path) -> None:
    ended = await run(local, "echo first; yes | head -c 50000000; echo last", tmp_path)
    assert ended.text.startswith("first\ny\n")
    assert ended.text.endswith("y\nlast\n")
    assert "bytes are left out here" in ended.text
    assert len(ended.text) < 210_000
    endless = await run(local, "yes", tmp_path, seconds=0.3)
    assert endless.timed_out
    assert len(endless.text) < 210_000


async def test_one_huge_line_and_binary_are_output_too(local: Foreground, tmp_path: Path) -> None:
    line = await run(local, "head -c 1000000 /dev/zero | tr '\\0' x", tmp_path)
    assert line.text.strip() == "[1000000 bytes are left out here]"
    words = await run(local, "yes 1234567 | head -c 1000000 | tr '\\n' ' '", tmp_path)
    assert words.text.split().count("1234567") in (24_999, 25_000)
    binary = await run(local, "head -c 100000 /dev/urandom", tmp_path)
    assert "\0" not in binary.text
    assert "\N{REPLACEMENT CHARACTER}" in binary.text


def shown(events: list[AgentEvent]) -> list[str]:
    return [event.text for event in events if isinstance(event, ToolProgress)]


async def test_people_see_the_last_line_twice_a_second_at_the_most(
    local: Foreground, tmp_path: Path
) -> None:
    events: list[AgentEvent] = []
    read = shlex.join([sys.executable, "-c", "for n in range(100000): print(n, flush=True)"])
    command = f"{read}; until [ -e seen ]; do sleep 0.01; done"
    ended: list[CommandOutcome] = []

    async def attend() -> None:
        ended.append(await local.run(command, tmp_path, 60.0, context(None, events)))

    async with anyio.create_task_group() as group:
        group.start_soon(attend)
        await until(lambda: shown(events)[-1:] == ["99999"], within=20.0)
        (tmp_path / "seen").touch()
    assert len(events) <= ended[0].seconds / PROGRESS_SECONDS


async def test_what_can_not_begin_is_told(local: Foreground, tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match="could not be started"):
        await run(local, "x" * 200_000, tmp_path)
