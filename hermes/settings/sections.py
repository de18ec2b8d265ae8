"""The sections of the configuration: every setting, with its default and its meaning."""

from typing import Annotated, Literal

import msgspec

from hermes.settings.schema import Also
from hermes.types.profile import Budget
from hermes.types.value import Value

Count = Annotated[int, msgspec.Meta(ge=0)]
Positive = Annotated[int, msgspec.Meta(ge=1)]
Seconds = Annotated[float, msgspec.Meta(gt=0)]
Dollars = Annotated[float, msgspec.Meta(ge=0)]

LARGE_BYTES = 1 << 30
"""Bytes. A larger database is copied less often."""


class ModelSettings(Value):
    default: Annotated[
        str,
        Also(
            env=("HERMES_MODEL", "HERMES_INFERENCE_MODEL", "HERMES_DEFAULT_MODEL"),
            keys=("model", "model.model"),
        ),
    ] = ""
    """The model that answers, as its provider names it; empty for the provider's default."""
    provider: Annotated[str, Also(env=("HERMES_INFERENCE_PROVIDER",))] = "auto"
    """The provider of the model; `auto` is the first provider whose key is set."""
    base_url: Annotated[str, Also(env=("HERMES_CUSTOM_BASE_URL",))] = ""
    """The address of any other endpoint, instead of a provider's own."""
    api_key: Annotated[str, Also(env=("HERMES_CUSTOM_API_KEY",), secret=True)] = ""
    """The key for `base_url`; a provider's own key is better kept in .env."""
    context_length: Positive | None = None
    """The context window of the model in tokens, if the provider does not report it."""
    max_tokens: Annotated[Positive | None, Also(env=("HERMES_MAX_TOKENS",))] = None
    """The longest answer in tokens; if it is empty, the provider decides."""
    wire: str = "auto"
    """The wire format of the endpoint; `auto` is that of the provider."""
    attachments: tuple[str, ...] | None = None
    """Kinds of files that the model accepts: `image`, `audio`, `file`; an empty list means none. If
    it is not set, the known facts about the model decide."""
    fallbacks: tuple[str, ...] = ()
    """Models that are called if this one can't answer, each as `provider/model`."""
    input_price: Dollars | None = None
    """Dollars per million tokens that the model reads, if the price is not known."""
    output_price: Dollars | None = None
    """Dollars per million tokens that the model writes, if the price is not known."""

    def __repr__(self) -> str:
        return f"ModelSettings(default={self.default!r}, provider={self.provider!r})"


class AuxiliarySettings(Value):
    provider: Annotated[str, Also(env=("HERMES_AUXILIARY_PROVIDER",))] = ""
    """The provider of the model for summaries and titles; empty for the main model."""
    model: Annotated[str, Also(env=("HERMES_AUXILIARY_MODEL",), keys=("auxiliary.default",))] = ""
    """The model for summaries and titles; empty for the default model of its provider."""
    base_url: Annotated[str, Also(env=("HERMES_AUXILIARY_BASE_URL",))] = ""
    """The address of another endpoint for summaries and titles."""
    api_key: Annotated[str, Also(env=("HERMES_AUXILIARY_API_KEY",), secret=True)] = ""
    """The key for `auxiliary.base_url`."""

    def __repr__(self) -> str:
        return f"AuxiliarySettings(provider={self.provider!r}, model={self.model!r})"


class ApiServerSettings(Value):
    enabled: Annotated[
        bool, Also(env=("API_SERVER_ENABLED",), keys=("platforms.api_server.enabled",))
    ] = True
    """Whether the gateway serves the HTTP API."""
    host: Annotated[
        str, Also(env=("API_SERVER_HOST",), keys=("platforms.api_server.extra.host",))
    ] = "127.0.0.1"
    """The address of the HTTP API. If other machines can reach it, you must set a key."""
    port: Annotated[
        int,
        msgspec.Meta(ge=0, le=65535),
        Also(env=("API_SERVER_PORT",), keys=("platforms.api_server.extra.port",)),
    ] = 8642
    """The port of the HTTP API; 0 for any free port."""
    key: Annotated[
        str,
        Also(env=("API_SERVER_KEY",), keys=("platforms.api_server.extra.key",), secret=True),
    ] = ""
    """The key of API clients, of 16 characters or more; if empty, the first start makes one."""
    model_name: Annotated[
        str,
        Also(env=("API_SERVER_MODEL_NAME",), keys=("platforms.api_server.extra.model_name",)),
    ] = "hermes-agent"
    """The name of the default agent in the list of models."""
    cors_origins: Annotated[
        tuple[str, ...],
        Also(env=("API_SERVER_CORS_ORIGINS",), keys=("platforms.api_server.extra.cors_origins",)),
    ] = ()
    """Origins of web pages that may call the API; `*` for all."""
    max_body_bytes: Annotated[int, msgspec.Meta(ge=1)] = 10_000_000
    """The largest body of a request, in bytes."""
    max_concurrent_runs: Annotated[
        Count, Also(keys=("gateway.api_server.max_concurrent_runs",))
    ] = 4096
    """The most requests that run at the same time; 0 for no limit."""

    def __repr__(self) -> str:
        return f"ApiServerSettings(enabled={self.enabled}, host={self.host!r}, port={self.port})"


