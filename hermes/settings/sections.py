"""The sections of the configuration: every setting, its default and what it decides."""

from typing import Annotated, Literal

import msgspec

from hermes.settings.schema import Aliases
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
        Aliases(
            env=("HERMES_MODEL", "HERMES_INFERENCE_MODEL", "HERMES_DEFAULT_MODEL"),
            keys=("model", "model.model"),
        ),
    ] = ""
    """The model that answers, as its provider names it; empty for the provider's default."""
    provider: Annotated[str, Aliases(env=("HERMES_INFERENCE_PROVIDER",))] = "auto"
    """Who serves the model; `auto` is the first provider whose key is set."""
    base_url: Annotated[str, Aliases(env=("HERMES_CUSTOM_BASE_URL",))] = ""
    """The address of any other endpoint, instead of a provider's own."""
    api_key: Annotated[str, Aliases(env=("HERMES_CUSTOM_API_KEY",), secret=True)] = ""
    """The key for `base_url`; a provider's own key is better kept in .env."""
    context_length: Positive | None = None
    """Tokens that the model can read at once, if the provider does not say."""
    max_tokens: Annotated[Positive | None, Aliases(env=("HERMES_MAX_TOKENS",))] = None
    """The longest answer, in tokens; empty leaves it to the provider."""
    wire: str = "auto"
    """Name of the wire format that the endpoint speaks; `auto` is the provider's."""
    attachments: tuple[str, ...] | None = None
    """Kinds of files that the model accepts: `image`, `audio`, `file`; an empty list is none.
    If it is not set, we go by what is known of the model."""
    fallbacks: tuple[str, ...] = ()
    """Models that are called if this one can't answer, each as `provider/model`."""
    input_price: Dollars | None = None
    """Dollars for a million tokens read, if the price is not known."""
    output_price: Dollars | None = None
    """Dollars for a million tokens written."""

    def __repr__(self) -> str:
        return f"ModelSettings(default={self.default!r}, provider={self.provider!r})"


class AuxiliarySettings(Value):
    provider: Annotated[str, Aliases(env=("HERMES_AUXILIARY_PROVIDER",))] = ""
    """Who serves the model for summaries and titles; empty for the main model."""
    model: Annotated[str, Aliases(env=("HERMES_AUXILIARY_MODEL",), keys=("auxiliary.default",))] = (
        ""
    )
    """That model, as its provider names it; empty for the provider's default."""
    base_url: Annotated[str, Aliases(env=("HERMES_AUXILIARY_BASE_URL",))] = ""
    """The address of an endpoint of its own."""
    api_key: Annotated[str, Aliases(env=("HERMES_AUXILIARY_API_KEY",), secret=True)] = ""
    """The key for `auxiliary.base_url`."""

    def __repr__(self) -> str:
        return f"AuxiliarySettings(provider={self.provider!r}, model={self.model!r})"


class ApiServerSettings(Value):
    enabled: Annotated[
        bool, Aliases(env=("API_SERVER_ENABLED",), keys=("platforms.api_server.enabled",))
    ] = True
    """Whether the HTTP API listens."""
    host: Annotated[
        str, Aliases(env=("API_SERVER_HOST",), keys=("platforms.api_server.extra.host",))
    ] = "127.0.0.1"
    """The address it listens on; one that others can reach needs a key."""
    port: Annotated[
        int,
        msgspec.Meta(ge=0, le=65535),
        Aliases(env=("API_SERVER_PORT",), keys=("platforms.api_server.extra.port",)),
    ] = 8642
    """The port it listens on; 0 takes a free one."""
    key: Annotated[
        str,
        Aliases(env=("API_SERVER_KEY",), keys=("platforms.api_server.extra.key",), secret=True),
    ] = ""
    """The bearer key of its clients, of 16 characters or more; empty makes one at the start."""
    model_name: Annotated[
        str,
        Aliases(env=("API_SERVER_MODEL_NAME",), keys=("platforms.api_server.extra.model_name",)),
    ] = "hermes-agent"
    """The model name that stands for the default agent."""
    cors_origins: Annotated[
        tuple[str, ...],
        Aliases(
            env=("API_SERVER_CORS_ORIGINS",), keys=("platforms.api_server.extra.cors_origins",)
        ),
    ] = ()
    """Web pages that may call it from a browser; `*` for all."""
    max_body_bytes: Annotated[int, msgspec.Meta(ge=1)] = 10_000_000
    """The largest request it reads."""
    max_concurrent_runs: Annotated[
        Count, Aliases(keys=("gateway.api_server.max_concurrent_runs",))
    ] = 4096
    """Requests that may run at once; 0 for any number."""

    def __repr__(self) -> str:
        return f"ApiServerSettings(enabled={self.enabled}, host={self.host!r}, port={self.port})"


