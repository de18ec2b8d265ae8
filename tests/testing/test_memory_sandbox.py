"""The execution backend that keeps its files in memory fulfils the contract of backends."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from hermes.boundary.search import search as search_file
from hermes.core.tools.files import file_tools
from hermes.core.tools.terminal import terminal_tools
from hermes.state.spill import Spill
from hermes.testing.memory_sandbox import MemoryBackend, MemoryMachine
from hermes.testing.platforms import ChatServer, PlainAdapter
from hermes.testing.running import Conditions, running, until
from hermes.testing.scripted import ScriptedModel, calls, says
from hermes.testing.tool_contract import SandboxToolsContract
from hermes.types.execution import ExecutionBackend, SandboxScope
from hermes.types.messages import ToolMessage


class TestMemory(SandboxToolsContract):
    @asynccontextmanager
    async def machine(self, folder: Path) -> AsyncIterator[Callable[[], ExecutionBackend]]:
        async with MemoryMachine() as machine:
            yield lambda: MemoryBackend(machine)
        assert list(folder.iterdir()) == []

    def workspace(self, folder: Path) -> str:
        return "/memory/work"


async def test_a_workspace_is_identified_by_its_name(tmp_path: Path) -> None:
    async with MemoryMachine() as machine:
        backend, scope = MemoryBackend(machine), TestMemory().scope(tmp_path)
        one = await backend.open(scope)
        other = await backend.open(
            SandboxScope(agent=scope.agent, session=scope.session, workspace="/memory/other")
        )
        await one.write("f", b"x")
        assert list(await other.list(".")) == []


async def test_a_gateway_can_work_on_another_machine(tmp_path: Path) -> None:
    tools = (
        *file_tools(Spill(tmp_path / "spill"), search_file),
        *terminal_tools(30.0, MemoryBackend.isolation),
    )
    server = ChatServer()
    server.says("work")
    model = ScriptedModel(
        [
            calls(("write_file", {"path": "f", "content": "written"})),
            calls(("terminal", {"command": "cat f; echo > g"})),
            calls(("search_files", {"pattern": "^[fg]$", "files": True})),
            says("done"),
        ]
    )
    async with MemoryMachine() as machine:
        conditions = Conditions(backend=MemoryBackend(machine), tools=tools)
        async with running(tmp_path, [PlainAdapter(server)], model, conditions):
            await until(server.texts)
    said = [m.text for m in model.requests[-1].messages if isinstance(m, ToolMessage)]
    assert said == ["Created 'f': 1 line, 7 bytes.", "written", "f\ng"]
    assert list((tmp_path / "workspace").iterdir()) == []
