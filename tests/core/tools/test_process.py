"""The tool `process` controls background commands."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.boundary.execution.local import LocalBackend
from hermes.core.tools.process import LATEST_LINES, LOG_WIDTH, _narrow
from hermes.core.tools.terminal import terminal_tools
from hermes.testing.commands import local_backend
from hermes.testing.running import until
from hermes.testing.turns import GROUP, PRIVATE, a_turn, review, use
from hermes.types.approvals import ProposedAction
from hermes.types.errors import ToolFailed
from hermes.types.identity import Source


class ProcessCalls:
    """Calls the tools `terminal` and `process` in one workspace."""

    def __init__(self, local: LocalBackend, workspace: Path) -> None:
        self._terminal, self._process = terminal_tools(60.0, local.isolation)
        self._backend = local
        self._workspace = workspace

    async def start(self, command: str) -> str:
        arguments = {"command": command, "background": True}
        turn = a_turn(workspace=self._workspace)
        told = await use(self._terminal, turn, arguments, backend=self._backend)
        return told.split()[-1].rstrip("]")

    async def reviewed(self, **arguments: object) -> ProposedAction | None:
        turn = a_turn(workspace=self._workspace)
        return await review(self._process, turn, arguments, backend=self._backend)

    async def __call__(self, action: str, source: Source = PRIVATE, **more: object) -> str:
        turn = a_turn(workspace=self._workspace, source=source)
        arguments = {"action": action, **more}
        return await use(self._process, turn, arguments, backend=self._backend)


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[ProcessCalls]:
    with local_backend(tmp_path) as local:
        yield ProcessCalls(local, tmp_path)


async def test_all_processes_of_the_conversation_are_listed(processes: ProcessCalls) -> None:
    assert await processes("list") == "[no background processes]"
    first = await processes.start("exit 3")
    await processes("wait", id=first)
    second = await processes.start("sleep 600 ;\n : " + "x" * 200)
    one, two = (await processes("list")).splitlines()
    assert re.fullmatch(rf"{first}  exit code 3, 0\.\d s  exit 3", one)
    assert re.fullmatch(rf"{second}  running, \d\.\d s  sleep 600 ; : x+…", two)
    assert len(two) < 150
    assert await processes("list", source=GROUP) == "[no background processes]"


async def test_poll_shows_the_last_lines_and_the_state(
    processes: ProcessCalls, tmp_path: Path
) -> None:
    id = await processes.start("seq 100; until [ -e go ]; do sleep 0.01; done; exit 1")
    told = await processes("wait", id=id, timeout=0.3)
    last = "\n".join(str(number) for number in range(101 - LATEST_LINES, 101))
    assert told.startswith(f"{last}\n[running, ")
    assert (await processes("poll", id=id)).startswith(f"{last}\n[running, ")
    (tmp_path / "go").touch()
    assert (await processes("wait", id=id)).startswith(f"{last}\n[exit code 1, ")
    assert (await processes("poll", id=id)).startswith(f"{last}\n[exit code 1, ")


async def test_the_log_is_read_in_parts(processes: ProcessCalls) -> None:
    id = await processes.start(
        "printf '\\033[31mone\\033[0m\\ntwo\\n'; head -c 3000 /dev/zero | tr '\\0' x"
    )
    await processes("wait", id=id)
    long = "x" * LOG_WIDTH + "…"
    assert await processes("log", id=id) == f"one\ntwo\n{long}\n[lines 1-3 of 3]"
    assert await processes("log", id=id, offset=2, limit=1) == "two\n[lines 2-2 of 3]"
    assert await processes("log", id=id, offset=-1, limit=0) == "one\n[lines 1-1 of 3]"
    assert await processes("log", id=id, offset=9) == "[3 lines]"
    empty = await processes.start("true")
    await processes("wait", id=empty)
    assert await processes("log", id=empty) == "[0 lines]"
    assert (await processes("poll", id=empty)).startswith("[no output]\n[exit code 0, ")


async def test_a_log_that_has_lost_its_beginning_says_so(processes: ProcessCalls) -> None:
    id = await processes.start("seq 3000000")
    await processes("wait", id=id)
    told = await processes("log", id=id, limit=1)
    assert told.endswith("; earlier output is no longer kept]")


async def test_write_sends_text_to_the_process_input(processes: ProcessCalls) -> None:
    id = await processes.start("read a; read b; echo $a-$b")
    assert await processes("write", id=id, text="x", newline=False) == "[wrote 1 byte]"
    assert await processes("write", id=id, text="y") == "[wrote 2 bytes]"
    assert await processes("write", id=id) == "[wrote 1 byte]"
    assert (await processes("wait", id=id)).startswith("xy-\n[exit code 0, ")


async def test_kill_reports_the_exit_code(processes: ProcessCalls, tmp_path: Path) -> None:
    id = await processes.start("echo begun; touch begun; sleep 600")
    await until((tmp_path / "begun").exists)
    told = await processes("kill", id=id)
    assert told.startswith("begun\n[exit code -15, ")
    assert await processes("kill", id=id) == told


@pytest.mark.parametrize("action", ["poll", "log", "wait", "kill", "write"])
async def test_processes_of_other_conversations_are_not_visible(
    processes: ProcessCalls, action: str
) -> None:
    id = await processes.start("sleep 600")
    for wrong in ({"id": id, "source": GROUP}, {"id": "../" + id}, {"id": "x"}, {}):
        with pytest.raises(ToolFailed, match="There is no process"):
            await processes(action, **wrong)
    assert "running" in await processes("list")


def test_a_secret_is_redacted_before_a_long_line_is_cut() -> None:
    line = "x" * (LOG_WIDTH - 4) + " hunter2hunter2 end"
    shown = _narrow(line, lambda text: text.replace("hunter2hunter2", "…"))
    assert "hun" not in shown
    assert len(shown) == LOG_WIDTH + 1


async def test_dangerous_input_of_a_process_needs_approval(processes: ProcessCalls) -> None:
    id = await processes.start("bash")
    for harmless in ({"action": "poll"}, {"action": "write", "text": "ls"}):
        assert await processes.reviewed(id=id, **harmless) is None
    action = await processes.reviewed(action="write", id=id, text="rm -rf /")
    assert action is not None
    assert (action.outcome, action.shown) == ("never", "rm -rf /")
    assert action.remarks == ("The command is:\n```\nbash\n```",)
    part = await processes.reviewed(action="write", id=id, text="ls", newline=False)
    assert part is not None
    assert part.reason == "a later input can complete this one"
    words = await processes.reviewed(
        action="write", id=await processes.start("cat"), text="rm -rf /"
    )
    assert words is not None
    assert words.outcome == "ask"
    python = await processes.start("python3 -i")
    code = "__import__('shutil').rmtree('photos')"
    asked = await processes.reviewed(action="write", id=python, text=f'f"{{{code}}}"')
    assert asked is not None
    assert "deletes photos" in asked.reason
