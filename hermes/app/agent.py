"""Builds one hosted agent from the settings of its profile."""

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
from hermes.boundary.execution.local import LocalBackend
from hermes.boundary.search import search as search_file
from hermes.control.messenger import ChatMessenger
from hermes.core.agent import AgentLoop, recall_nothing
from hermes.core.approvals import ApprovalGate
from hermes.core.auxiliary import Auxiliary
from hermes.core.compaction import Compactor
from hermes.core.flush import flush
from hermes.core.memory.local import LocalMemory
from hermes.core.memory.notes import as_prompt
from hermes.core.models.attachments import (
    ReadMedia,
    check_attachments,
    no_media,
    suitable,
)
from hermes.core.models.catalog import LOCAL
from hermes.core.models.client import ModelClient
from hermes.core.models.fallback import Fallback
from hermes.core.models.local import local_models
from hermes.core.models.markers import EscapedMarkers
from hermes.core.models.offers import OfferedModels
from hermes.core.models.resolver import ConfiguredModels
from hermes.core.models.retry import Retrying
from hermes.core.prompt import PromptWriter
from hermes.core.tools.call import ToolRuntime
from hermes.core.tools.clarify import clarify_tool
from hermes.core.tools.files import file_tools
from hermes.core.tools.memory import memory_tool
from hermes.core.tools.registry import Registry
from hermes.core.tools.results import ResultFilter
from hermes.core.tools.send_message import send_message
from hermes.core.tools.session_search import session_search_tool
from hermes.core.tools.terminal import terminal_tools
from hermes.core.tools.todo import delete_todos, todo_tool
from hermes.core.tools.web_extract import web_extract_tool
from hermes.core.tools.web_search import choose_search, web_search_tool
from hermes.settings import Settings
from hermes.settings.network import network_policy
from hermes.state.memory import Memory, NoteLimits
from hermes.state.paths import Home
from hermes.state.spill import Spill
from hermes.text.redact import redact_known
from hermes.text.redact import redact_tokens as redact_secrets
from hermes.types.agents import HostedAgent
from hermes.types.errors import ConfigError
from hermes.types.execution import ExecutionBackend
from hermes.types.identity import AgentId
from hermes.types.messages import Asked, AssistantMessage, Message, UserMessage
from hermes.types.models import ModelProvider, ModelRequest
from hermes.types.profile import AgentProfile, BusyMode, ModelChoice
from hermes.types.protocols import Emit, MemoryProvider
from hermes.types.store import Store
from hermes.types.tools import AnyTool
from hermes.types.turns import PromptPart, Turn
from hermes.types.value import Value

TITLE = "Name this conversation in three to six words, in its language. Write the name only."
TITLE_SOURCE_CHARS = 1000
"""The model that writes a title gets at most this many characters of the question, and at most this
many characters of the answer."""

LONGEST_PAUSE, LONGEST_PAUSE_WITH_FALLBACK = 60.0, 10.0
"""The longest pauses in seconds that a provider can request before the next attempt. If a provider
requests a longer pause, the call fails at once. The second limit applies if a fallback model is
configured."""


class GatewayParts(Value):
    """The parts of the gateway that the tools of all agents use."""

    read_media: ReadMedia = no_media
    messenger: ChatMessenger | None = None
    """Sends the messages of tools to chats; None if tools can't send messages."""


NO_PARTS = GatewayParts()