class AgentSettings(Value):
    max_turns: Annotated[int, msgspec.Meta(ge=1), Also(env=("HERMES_MAX_ITERATIONS",))] = 90
    """The most model calls in one turn."""
    turn_timeout: Annotated[
        float,
        msgspec.Meta(ge=0),
        Also(env=("HERMES_AGENT_TIMEOUT",), keys=("agent.gateway_timeout",)),
    ] = 1800.0
    """Seconds that one turn may take; 0 for a week."""
    drain_seconds: Annotated[
        float,
        msgspec.Meta(ge=0),
        Also(env=("HERMES_RESTART_DRAIN_TIMEOUT",), keys=("agent.restart_drain_timeout",)),
    ] = 20.0
    """Seconds that running turns get to finish when the gateway stops."""
    api_max_retries: Count = 3
    """How often a failed model call is repeated."""
    system_prompt: str = ""
    """Instructions added to every conversation."""
    ephemeral_prompt: Annotated[str, Also(env=("HERMES_EPHEMERAL_SYSTEM_PROMPT",))] = ""
    """Instructions that are sent with every model call and never stored."""
    prefill_messages_file: Annotated[
        str, Also(env=("HERMES_PREFILL_MESSAGES_FILE",), keys=("prefill_messages_file",))
    ] = ""
    """A JSON file with messages that come before every conversation and are never stored."""
    context_file_chars: Annotated[Count, Also(keys=("context_file_max_chars",))] = 20_000
    """Characters of a context file (AGENTS.md …) that the model is shown; 0 for none."""
    toolsets: Annotated[tuple[str, ...], Also(keys=("toolsets",))] = ("default",)
    """The toolsets and tools that the agent may use, by name."""
    disabled_toolsets: tuple[str, ...] = ()
    """The toolsets and tools that the agent may not use, even if another setting allows them."""
    clarify_timeout: Seconds = 3600.0
    """Seconds that a question to a person stays open."""
    client_tool_timeout: Seconds = 600.0
    """Seconds that a turn waits for the results of an API client's own tools."""

    @property
    def budget(self) -> Budget:
        return Budget(
            steps=self.max_turns,
            seconds=self.turn_timeout or 7 * 86_400.0,
            client_seconds=self.client_tool_timeout,
        )


class StreamingSettings(Value):
    enabled: Annotated[bool, Also(keys=("gateway.streaming.enabled",))] = True
    """Whether an answer grows on the platform while it is written."""
    edit_interval: Annotated[
        float, msgspec.Meta(ge=0), Also(keys=("gateway.streaming.edit_interval",))
    ] = 0.8
    """Seconds between two edits of a message."""
    buffer_threshold: Annotated[Count, Also(keys=("gateway.streaming.buffer_threshold",))] = 24
    """The number of new characters after which a message is edited before the interval ends."""
    cursor: Annotated[str, Also(keys=("gateway.streaming.cursor",))] = " ▉"
    """A text at the end of an answer that is still being written."""
    first: Literal["text", "placeholder"] = "text"
    """The content of the first message: its text, or `…`, so that no text is ever shown twice."""


class AccessSettings(Value):
    allowed_users: Annotated[tuple[str, ...], Also(env=("GATEWAY_ALLOWED_USERS",))] = ()
    """Users who may talk to the agent, on every platform."""
    allow_all: Annotated[bool, Also(env=("GATEWAY_ALLOW_ALL_USERS",))] = False
    """Whether everybody may talk to the agent, on every platform."""


