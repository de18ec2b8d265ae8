"""A Python program can run an agent, as in the guide."""

import ast
import re
import subprocess
import sys
from contextlib import aclosing
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from hermes import Agent, TurnFailed, tool
from hermes.app.application import Application
from hermes.app.gateway import THREADS
from hermes.settings import load
from hermes.testing.model import FakeModel
from hermes.types.errors import ConfigError
from hermes.types.events import ToolFinished

GUIDE = Path(__file__).parents[1] / "docs" / "guides" / "embed-in-python.md"


def double(number: int) -> str:
    """Double a number."""
    return str(number * 2)


def halve(number: int) -> str:
    """Halve a number."""
    if number % 2:
        raise ValueError(f"{number} is odd")
    return str(number // 2)


def an_agent(home: Path, model: FakeModel, *tools: str) -> Agent:
    return Agent(
        home=home,
        base_url=model.base_url,
        model="scripted",
        tools=[tool(double), tool(halve)],
        toolsets=tools,
    )


async def test_an_answer_uses_the_program_s_own_tool(tmp_path: Path) -> None:
    async with FakeModel() as model, an_agent(tmp_path, model) as agent:
        answer = await agent.ask('please tool:double{"number":21}')
        assert "tool said: 42" in re.sub(r" ?\[[^]]*\]", "", answer)
        assert [one.function.name for one in model.requests[0].tools or ()] == ["double", "halve"]


async def test_toolsets_add_built_in_tools(tmp_path: Path) -> None:
    async with FakeModel() as model, an_agent(tmp_path, model, "files") as agent:
        await agent.ask("hi")
        names = {one.function.name for one in model.requests[0].tools or ()}
        assert {"double", "read_file"} <= names


async def test_text_and_events_are_streamed(tmp_path: Path) -> None:
    async with FakeModel() as model, an_agent(tmp_path, model) as agent:
        pieces = [piece async for piece in agent.stream("tokens:20 go")]
        assert len("".join(pieces).split()) == 20
        events = [event async for event in agent.events('tool:double{"number":2}')]
        assert any(isinstance(event, ToolFinished) for event in events)


async def test_a_named_conversation_continues_in_the_next_run(tmp_path: Path) -> None:
    async with FakeModel() as model:
        for text in ("one", "two"):
            async with an_agent(tmp_path, model) as agent:
                await agent.ask(text, conversation="numbers")
        said = [message.content for message in model.requests[-1].messages]
        assert "one" in said
        assert "two" in said


async def test_each_run_without_a_name_begins_a_new_conversation(tmp_path: Path) -> None:
    async with FakeModel() as model:
        for texts in (("one", "two"), ("three", "four")):
            async with an_agent(tmp_path, model) as agent:
                for text in texts:
                    await agent.ask(text)
        said = [message.content for message in model.requests[-1].messages]
        assert "three" in said
        assert "four" in said
        assert "one" not in said
        assert "two" not in said


async def test_the_error_of_a_failed_turn_contains_the_reason(tmp_path: Path) -> None:
    async with FakeModel() as model, an_agent(tmp_path, model) as agent:
        with pytest.raises(TurnFailed, match="401") as asked:
            await agent.ask("status:401")
        with pytest.raises(TurnFailed, match="401") as streamed:
            _ = [piece async for piece in agent.stream("status:401")]
    for caught in (asked, streamed):
        assert (caught.value.code, caught.value.status) == ("auth_failed", 502)


async def test_a_refused_message_raises_an_error_instead_of_an_empty_answer(tmp_path: Path) -> None:
    async with FakeModel() as model, an_agent(tmp_path, model) as agent:
        with pytest.raises(TurnFailed, match="not valid text"):
            await agent.ask("half a character: \ud800")
        assert (await agent.ask("/status")).startswith("Idle")


@pytest.mark.parametrize(
    ("configured", "given", "sent"),
    [
        ("http://127.0.0.1:9/v1", "", ""),
        ("http://127.0.0.1:9/v1", "own-key", "own-key"),
        ("", "", "stored-key"),
    ],
)
@pytest.mark.parametrize("in_dotenv", [True, False])
async def test_the_key_of_another_address_is_not_sent(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    configured: str,
    given: str,
    sent: str,
    in_dotenv: bool,
) -> None:
    (tmp_path / "config.yaml").write_text(f"model: {{base_url: '{configured}'}}\n", "utf-8")
    if in_dotenv:
        (tmp_path / ".env").write_text("HERMES_CUSTOM_API_KEY=stored-key\n", "utf-8")
    else:
        monkeypatch.setenv("HERMES_CUSTOM_API_KEY", "stored-key")
    heard = bytearray()
    async with FakeModel() as model:
        model.listen = heard.extend
        async with Agent(
            home=tmp_path, base_url=model.base_url, model="scripted", api_key=given
        ) as agent:
            await agent.ask("hi")
    keys = set(re.findall(r"(?i)authorization: bearer (\S*)", heard.decode()))
    assert keys == ({sent} if sent else set())


async def test_an_agent_that_is_not_running_raises_an_error(tmp_path: Path) -> None:
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


async def test_an_unknown_toolset_is_a_configuration_error(tmp_path: Path) -> None:
    async with FakeModel() as model:
        with pytest.raises(ConfigError, match="'nope' is neither a toolset nor a tool"):
            async with an_agent(tmp_path, model, "nope"):
                pass


def test_the_error_for_a_function_that_is_not_a_tool_says_how_to_make_it_one(
    tmp_path: Path,
) -> None:
    with pytest.raises(ConfigError, match=r"not a tool: pass tool\(double\) instead"):
        Agent(home=tmp_path, tools=[double])  # type: ignore[list-item]


async def test_an_embedded_agent_does_not_limit_the_threads_of_its_program(tmp_path: Path) -> None:
    threads = anyio.to_thread.current_default_thread_limiter()
    before = threads.total_tokens
    async with FakeModel() as model, an_agent(tmp_path, model):
        assert threads.total_tokens == before
    Application().open_gateway(load(tmp_path, {}), terminal=True)
    assert threads.total_tokens == THREADS
    threads.total_tokens = before


async def test_the_model_gets_the_error_of_a_tool_that_raises(tmp_path: Path) -> None:
    async with FakeModel() as model, an_agent(tmp_path, model) as agent:
        answer = await agent.ask('tool:halve{"number":3}')
    assert "ValueError: 3 is odd" in re.sub(r" ?\[[^]]*\]", "", answer)


async def test_cancelling_the_caller_stops_the_turn(tmp_path: Path) -> None:
    async with FakeModel() as model, an_agent(tmp_path, model) as agent:
        with anyio.move_on_after(0.3) as limit:
            await agent.ask("slow delay:0.2 tokens:200", conversation="c")
        assert limit.cancelled_caught
        with anyio.fail_after(5):
            assert "quick" in await agent.ask("quick", conversation="c")
            async with aclosing(agent.stream("delay:0.2 tokens:200", conversation="c")) as pieces:
                await anext(pieces)
            assert "again" in await agent.ask("again", conversation="c")


async def test_after_a_lost_connection_ask_repeats_the_call_and_stream_raises_an_error(
    tmp_path: Path,
) -> None:
    async with FakeModel() as model, an_agent(tmp_path, model) as agent:
        pieces = agent.stream("one two cut-first:3", conversation="c")
        assert await anext(pieces)
        with pytest.raises(TurnFailed, match="cut in the middle"):
            _ = [piece async for piece in pieces]
        answer = await agent.ask("one two cut-first:4 three", conversation="d")
        assert answer.count("you said") == 1
