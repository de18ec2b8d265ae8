"""The contract of the file and command tools on an execution backend, as a test class to inherit
from."""

import re
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from hermes.boundary.search import search as search_file
from hermes.core.tools.files import file_tools
from hermes.core.tools.terminal import terminal_tools
from hermes.state.spill import Spill
from hermes.testing.sandbox_contract import SandboxContract
from hermes.testing.turns import a_turn, use
from hermes.text.secret_files import NOTE
from hermes.types.errors import ToolFailed
from hermes.types.execution import ExecutionBackend


class Toolbench:
    """Calls tools by name, as a model does."""

    def __init__(self, backend: ExecutionBackend, workspace: str, folder: Path) -> None:
        tools = (
            *file_tools(Spill(folder / "spill"), search_file),
            *terminal_tools(30.0, backend.isolation),
        )
        self._tools = {tool.name: tool for tool in tools}
        self._backend = backend
        self._turn = a_turn(workspace=Path(workspace))

    async def __call__(self, tool: str, **arguments: object) -> str:
        return await use(self._tools[tool], self._turn, arguments, backend=self._backend)


class SandboxToolsContract(SandboxContract):
    """Checks that each tool sees the effects of the other tools, for example that a command finds a
    file that `write_file` has written."""

    @pytest.fixture
    async def call(self, tmp_path: Path, backend: Callable[[], ExecutionBackend]) -> Toolbench:
        return Toolbench(backend(), self.workspace(tmp_path), tmp_path)

    async def test_a_command_sees_what_was_written_and_patched(self, call: Toolbench) -> None:
        told = await call("write_file", path="a/f", content="one\ntwo\n")
        assert told == "Created 'a/f': 2 lines, 8 bytes."
        assert await call("terminal", command="cat f", workdir="a") == "one\ntwo"
        told = await call("patch", path="a/f", old="two", new="three")
        assert told.startswith("Replaced once in 'a/f'.\n@@")
        assert await call("terminal", command="cat a/f") == "one\nthree"

    async def test_files_that_a_command_writes_are_read_searched_and_patched(
        self, call: Toolbench
    ) -> None:
        assert await call("terminal", command="mkdir a; echo needle > a/f") == "[no output]"
        assert await call("read_file", path="a/f") == "needle"
        assert await call("search_files", pattern="need") == "a/f:1: needle"
        assert await call("search_files", pattern="f$", files=True) == "a/f"
        await call("patch", path="a/f", old="needle", new="pin")
        assert await call("read_file", path="a/f") == "pin"
        assert await call("search_files", pattern="need") == "Nothing matches."

    async def test_the_result_says_how_a_command_ended(self, call: Toolbench) -> None:
        told = await call("terminal", command="echo no; exit 3")
        assert re.fullmatch(r"no\n\[exit code 3, \d+\.\d s\]", told)
        told = await call("terminal", command="echo so far; sleep 600", timeout=1.0)
        assert told.startswith("so far\n[timed out and ended after ")

    async def test_background_commands_can_be_controlled(self, call: Toolbench) -> None:
        assert await call("process", action="list") == "[no background processes]"
        command = "read a; echo $a > made; echo heard $a; sleep 600"
        told = await call("terminal", command=command, background=True)
        id = told.split()[-1].rstrip("]")
        listed = await call("process", action="list")
        assert re.fullmatch(rf"{id}  running, \d\.\d s  read a; .*", listed)
        assert await call("process", action="write", id=id, text="it") == "[wrote 3 bytes]"
        with anyio.fail_after(20):
            told = ""
            while not told.startswith("heard it\n[running, "):
                told = await call("process", action="wait", id=id, timeout=0.1)
        assert await call("process", action="log", id=id) == "heard it\n[lines 1-1 of 1]"
        assert await call("read_file", path="made") == "it"
        told = await call("process", action="kill", id=id)
        assert re.match(r"heard it\n\[exit code -\d+, ", told)
        assert await call("process", action="poll", id=id) == told
        with pytest.raises(ToolFailed, match="There is no process"):
            await call("process", action="poll", id="x")

    async def test_no_tool_uses_files_outside_of_the_workspace(self, call: Toolbench) -> None:
        calls: tuple[tuple[str, dict[str, object]], ...] = (
            ("read_file", {}),
            ("write_file", {"content": "x"}),
            ("patch", {"old": "a", "new": "b"}),
            ("search_files", {"pattern": "x"}),
        )
        for path in ("../f", "/etc/passwd"):
            for tool, arguments in calls:
                with pytest.raises(ToolFailed, match="outside the workspace"):
                    await call(tool, path=path, **arguments)
            with pytest.raises(ToolFailed):
                await call("terminal", command="pwd", workdir=path)

    async def test_the_values_in_a_secret_file_are_masked_whoever_has_written_it(
        self, call: Toolbench
    ) -> None:
        await call("terminal", command="echo PORT=1 > .env; echo TOKEN=opensesame >> .env")
        assert await call("read_file", path="./.env") == f"PORT=…\nTOKEN=…\n\n{NOTE}"
        assert await call("search_files", pattern="opensesame") == ".env:2: TOKEN=…"
        assert await call("patch", path=".env", old="PORT=1", new="PORT=2") == (
            "Replaced once in '.env'."
        )

    async def test_a_link_does_not_reveal_the_values_in_a_secret_file(
        self, call: Toolbench
    ) -> None:
        await call("terminal", command="echo TOKEN=opensesame > .env; ln -s .env notes")
        with pytest.raises(ToolFailed):
            await call("read_file", path="notes")
        assert await call("search_files", pattern="opensesame") == ".env:1: TOKEN=…"
