"""What the agent is made of: its model, its tools, its memory, as the settings say."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Literal
from zoneinfo import ZoneInfo

import aiohttp
import anyio.to_thread
import msgspec

from hermes.boundary.egress import Egress
from hermes.boundary.execution.environment import child_environment
from hermes.boundary.execution.local import LOCAL_BACKEND, LocalBackend
from hermes.boundary.search import search as search_file
from hermes.core.agent import Agent, recall_nothing
from hermes.core.auxiliary import Auxiliary
from hermes.core.compaction import Compactor
from hermes.core.flush import flush
from hermes.core.memory.local import LocalMemory
from hermes.core.memory.notes import as_prompt
from hermes.core.models.catalog import LOCAL
from hermes.core.models.fallback import Fallback
from hermes.core.models.local import local_models
from hermes.core.models.retry import Retrying
from hermes.core.models.wires import Wires
from hermes.core.prompt import Prompter
from hermes.core.tools.call import ToolRuntime
from hermes.core.tools.clarify import clarify_tool
from hermes.core.tools.files import file_tools
from hermes.core.tools.memory import memory_tool
from hermes.core.tools.registry import Registry
from hermes.core.tools.results import Results
from hermes.core.tools.session_search import session_search_tool
from hermes.core.tools.terminal import terminal_tools
from hermes.core.tools.todo import forget_todos, todo_tool
from hermes.core.tools.web_extract import web_extract_tool
from hermes.core.tools.web_search import choose_search, web_search_tool
from hermes.settings import Settings
from hermes.settings.models import (
    NO_MODEL,
    resolve_auxiliary,
    resolve_fallbacks,
    resolve_model,
    resolve_named,
)
from hermes.state.memory import Limits, Memory
from hermes.state.paths import Home
from hermes.state.spill import Spill
from hermes.text.redact import hide as hide_secrets
from hermes.types.errors import ConfigError
from hermes.types.execution import BackendOptions, ExecutionBackend
from hermes.types.identity import AgentId
from hermes.types.messages import AssistantMessage, Message, UserMessage
from hermes.types.profile import AgentProfile, ModelChoice
from hermes.types.protocols import Emit, MemoryProvider, ModelProvider, ModelRequest, Store
from hermes.types.tools import AnyTool
from hermes.types.turns import PromptPart, Turn

TITLE = "Name this conversation in three to six words, in its language. Write the name only."
TITLED = 1000
"""Characters of a question and of its answer that it is named by."""

BACKENDS = {manifest.name: manifest for manifest in (LOCAL_BACKEND,)}
PATIENT, HURRIED = 60.0, 10.0
"""Seconds that a provider's pause may take: fewer where another model can be asked."""