class PlatformSettings(Value):
    enabled: bool | None = None
    """Whether the platform is connected; empty connects it when its credentials are set."""
    allowed_users: Annotated[tuple[str, ...], Also(env=("{}_ALLOWED_USERS",))] = ()
    """Users who may talk to the agent on this platform."""
    allow_all: Annotated[bool, Also(env=("{}_ALLOW_ALL_USERS",))] = False
    """Whether everybody may talk to the agent on this platform."""
    toolsets: tuple[str, ...] | None = None
    """Toolsets and tools for this platform, instead of agent.toolsets; an empty list means none."""
    channel_prompts: dict[str, str] = msgspec.field(default_factory=dict)
    """Instructions for single chats, by the id of the chat; they are never stored."""


class DisplaySettings(Value):
    busy_input_mode: Annotated[
        Literal["queue", "steer", "interrupt"], Also(env=("HERMES_GATEWAY_BUSY_INPUT_MODE",))
    ] = "queue"
    """What happens to a message that arrives while the agent works; only `queue` works so far."""


class LoggingSettings(Value):
    level: Annotated[
        Literal["DEBUG", "INFO", "WARNING", "ERROR"], Also(env=("HERMES_LOG_LEVEL",))
    ] = "INFO"
    """The lowest level of messages in the log."""
    format: Annotated[Literal["text", "json"], Also(env=("HERMES_LOG_FORMAT",))] = "text"
    """The format of a line in the log: text or a JSON object."""
    max_size_mb: Annotated[float, msgspec.Meta(gt=0)] = 5.0
    """The size at which the log file is rotated, in megabytes."""
    backup_count: Count = 3
    """How many rotated log files are kept."""


class StoreSettings(Value):
    snapshot_minutes: Annotated[float, msgspec.Meta(gt=0)] = 5.0
    """Minutes between two snapshots of the database while it has at most 1 GB."""
    large_snapshot_minutes: Annotated[float, msgspec.Meta(gt=0)] = 60.0
    """Minutes between two snapshots of a larger database."""

    def snapshot_seconds(self, size: int) -> float:
        """Seconds between two snapshots of a database of so many bytes."""
        minutes = self.snapshot_minutes if size <= LARGE_BYTES else self.large_snapshot_minutes
        return minutes * 60


class RetentionSettings(Value):
    stateless_hours: Annotated[float, msgspec.Meta(ge=0)] = 24.0
    """Hours for which API requests without a session are kept."""
    inbox_days: Annotated[float, msgspec.Meta(ge=0)] = 30.0
    """Days for which answered messages are recognised, so that none is answered twice."""
    media_days: Annotated[float, msgspec.Meta(ge=0)] = 30.0
    """Days for which files of a session's messages are kept after their last use."""


class CompressionSettings(Value):
    enabled: bool = True
    """Whether the middle of a long conversation is summarised."""
    threshold: Annotated[float, msgspec.Meta(gt=0, le=0.95)] = 0.75
    """The share of the context window at which a conversation is summarised."""


class MemorySettings(Value):
    enabled: Annotated[bool, Also(keys=("memory.memory_enabled",))] = True
    """Whether the agent keeps notes in MEMORY.md and USER.md."""
    memory_chars: Annotated[Positive, Also(keys=("memory.memory_char_limit",))] = 2200
    """The most characters of a MEMORY.md."""
    user_chars: Annotated[Positive, Also(keys=("memory.user_char_limit",))] = 1375
    """The most characters of a USER.md."""
    provider: Literal["", "local"] = ""
    """A memory beside the notes; `local` searches earlier conversations for every message."""


class TerminalSettings(Value):
    backend: Annotated[str, Also(env=("TERMINAL_ENV",))] = "none"
    """Where commands run: `none` (nowhere), `local` (on this machine with your rights), or the name
    of a plugin's backend."""
    timeout: Annotated[Seconds, Also(env=("TERMINAL_TIMEOUT",))] = 180.0
    """Seconds after which a command is ended, unless the agent sets another time."""
    env_passthrough: tuple[str, ...] = ()
    """Environment variables that commands see in addition to PATH, HOME, LANG and similar ones."""


class WebSettings(Value):
    search: Literal["auto", "searxng", "brave", "tavily"] = "auto"
    """The service for web searches; `auto` is the first one that is configured."""
    searxng_url: Annotated[str, Also(env=("SEARXNG_URL",))] = ""
    """The address of a SearXNG instance."""
    brave_key: Annotated[str, Also(env=("BRAVE_SEARCH_API_KEY", "BRAVE_API_KEY"), secret=True)] = ""
    """The key for Brave Search."""
    tavily_key: Annotated[str, Also(env=("TAVILY_API_KEY",), secret=True)] = ""
    """The key for Tavily."""

    def __repr__(self) -> str:
        return f"WebSettings(search={self.search!r})"