class AgentSettings(Value):
    max_turns: Annotated[int, msgspec.Meta(ge=1), Aliases(env=("HERMES_MAX_ITERATIONS",))] = 90
    """Model calls in one turn."""
    turn_timeout: Annotated[
        float,
        msgspec.Meta(ge=0),
        Aliases(env=("HERMES_AGENT_TIMEOUT",), keys=("agent.gateway_timeout",)),
    ] = 1800.0
    """Seconds that one turn may take; 0 for a week."""
    drain_seconds: Annotated[
        float,
        msgspec.Meta(ge=0),
        Aliases(env=("HERMES_RESTART_DRAIN_TIMEOUT",), keys=("agent.restart_drain_timeout",)),
    ] = 20.0
    """Seconds that running turns get to finish when the gateway stops."""
    api_max_retries: Count = 3
    """How often a failed model call is made again."""
    system_prompt: str = ""
    """Instructions added to every conversation."""
    ephemeral_prompt: Annotated[str, Aliases(env=("HERMES_EPHEMERAL_SYSTEM_PROMPT",))] = ""
    """Instructions that go out with every model call and are stored nowhere."""
    prefill_messages_file: Annotated[
        str, Aliases(env=("HERMES_PREFILL_MESSAGES_FILE",), keys=("prefill_messages_file",))
    ] = ""
    """A JSON list of messages that stand before every conversation and are stored nowhere."""
    context_file_chars: Annotated[Count, Aliases(keys=("context_file_max_chars",))] = 20_000
    """Characters of a context file (AGENTS.md …) that the model is shown; 0 for none."""
    toolsets: Annotated[tuple[str, ...], Aliases(keys=("toolsets",))] = ("default",)
    """What the agent may use: names of toolsets and of single tools."""
    disabled_toolsets: tuple[str, ...] = ()
    """What it may not use, whatever else allows it."""
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
    enabled: Annotated[bool, Aliases(keys=("gateway.streaming.enabled",))] = True
    """Whether an answer grows on the platform while it is written."""
    edit_interval: Annotated[
        float, msgspec.Meta(ge=0), Aliases(keys=("gateway.streaming.edit_interval",))
    ] = 0.8
    """Seconds between two edits of a message."""
    buffer_threshold: Annotated[Count, Aliases(keys=("gateway.streaming.buffer_threshold",))] = 24
    """New characters that make an edit worthwhile before the interval is over."""
    cursor: Annotated[str, Aliases(keys=("gateway.streaming.cursor",))] = " ▉"
    """Shown behind text that still grows."""
    first: Literal["text", "placeholder"] = "text"
    """What the first message shows: real text, or `…` so that no text can ever stand twice."""


class AccessSettings(Value):
    allowed_users: Annotated[tuple[str, ...], Aliases(env=("GATEWAY_ALLOWED_USERS",))] = ()
    """Users who may talk to the agent, on every platform."""
    allow_all: Annotated[bool, Aliases(env=("GATEWAY_ALLOW_ALL_USERS",))] = False
    """Lets everybody in, on every platform."""