class Equipment:
    """Puts an agent together, and knows what to do when a conversation of it ends."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        session: aiohttp.ClientSession,
        model: ModelProvider,
        backend: ExecutionBackend | None = None,
    ) -> None:
        limits = Limits(memory=settings.memory.memory_chars, user=settings.memory.user_chars)
        self._settings = settings
        self._store = store
        self._session = session
        self._model = model
        self.backend = backend or backend_of(settings)
        self._auxiliary = Auxiliary(model, partial(_assistant, settings))
        self._memory = Memory(limits)
        self._hide = partial(hide_secrets, secrets=settings.secrets())
        self._spill = Spill(settings.home.spill)
        self._provider: MemoryProvider | None = None
        if settings.memory.provider == "local":
            self._provider = LocalMemory(store)

    def agent(self, tools: Sequence[AnyTool]) -> Agent:
        settings, compression = self._settings, self._settings.compression
        registry = Registry(tools)
        registry.check("agent.toolsets", settings.agent.toolsets)
        registry.check("agent.disabled_toolsets", settings.agent.disabled_toolsets)
        for name, platform in settings.platforms.items():
            registry.check(f"platforms.{name}.toolsets", platform.toolsets or ())
        return Agent(
            self._model,
            registry,
            partial(choose_model, settings),
            self.prompter(),
            Compactor(self._auxiliary),
            ToolRuntime(self.backend, Results(self._spill, redact=self._hide)),
            threshold=compression.threshold if compression.enabled else None,
            recall=self._provider.recall if self._provider else recall_nothing,
        )

    def prompter(self) -> Prompter:
        name = self._settings.timezone
        return Prompter(self._remembered, hide=self._hide, zone=ZoneInfo(name) if name else None)

    def tools(self) -> tuple[AnyTool, ...]:
        """All that the settings allow, in the order in which the model is told of them."""
        settings, home, web = self._settings, self._settings.home, self._settings.web
        found = [*file_tools(self._spill, search_file)]
        if settings.terminal.backend in BACKENDS:
            found += terminal_tools(settings.terminal.timeout, self.backend.isolation)
        search = choose_search(
            self._session,
            kind=web.search,
            searxng_url=web.searxng_url,
            brave_key=web.brave_key,
            tavily_key=web.tavily_key,
        )
        found += [web_search_tool(search)] if search else []
        found.append(web_extract_tool(Egress().fetch))
        if settings.memory.enabled:
            found.append(memory_tool(self._memory))
        found += self._provider.tools() if self._provider else [session_search_tool(self._store)]
        found += [todo_tool(home.todos), clarify_tool(settings.agent.clarify_timeout)]
        return tuple(found)

    async def end_session(self, ended: Turn, ended_at: float) -> None:
        """Makes notes of a conversation that is over, and drops its list of tasks."""
        settings = self._settings
        drop = partial(forget_todos, settings.home.todos, str(ended.session), before=ended_at)
        await anyio.to_thread.run_sync(drop)
        choice = resolve_auxiliary(settings) or resolve_model(settings)
        if settings.memory.enabled and choice is not None:
            await flush(ended, self._model, choice, self._memory)
        if self._provider:
            await self._provider.on_session_end(ended)

    async def write_title(self, turn: Turn, answer: str) -> str:
        """A name for the conversation, where there is a model for such work."""
        settings, main = self._settings, turn.profile.model
        if main is None or resolve_auxiliary(settings) is None:
            return ""
        asked = next((m.text for m in turn.history if isinstance(m, UserMessage)), "")
        text = f"{asked[:TITLED]}\n\n{answer[:TITLED]}"
        return await self._auxiliary.write(main, TITLE, text, 30, lambda event: None)

    async def _remembered(self, turn: Turn) -> Sequence[PromptPart]:
        if not self._settings.memory.enabled:
            return ()
        return as_prompt(self._memory.read(turn))


@asynccontextmanager
async def opened_model(
    settings: Settings, session: aiohttp.ClientSession
) -> AsyncIterator[ModelProvider]:
    """Every model that the settings name, asked patiently."""
    wires = Wires(session)
    environ = settings.sources.environ
    async with local_models(settings.home.models, wires, environ) as local:
        others = resolve_fallbacks(settings)
        patient = Retrying(
            _Placed(wires, local),
            attempts=settings.agent.api_max_retries + 1,
            patience=HURRIED if others else PATIENT,
        )
        yield Fallback(patient, lambda choice: others)


class _Placed:
    """Asks a model of this machine, or one behind an address."""

    def __init__(self, wires: ModelProvider, local: ModelProvider) -> None:
        self._wires = wires
        self._local = local

    async def complete(self, request: ModelRequest, emit: Emit) -> AssistantMessage:
        place = self._local if request.choice.provider == LOCAL else self._wires
        return await place.complete(request, emit)


def backend_of(settings: Settings) -> ExecutionBackend:
    """The machine that tools act on. Without a configured backend they can use files only."""
    terminal, processes = settings.terminal, settings.home.processes
    chosen = BACKENDS.get(terminal.backend)
    if chosen is None:
        return LocalBackend(processes, None)
    environment = child_environment(settings.sources.environ, terminal.env_passthrough)
    return chosen.make(BackendOptions(processes=processes, environment=environment))


def profile_of(settings: Settings, agent: AgentId) -> AgentProfile:
    home, own = settings.home, settings.agent
    soul = home.soul.read_text("utf-8") if home.soul.exists() else ""
    return AgentProfile(
        id=agent,
        home=str(home.root),
        workspace=str(settings.workspace),
        model=resolve_model(settings),
        budget=own.budget,
        soul=soul.strip(),
        instructions=own.system_prompt.strip(),
        context_chars=own.context_file_chars,
        ephemeral=own.ephemeral_prompt,
        channel_prompts={
            f"{platform}:{chat}": text
            for platform, one in settings.platforms.items()
            for chat, text in one.channel_prompts.items()
        },
        prefill=prefill_of(home, own.prefill_messages_file),
        toolsets=own.toolsets,
        platform_toolsets={
            name: one.toolsets
            for name, one in settings.platforms.items()
            if one.toolsets is not None
        },
        disabled_toolsets=own.disabled_toolsets,
    )


class _Prefilled(msgspec.Struct):
    role: Literal["user", "assistant"]
    content: str


def prefill_of(home: Home, file: str) -> tuple[Message, ...]:
    """The messages that stand before every conversation."""
    if not file:
        return ()
    path = home.root / Path(file).expanduser()
    try:
        said = msgspec.json.decode(path.read_bytes(), type=list[_Prefilled])
    except (OSError, msgspec.DecodeError) as error:
        raise ConfigError(
            f"agent.prefill_messages_file: {path} is no JSON list of"
            f' {{"role": "user" or "assistant", "content": "…"}}: {error}'
        ) from error
    return tuple(
        UserMessage(text=one.content) if one.role == "user" else AssistantMessage(text=one.content)
        for one in said
    )


def choose_model(settings: Settings, profile: AgentProfile, named: str | None) -> ModelChoice:
    """The profile's model, or the `provider/model` that a request names."""
    if named is not None:
        return _requested(settings, named)
    if profile.model is None:
        raise ConfigError(NO_MODEL)
    return profile.model


def _requested(settings: Settings, named: str) -> ModelChoice:
    choice = resolve_named(settings, named)
    # A request may name what the operator put there, and no other file of this machine.
    if choice.provider == LOCAL and Path(choice.model).name != choice.model:
        raise ConfigError(f"{named!r} is not a model in {settings.home.models}")
    return choice


def _assistant(settings: Settings, main: ModelChoice) -> ModelChoice:
    return resolve_auxiliary(settings) or main