class AgentBuilder:
    """Builds an agent. Holds the objects that its tools, its prompt and its memory share."""

    def __init__(
        self,
        id: AgentId,
        settings: Settings,
        models: ConfiguredModels,
        store: Store,
        session: aiohttp.ClientSession,
        model: ModelProvider,
        backend: ExecutionBackend | None,
        parts: GatewayParts = NO_PARTS,
    ) -> None:
        """If `backend` is None, tools can access files but can't run commands."""
        self._parts = parts
        limits = NoteLimits(memory=settings.memory.memory_chars, user=settings.memory.user_chars)
        self.profile = profile_of(settings, models, id)
        self._settings = settings
        self._store = store
        self._session = session
        self._model = EscapedMarkers(model)
        self._commands = backend is not None
        self.backend: ExecutionBackend = backend or LocalBackend(settings.home.processes, None)
        self._models = models
        self._auxiliary = Auxiliary(self._model, lambda main: self._models.auxiliary() or main)
        self._memory = Memory(limits)
        secrets = tuple(settings.secrets())
        self._redact = partial(redact_secrets, secrets=secrets)
        self._longest_secret = max(map(len, secrets), default=0)
        self._spill = Spill(settings.files.spill)
        self._provider: MemoryProvider | None = None
        if settings.memory.provider == "local":
            self._provider = LocalMemory(store)

    def build(self, tools: Sequence[AnyTool]) -> HostedAgent:
        """Returns the agent with these tools. Raises ConfigError if its settings name an unknown
        toolset."""
        return HostedAgent(
            profile=self.profile,
            runner=self._runner(tools),
            backend=self.backend,
            end_session=self._end_session,
            write_title=self._write_title if self._models.has_auxiliary else None,
            check_request=self._check_request,
            find_model=partial(find_model, self._models),
            idle_seconds=self._settings.terminal.idle_seconds,
        )

    def runs_commands_here(self, tools: Sequence[AnyTool]) -> bool:
        """Returns whether a conversation of the agent can run commands on this machine without a
        sandbox."""
        return self.backend.isolation == "none" and self.offers_commands(tools)

    def offers_commands(self, tools: Sequence[AnyTool]) -> bool:
        """Returns whether a conversation of the agent has the tool that runs commands."""
        settings, registry = self._settings, Registry(tools)
        own = [one.toolsets for one in settings.platforms.values() if one.toolsets is not None]
        return any(
            registry.offers("terminal", allowed, settings.agent.disabled_toolsets)
            for allowed in (settings.agent.toolsets, *own)
        )

    def _runner(self, tools: Sequence[AnyTool]) -> AgentLoop:
        settings, compression = self._settings, self._settings.compression
        registry = Registry(tools)
        registry.check("agent.toolsets", settings.agent.toolsets)
        registry.check("agent.disabled_toolsets", settings.agent.disabled_toolsets)
        registry.check("access.admin_tools", settings.access.admin_tools)
        registry.check("access.owner_tools", settings.access.owner_tools)
        for name, platform in settings.platforms.items():
            registry.check(f"platforms.{name}.toolsets", platform.toolsets or ())
        return AgentLoop(
            self._model,
            registry,
            partial(choose_model, self._models),
            self.prompt_writer(),
            Compactor(self._auxiliary),
            ToolRuntime(
                self.backend,
                ResultFilter(self._spill, redact=self._redact, longest_secret=self._longest_secret),
                self._parts.read_media,
                self._parts.messenger.for_call if self._parts.messenger else None,
                ApprovalGate(
                    self.profile.approvals,
                    self._store,
                    isolated=self.backend.isolation != "none",
                    redact=partial(redact_known, secrets=tuple(settings.secrets())),
                ),
            ),
            threshold=compression.threshold if compression.enabled else None,
            recall=self._provider.recall if self._provider else recall_nothing,
        )

    def prompt_writer(self) -> PromptWriter:
        name = self._settings.timezone
        return PromptWriter(
            self._read_notes, redact=self._redact, zone=ZoneInfo(name) if name else None
        )

    def tools(self) -> tuple[AnyTool, ...]:
        """Returns the built-in tools that the settings allow, in the order in which the model sees
        them."""
        settings, web = self._settings, self._settings.web
        found = [*file_tools(self._spill, search_file)]
        if self._commands:
            isolation = self.backend.isolation
            offline = isolation != "none" and network_policy(settings.terminal).mode == "none"
            found += terminal_tools(settings.terminal.timeout, isolation, offline=offline)
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
        found += [todo_tool(settings.files.todos), clarify_tool(settings.agent.clarify_timeout)]
        if self._parts.messenger and self._parts.messenger.directory.grammar.accounts:
            found.append(send_message)
        return tuple(found)

    def _check_request(self, asked: Asked) -> None:
        """Raises NotAccepted if the model does not accept the attachments of the request."""
        if any(isinstance(one, UserMessage) and one.attachments for one in asked.messages):
            choice = choose_model(self._models, self.profile, asked.model)
            check_attachments(choice, self._models.wires, asked.messages)

    async def _end_session(self, ended: Turn, ended_at: float) -> None:
        """Writes notes about a conversation that has ended, and deletes its list of tasks."""
        settings = self._settings
        drop = partial(delete_todos, settings.files.todos, str(ended.session), before=ended_at)
        await anyio.to_thread.run_sync(drop)
        choice = self._models.auxiliary() or self._models.main()
        if settings.memory.enabled and choice is not None:
            await flush(ended, self._model, choice, self._memory)
        if self._provider:
            await self._provider.on_session_end(ended)

    async def _write_title(self, turn: Turn, answer: str) -> str:
        """Returns a title for the conversation, or "" if the auxiliary model can't be used."""
        main = turn.profile.model
        if main is None or self._models.auxiliary() is None:
            return ""
        asked = next((m.described for m in turn.history if isinstance(m, UserMessage)), "")
        text = f"{asked[:TITLE_SOURCE_CHARS]}\n\n{answer[:TITLE_SOURCE_CHARS]}"
        return await self._auxiliary.write(main, TITLE, text, 30, lambda event: None)

    async def _read_notes(self, turn: Turn) -> Sequence[PromptPart]:
        if not self._settings.memory.enabled:
            return ()
        return as_prompt(self._memory.read(turn))


