"""The agent inside a Python program, as the guide shows it."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from hermes import Agent, TurnFailed, tool
from hermes.testing.model import FakeModel
from hermes.types.events import ToolFinished

GUIDE = Path(__file__).parents[1] / "docs" / "guides" / "embed-in-python.md"


def double(number: int) -> str:
    """Double a number."""
    return str(number * 2)


def an_agent(home: Path, model: FakeModel, *tools: str) -> Agent:
    return Agent(
        home=home, base_url=model.base_url, model="scripted", tools=[tool(double)], toolsets=tools
    )


async def test_an_answer_uses_the_program_s_own_tool(tmp_path: Path) -> None:
    async with FakeModel() as model, an_agent(tmp_path, model) as agent:
        answer = await agent.ask('please tool:double{"number":21}')
        assert "tool said: 42" in re.sub(r" ?\[[^]]*\]", "", answer)
        assert [one.function.name for one in model.requests[0].tools or ()] == ["double"]


async def test_toolsets_add_ours(tmp_path: Path) -> None:
    async with FakeModel() as model, an_agent(tmp_path, model, "files") as agent:
        await agent.ask("hi")
        names = {one.function.name for one in model.requests[0].tools or ()}
        assert {"double", "read_file"} <= names


async def test_words_and_events_come_as_they_are_said(tmp_path: Path) -> None:
    async with FakeModel() as model, an_agent(tmp_path, model) as agent:
        pieces = [piece async for piece in agent.stream("tokens:20 go")]
        assert len("".join(pieces).split()) == 20
        events = [event async for event in agent.events('tool:double{"number":2}')]
        assert any(isinstance(event, ToolFinished) for event in events)


async def test_a_conversation_is_gone_on_with_in_the_next_run(tmp_path: Path) -> None:
    async with FakeModel() as model:
        for text in ("one", "two"):
            async with an_agent(tmp_path, model) as agent:
                await agent.ask(text)
        said = [message.content for message in model.requests[-1].messages]
        assert "one" in said
        assert "two" in said


async def test_a_failure_is_raised_with_its_reason(tmp_path: Path) -> None:
    async with FakeModel() as model, an_agent(tmp_path, model) as agent:
        with pytest.raises(TurnFailed, match="401"):
            await agent.ask("status:401")
        with pytest.raises(TurnFailed, match="401"):
            _ = [piece async for piece in agent.stream("status:401")]


async def test_an_agent_that_is_not_at_work_says_so(tmp_path: Path) -> None:
    with pytest.raises(TurnFailed, match="async with"):
        await Agent(home=tmp_path).ask("hi")


async def test_the_guide_s_program_runs(tmp_path: Path) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text("utf-8"), re.S)
    assert len([line for line in program.splitlines() if line.strip()]) <= 16
    ast.parse(program)
    asked = program.replace("Throw a die with 20 sides.", 'tool:throw_die{\\"sides\\":1}')
    async with FakeModel() as model:
        done = await anyio.run_process(
            [sys.executable, "-c", asked],
            env={
                "HERMES_HOME": str(tmp_path),
                "HERMES_MODEL": "scripted",
                "HERMES_CUSTOM_BASE_URL": model.base_url,
            },
            stderr=subprocess.STDOUT,
        )
    assert "tool said: 1" in re.sub(r" ?\[[^]]*\]", "", done.stdout.decode())