class PlatformSettings(Value):
    enabled: bool | None = None
    """Whether the platform is connected; empty connects it when its credentials are set."""
    allowed_users: Annotated[tuple[str, ...], Aliases(env=("{}_ALLOWED_USERS",))] = ()
    """Users who may talk to the agent here."""
    allow_all: Annotated[bool, Aliases(env=("{}_ALLOW_ALL_USERS",))] = False
    """Lets everybody in here."""
    toolsets: tuple[str, ...] | None = None
    """What the agent may use here, instead of agent.toolsets; an empty list is nothing at all."""
    channel_prompts: dict[str, str] = msgspec.field(default_factory=dict)
    """Instructions for single chats, by their id; stored in no conversation."""


class DisplaySettings(Value):
    busy_input_mode: Annotated[
        Literal["queue", "steer", "interrupt"], Aliases(env=("HERMES_GATEWAY_BUSY_INPUT_MODE",))
    ] = "queue"
    """What becomes of a message that arrives while the agent works; only `queue` works so far."""


class LoggingSettings(Value):
    level: Annotated[
        Literal["DEBUG", "INFO", "WARNING", "ERROR"], Aliases(env=("HERMES_LOG_LEVEL",))
    ] = "INFO"
    """How much the log tells."""
    format: Annotated[Literal["text", "json"], Aliases(env=("HERMES_LOG_FORMAT",))] = "text"
    """Whether a line of the log is text or a JSON object."""
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
    """How long API requests without a session are kept."""
    inbox_days: Annotated[float, msgspec.Meta(ge=0)] = 30.0
    """How long answered messages are remembered, so that none is answered twice."""
    media_days: Annotated[float, msgspec.Meta(ge=0)] = 30.0
    """How long files that came with the messages of a session are kept after their last use."""


class CompressionSettings(Value):
    enabled: bool = True
    """Whether a long conversation is summarised before it outgrows the model's window."""
    threshold: Annotated[float, msgspec.Meta(gt=0, le=0.95)] = 0.75
    """The part of the window from which on it is."""


class MemorySettings(Value):
    enabled: Annotated[bool, Aliases(keys=("memory.memory_enabled",))] = True
    """Whether the agent remembers: MEMORY.md and USER.md."""
    memory_chars: Annotated[Positive, Aliases(keys=("memory.memory_char_limit",))] = 2200
    """Characters that a MEMORY.md may hold."""
    user_chars: Annotated[Positive, Aliases(keys=("memory.user_char_limit",))] = 1375
    """Characters that a USER.md may hold."""
    provider: Literal["", "local"] = ""
    """A memory beside the files; `local` recalls earlier conversations by full-text search."""


class TerminalSettings(Value):
    backend: Annotated[str, Aliases(env=("TERMINAL_ENV",))] = "none"
    """Where commands run: `none` (nowhere), `local` (on this machine with your rights), or the name
    of a plugin's backend."""
    timeout: Annotated[Seconds, Aliases(env=("TERMINAL_TIMEOUT",))] = 180.0
    """Seconds that a command gets, where the agent says nothing else."""
    env_passthrough: tuple[str, ...] = ()
    """Environment variables that commands may see besides PATH, HOME, LANG and their like."""


class WebSettings(Value):
    search: Literal["auto", "searxng", "brave", "tavily"] = "auto"
    """Who searches the web; `auto` is the first that is configured."""
    searxng_url: Annotated[str, Aliases(env=("SEARXNG_URL",))] = ""
    """The address of a SearXNG."""
    brave_key: Annotated[
        str, Aliases(env=("BRAVE_SEARCH_API_KEY", "BRAVE_API_KEY"), secret=True)
    ] = ""
    """The key for Brave Search."""
    tavily_key: Annotated[str, Aliases(env=("TAVILY_API_KEY",), secret=True)] = ""
    """The key for Tavily."""

    def __repr__(self) -> str:
        return f"WebSettings(search={self.search!r})"