@asynccontextmanager
async def open_model(
    settings: Settings,
    models: ConfiguredModels,
    session: aiohttp.ClientSession,
    read_media: ReadMedia,
) -> AsyncIterator[ModelProvider]:
    """Yields a provider that calls the configured models, with retries and fallbacks."""
    client = ModelClient(session, models.wires, read_media=read_media)
    environ = settings.sources.environ
    async with local_models(settings.home.models, client, environ) as local:
        others = models.fallbacks()
        patient = Retrying(
            _LocalOrRemote(client, local),
            attempts=settings.agent.api_max_retries + 1,
            longest_pause=LONGEST_PAUSE_WITH_FALLBACK if others else LONGEST_PAUSE,
        )
        yield Fallback(patient, partial(suitable, others, models.wires)) if others else patient


class _LocalOrRemote:
    """Calls a model on this machine or over HTTP, depending on its provider."""

    def __init__(self, client: ModelProvider, local: ModelProvider) -> None:
        self._client = client
        self._local = local

    async def complete(self, request: ModelRequest, emit: Emit) -> AssistantMessage:
        place = self._local if request.choice.provider == LOCAL else self._client
        return await place.complete(request, emit)


def profile_of(settings: Settings, models: ConfiguredModels, agent: AgentId) -> AgentProfile:
    home, own = settings.home, settings.agent
    soul = home.soul.read_text("utf-8") if home.soul.exists() else ""
    return AgentProfile(
        id=agent,
        home=str(settings.files.root),
        workspace=str(settings.workspace),
        model=models.main(),
        budget=own.budget,
        soul=soul.strip(),
        instructions=own.system_prompt.strip(),
        personalities=own.personalities,
        context_chars=own.context_file_chars,
        ephemeral=own.ephemeral_prompt,
        channel_prompts={
            f"{platform}:{chat}": text
            for platform, one in settings.platforms.items()
            for chat, text in one.channel_prompts.items()
        },
        busy_mode=settings.display.busy_input_mode,
        chat_busy_modes={
            f"{platform}:{chat}": msgspec.convert(mode, BusyMode)
            for platform, one in settings.platforms.items()
            for chat, mode in one.busy_input_modes.items()
        },
        approvals=settings.approvals.policy(settings.terminal.backend),
        prefill=prefill_of(home, own.prefill_messages_file),
        toolsets=own.toolsets,
        platform_toolsets={
            name: one.toolsets
            for name, one in settings.platforms.items()
            if one.toolsets is not None
        },
        disabled_toolsets=own.disabled_toolsets,
        admin_tools=settings.access.admin_tools,
        owner_tools=settings.access.owner_tools,
    )


class _Prefilled(msgspec.Struct):
    role: Literal["user", "assistant"]
    content: str


def prefill_of(home: Home, file: str) -> tuple[Message, ...]:
    """Reads the messages that the model gets in every conversation, before the messages of the
    conversation itself."""
    if not file:
        return ()
    path = home.root / Path(file).expanduser()
    try:
        said = msgspec.json.decode(path.read_bytes(), type=list[_Prefilled])
    except (OSError, msgspec.DecodeError) as error:
        raise ConfigError(
            f"agent.prefill_messages_file: {path} is not a JSON list of"
            f' {{"role": "user" or "assistant", "content": "…"}}: {error}'
        ) from error
    return tuple(
        UserMessage(text=one.content) if one.role == "user" else AssistantMessage(text=one.content)
        for one in said
    )


def choose_model(models: ConfiguredModels, profile: AgentProfile, named: str | None) -> ModelChoice:
    """Returns the model that a request names, or the profile's model if the request names no
    model."""
    if named is None and profile.model is not None:
        return profile.model
    if named is None:
        raise ConfigError(models.advice)
    return models.requested(named)


def find_model(models: ConfiguredModels, name: str) -> ModelChoice:
    """Finds a model by the name that a person gave. An empty name means the main model. Raises
    ConfigError if the model can't be used.

    If the name is the name of a model file, the file must be in the models folder. Model names in
    API requests have the same restriction.
    """
    main = models.main()
    if name:
        offers = OfferedModels(models)
        meant = offers.read_name(name)
        if provider := meant.provider or (main.provider if main else ""):
            # `requested` is called first, because it refuses files outside of the models folder.
            # The errors of the later checks would show whether such a file exists.
            choice = models.requested(f"{provider}/{meant.model}")
            if reason := offers.why_unlikely(meant):
                raise ConfigError(reason)
            return choice
    if main is None:
        raise ConfigError(models.advice)
    return main
