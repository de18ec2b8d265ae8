"""The settings determine the size of the prompt and the list of tools."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from msgspec.structs import replace

from hermes.app.agent import AgentBuilder, choose_model, prefill_of, profile_of
from hermes.app.backends import configured_backend
from hermes.app.stores import home_store
from hermes.boundary.execution.local import LOCAL_BACKEND
from hermes.control.routing import DEFAULT_AGENT
from hermes.core.models.client import ModelClient
from hermes.core.tools.registry import Registry
from hermes.core.tools.schema import tools_json
from hermes.settings import Settings, load
from hermes.settings.sections import (
    AgentSettings,
    CompressionSettings,
    MemorySettings,
    ModelSettings,
    PlatformSettings,
    WebSettings,
)
from hermes.settings.terminal import TerminalSettings
from hermes.state.paths import Home
from hermes.testing.configured import models_of
from hermes.testing.scripted import ScriptedModel, says
from hermes.testing.turns import CHOICE, PRIVATE, Notebook, a_turn
from hermes.types.errors import ConfigError
from hermes.types.identity import OWNER
from hermes.types.messages import AssistantMessage, UserMessage
from hermes.types.profile import AgentProfile
from hermes.types.turns import Completed

MOST = 12_000
"""The largest number of characters that system text and tools may add to a one-line message."""
EVERYTHING = [
    *("read_file", "write_file", "patch", "search_files", "terminal", "process", "web_search"),
    *("web_extract", "memory", "session_search", "todo", "clarify"),
]


def settings(home: Path, **sections: object) -> Settings:
    everything = Settings(
        home=Home(root=home),
        workspace=home / "workspace",
        model=ModelSettings(default="m", base_url="http://127.0.0.1:9/v1"),
        terminal=TerminalSettings(backend="local"),
        web=WebSettings(searxng_url="http://127.0.0.1:9"),
    )
    return replace(everything, **sections)


@asynccontextmanager
async def builder_of(settings: Settings) -> AsyncIterator[AgentBuilder]:
    async with home_store(settings) as store, aiohttp.ClientSession() as session:
        models = models_of(settings)
        client = ModelClient(session, models.wires)
        backend = configured_backend(settings, [LOCAL_BACKEND])
        yield AgentBuilder(DEFAULT_AGENT, settings, models, store, session, client, backend)


async def names(settings: Settings, platform: str = "p") -> list[str]:
    async with builder_of(settings) as builder:
        turn = a_turn(source=replace(PRIVATE, platform=platform))
        turn = replace(turn, profile=profile_of(settings, models_of(settings), DEFAULT_AGENT))
        return list(Registry(builder.tools()).for_turn(turn))


async def test_the_default_prompt_is_short(tmp_path: Path) -> None:
    """The test contains the expected size of every part of the prompt, so it fails if a part
    becomes longer."""
    chosen = settings(tmp_path)
    async with builder_of(chosen) as builder:
        tools = {tool.name: tool for tool in builder.tools()}
        turn = a_turn(source=replace(PRIVATE, platform="telegram"))
        turn = replace(turn, profile=profile_of(chosen, models_of(chosen), DEFAULT_AGENT))
        prompt = await builder.prompt_writer().prompt(turn, CHOICE, tools)
    sizes = {part.name: len(part.text) for part in prompt.parts}
    sizes |= {f"tool {name}": len(tools_json((tool,))) for name, tool in tools.items()}
    assert list(sizes) == [
        "identity",
        "place",
        "workspace",
        "time",
        *(f"tool {name}" for name in EVERYTHING),
    ]
    assert sum(sizes.values()) <= MOST, sizes
    assert max(sizes.values()) <= 1500, sizes


async def test_the_prompt_stays_short_even_with_a_full_memory_and_a_persona(tmp_path: Path) -> None:
    chosen = settings(tmp_path)
    for name, size in (("MEMORY.md", 2200), ("USER.md", 1375)):
        path = chosen.home.memories / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x" * (size - 1))
    async with builder_of(chosen) as builder:
        tools = {tool.name: tool for tool in builder.tools()}
        turn = replace(
            a_turn(person=OWNER), profile=profile_of(chosen, models_of(chosen), DEFAULT_AGENT)
        )
        prompt = await builder.prompt_writer().prompt(turn, CHOICE, tools)
    assert {"memory", "user"} <= {part.name for part in prompt.parts}
    assert len(prompt.text) + prompt.tools <= MOST


async def test_commands_do_not_run_unless_the_settings_allow_it(tmp_path: Path) -> None:
    closed = await names(settings(tmp_path, terminal=TerminalSettings(backend="none")))
    assert not {"terminal", "process"} & set(closed)
    assert "terminal" in await names(settings(tmp_path))


async def test_tools_that_are_not_configured_are_not_offered(tmp_path: Path) -> None:
    assert "web_search" not in await names(settings(tmp_path, web=WebSettings()))
    forgetful = settings(tmp_path, memory=MemorySettings(enabled=False))
    assert "memory" not in await names(forgetful)


@pytest.mark.parametrize("provider", ["", "local"])
async def test_earlier_conversations_can_be_searched_with_and_without_a_memory_provider(
    tmp_path: Path, provider: str
) -> None:
    memory = MemorySettings(provider="local" if provider else "")
    assert (await names(settings(tmp_path, memory=memory))).count("session_search") == 1


async def test_toolsets_can_name_a_set_or_a_single_tool(tmp_path: Path) -> None:
    agent = AgentSettings(toolsets=("safe", "read_file"), disabled_toolsets=("clarify",))
    found = await names(settings(tmp_path, agent=agent))
    assert found == ["read_file", "web_search", "web_extract", "todo"]
    assert await names(settings(tmp_path, agent=AgentSettings(toolsets=("none",)))) == []


async def test_a_platform_has_toolsets_of_its_own(tmp_path: Path) -> None:
    chosen = settings(tmp_path, platforms={"telegram": PlatformSettings(toolsets=("todo",))})
    assert await names(chosen, "telegram") == ["todo"]
    assert await names(chosen, "discord") == EVERYTHING


async def test_an_empty_list_of_toolsets_leaves_a_platform_without_tools(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("platforms:\n  telegram:\n    toolsets: []\n")
    chosen = settings(tmp_path, platforms=load(tmp_path, {}).platforms)
    assert await names(chosen, "telegram") == []
    assert await names(chosen, "discord") == EVERYTHING


@pytest.mark.parametrize(
    "where", ["agent.toolsets", "agent.disabled_toolsets", "telegram.toolsets"]
)
async def test_the_error_for_an_unknown_toolset_lists_the_known_toolsets(
    tmp_path: Path, where: str
) -> None:
    agent, platform = AgentSettings(), PlatformSettings()
    match where:
        case "agent.toolsets":
            agent = AgentSettings(toolsets=("nonsense",))
        case "agent.disabled_toolsets":
            agent = AgentSettings(disabled_toolsets=("nonsense",))
        case _:
            platform = PlatformSettings(toolsets=("todo", "nonsense"))
    async with builder_of(
        settings(tmp_path, agent=agent, platforms={"telegram": platform})
    ) as made:
        with pytest.raises(ConfigError, match=f"{where}: 'nonsense' .* terminal"):
            made.build(made.tools())


def test_prefilled_messages_are_read_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text(
        '[{"role": "user", "content": "ping"}, {"role": "assistant", "content": "pong"}]'
    )
    home = Home(root=tmp_path)
    assert prefill_of(home, "p.json") == (UserMessage(text="ping"), AssistantMessage(text="pong"))
    assert prefill_of(home, "") == ()
    (tmp_path / "p.json").write_text('[{"role": "system", "content": "x"}]')
    with pytest.raises(ConfigError, match="prefill_messages_file"):
        prefill_of(home, "p.json")


@pytest.mark.parametrize(
    "named",
    ["local//etc/passwd", "local/../config.yaml", "local//tmp/x.gguf", "local/~/x.gguf"],
)
def test_a_request_can_not_use_any_model_file_of_the_machine(tmp_path: Path, named: str) -> None:
    with pytest.raises(ConfigError, match="is not a model in"):
        choose_model(models_of(settings(tmp_path)), AgentProfile(id=DEFAULT_AGENT), named)


def test_a_request_can_use_a_model_file_that_the_operator_installed(tmp_path: Path) -> None:
    choice = choose_model(
        models_of(settings(tmp_path)), AgentProfile(id=DEFAULT_AGENT), "local/qwen.gguf"
    )
    assert (choice.model, choice.tools) == ("qwen.gguf", True)
    assert not choose_model(
        models_of(settings(tmp_path)), AgentProfile(id=DEFAULT_AGENT), "local"
    ).tools


async def test_without_compression_a_long_conversation_is_sent_unchanged(
    tmp_path: Path,
) -> None:
    off = settings(tmp_path, compression=CompressionSettings(enabled=False))
    model = ScriptedModel([says("hello")])
    turn = a_turn(*[UserMessage(text="word " * 200_000)] * 3)
    async with home_store(off) as store, aiohttp.ClientSession() as session:
        builder = AgentBuilder(DEFAULT_AGENT, off, models_of(off), store, session, model, None)
        agent = builder.build(builder.tools()).runner
        outcome = await agent.run(turn, lambda event: None, Notebook())
    assert isinstance(outcome, Completed)
    assert model.requests[0].messages == turn.history
