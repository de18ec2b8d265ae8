"""The sections of the configuration, with all settings, their defaults and their documentation."""

from typing import Annotated, Literal

import msgspec

from hermes.settings.schema import Aliases
from hermes.types.profile import Budget, BusyMode
from hermes.types.value import Value

Count = Annotated[int, msgspec.Meta(ge=0)]
Positive = Annotated[int, msgspec.Meta(ge=1)]
Seconds = Annotated[float, msgspec.Meta(gt=0)]
Dollars = Annotated[float, msgspec.Meta(ge=0)]

LARGE_BYTES = 1 << 30
"""Size in bytes above which snapshots of the database are taken less often."""


class ModelSettings(Value):
    default: Annotated[
        str,
        Aliases(
            env=("HERMES_MODEL", "HERMES_INFERENCE_MODEL", "HERMES_DEFAULT_MODEL"),
            keys=("model", "model.model"),
        ),
    ] = ""
    """The provider's name for the model that answers; empty for the provider's default model."""
    provider: Annotated[str, Aliases(env=("HERMES_INFERENCE_PROVIDER",))] = "auto"
    """The provider of the model; `auto` is the first provider whose key is set."""
    base_url: Annotated[str, Aliases(env=("HERMES_CUSTOM_BASE_URL",))] = ""
    """The address of another endpoint, instead of the provider's own."""
    custom_base_url: str = ""
    """The address that the provider `custom` uses if `base_url` is empty. When a person switches
    from `custom` to another provider, `hermes model` moves the address from `base_url` to this
    setting, so that `hermes model custom/NAME` can use the address again."""
    api_key: Annotated[str, Aliases(env=("HERMES_CUSTOM_API_KEY",), secret=True)] = ""
    """The key for `base_url`. The key of a provider belongs in .env."""
    context_length: Positive | None = None
    """The model's context window in tokens, if the provider does not report it."""
    max_tokens: Annotated[Positive | None, Aliases(env=("HERMES_MAX_TOKENS",))] = None
    """The longest answer, in tokens; if empty, the provider decides."""
    wire: str = "auto"
    """Name of the endpoint's wire format; `auto` means the wire format of the provider."""
    attachments: tuple[str, ...] | None = None
    """Kinds of files that the model accepts: `image`, `audio`, `file`; an empty list for none. If
    it is not set, the kinds are found in the provider's list of models or in a built-in table."""
    fallbacks: tuple[str, ...] = ()
    """Models that are called if the main model fails, each as `provider/model`."""
    input_price: Dollars | None = None
    """Dollars per million input tokens, for a model whose price Hermes does not know."""
    output_price: Dollars | None = None
    """Dollars per million output tokens, for a model whose price Hermes does not know."""

    def __repr__(self) -> str:
        return f"ModelSettings(default={self.default!r}, provider={self.provider!r})"


class AuxiliarySettings(Value):
    provider: Annotated[str, Aliases(env=("HERMES_AUXILIARY_PROVIDER",))] = ""
    """The provider of the auxiliary model, which writes summaries and titles; empty for the main
    model."""
    model: Annotated[str, Aliases(env=("HERMES_AUXILIARY_MODEL",), keys=("auxiliary.default",))] = (
        ""
    )
    """The provider's name for the auxiliary model; empty for the provider's default model."""
    base_url: Annotated[str, Aliases(env=("HERMES_AUXILIARY_BASE_URL",))] = ""
    """The address of another endpoint for the auxiliary model."""
    api_key: Annotated[str, Aliases(env=("HERMES_AUXILIARY_API_KEY",), secret=True)] = ""
    """The key for `auxiliary.base_url`."""

    def __repr__(self) -> str:
        return f"AuxiliarySettings(provider={self.provider!r}, model={self.model!r})"


class ApiServerSettings(Value):
    enabled: Annotated[
        bool, Aliases(env=("API_SERVER_ENABLED",), keys=("platforms.api_server.enabled",))
    ] = True
    """Whether the gateway serves the HTTP API."""
    host: Annotated[
        str, Aliases(env=("API_SERVER_HOST",), keys=("platforms.api_server.extra.host",))
    ] = "127.0.0.1"
    """The address that the API listens on. If other machines can reach the address, `key` must be
    set."""
    port: Annotated[
        int,
        msgspec.Meta(ge=0, le=65535),
        Aliases(env=("API_SERVER_PORT",), keys=("platforms.api_server.extra.port",)),
    ] = 8642
    """The port that the API listens on; 0 for any free port."""
    key: Annotated[
        str,
        Aliases(env=("API_SERVER_KEY",), keys=("platforms.api_server.extra.key",), secret=True),
    ] = ""
    """The API key that clients must send. A key must have at least 16 characters. If this setting
    is empty, the gateway generates a key."""
    model_name: Annotated[
        str,
        Aliases(env=("API_SERVER_MODEL_NAME",), keys=("platforms.api_server.extra.model_name",)),
    ] = "hermes-agent"
    """The model name by which clients address the default agent."""
    cors_origins: Annotated[
        tuple[str, ...],
        Aliases(
            env=("API_SERVER_CORS_ORIGINS",), keys=("platforms.api_server.extra.cors_origins",)
        ),
    ] = ()
    """Origins of web pages that may call the API from a browser; `*` for all."""
    max_body_bytes: Annotated[int, msgspec.Meta(ge=1)] = 10_000_000
    """The largest request body in bytes."""
    max_concurrent_runs: Annotated[
        Count, Aliases(keys=("gateway.api_server.max_concurrent_runs",))
    ] = 4096
    """Maximum number of requests that may run at the same time; 0 for no limit."""

    def __repr__(self) -> str:
        return f"ApiServerSettings(enabled={self.enabled}, host={self.host!r}, port={self.port})"


class AgentSettings(Value):
    max_turns: Annotated[int, msgspec.Meta(ge=1), Aliases(env=("HERMES_MAX_ITERATIONS",))] = 90
    """Maximum number of model calls in one turn."""
    turn_timeout: Annotated[
        float,
        msgspec.Meta(ge=0),
        Aliases(env=("HERMES_AGENT_TIMEOUT",), keys=("agent.gateway_timeout",)),
    ] = 1800.0
    """Longest time in seconds that one turn may take; 0 means a week."""
    drain_seconds: Annotated[
        float,
        msgspec.Meta(ge=0),
        Aliases(env=("HERMES_RESTART_DRAIN_TIMEOUT",), keys=("agent.restart_drain_timeout",)),
    ] = 20.0
    """Seconds for which a stopping gateway waits for running turns to finish."""
    api_max_retries: Count = 3
    """Maximum number of times that a failed model call is retried."""
    system_prompt: str = ""
    """Instructions added to every conversation."""
    ephemeral_prompt: Annotated[str, Aliases(env=("HERMES_EPHEMERAL_SYSTEM_PROMPT",))] = ""
    """Instructions that are sent with every model call and never stored."""
    personalities: dict[str, str] = msgspec.field(default_factory=dict)
    """Instructions that `/personality NAME` adds to one conversation, by name."""
    prefill_messages_file: Annotated[
        str, Aliases(env=("HERMES_PREFILL_MESSAGES_FILE",), keys=("prefill_messages_file",))
    ] = ""
    """A file with a JSON list of messages that the model gets at the beginning of every
    conversation. They are never stored."""
    context_file_chars: Annotated[Count, Aliases(keys=("context_file_max_chars",))] = 20_000
    """Maximum number of characters of a context file (AGENTS.md …) in the prompt; 0 for none."""
    toolsets: Annotated[tuple[str, ...], Aliases(keys=("toolsets",))] = ("default",)
    """Names of the toolsets and single tools that the agent may use."""
    disabled_toolsets: tuple[str, ...] = ()
    """Names of toolsets and tools that the agent may never use."""
    clarify_timeout: Seconds = 3600.0
    """Seconds for which a question waits for a person's answer."""
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
    """Whether an answer is shown on the platform while it is written."""
    edit_interval: Annotated[
        float, msgspec.Meta(ge=0), Aliases(keys=("gateway.streaming.edit_interval",))
    ] = 0.8
    """Shortest time in seconds between two edits of a message."""
    buffer_threshold: Annotated[Count, Aliases(keys=("gateway.streaming.buffer_threshold",))] = 24
    """Number of new characters of an answer after which its message is edited to show them."""
    cursor: Annotated[str, Aliases(keys=("gateway.streaming.cursor",))] = " ▉"
    """The text that is shown at the end of an answer that is still growing."""
    first: Literal["text", "placeholder"] = "text"
    """Whether the first message of an answer shows real text (`text`) or only `…` (`placeholder`).
    With `…`, no text is shown twice, even if the gateway crashes while it sends the first
    message."""


class HumanDelaySettings(Value):
    mode: Annotated[
        Literal["off", "natural", "custom"], Aliases(env=("HERMES_HUMAN_DELAY_MODE",))
    ] = "off"
    """Whether there are pauses between the messages of a long answer: `off` for none, `natural` for
    800 to 2500 ms, `custom` for `min_ms` to `max_ms`."""
    min_ms: Annotated[Count, Aliases(env=("HERMES_HUMAN_DELAY_MIN_MS",))] = 800
    """The shortest pause in milliseconds, if mode is `custom`."""
    max_ms: Annotated[Count, Aliases(env=("HERMES_HUMAN_DELAY_MAX_MS",))] = 2500
    """The longest pause in milliseconds, if mode is `custom`."""

    @property
    def seconds(self) -> tuple[float, float]:
        """The shortest and the longest pause in seconds."""
        match self.mode:
            case "off":
                return 0.0, 0.0
            case "natural":
                return 0.8, 2.5
            case "custom":
                return min(self.min_ms, self.max_ms) / 1000, self.max_ms / 1000


class AccessSettings(Value):
    allowed_users: Annotated[tuple[str, ...], Aliases(env=("GATEWAY_ALLOWED_USERS",))] = ()
    """Users who may talk to the agent, on every platform."""
    allow_all: Annotated[bool, Aliases(env=("GATEWAY_ALLOW_ALL_USERS",))] = False
    """Whether everybody may talk to the agent, on every platform."""
    unauthorized_dm_behavior: Annotated[
        Literal["", "pair", "ignore"], Aliases(keys=("unauthorized_dm_behavior",))
    ] = ""
    """The reply to a stranger in a private chat: `pair` sends a pairing code, `ignore` sends
    nothing. If this setting is empty, strangers get a code only if no list of users is set."""
    owners: Annotated[tuple[str, ...], Aliases(keys=("owners",))] = ()
    """Users who have all rights, each as `platform:id`. They are also allowed to talk to the
    agent."""
    admins: Annotated[tuple[str, ...], Aliases(keys=("admins",))] = ()
    """Users who may pair other people and use the commands and tools of admins, each as
    `platform:id`. They are also allowed to talk to the agent."""
    admin_tools: tuple[str, ...] = ()
    """Toolsets and tools that only admins and owners may use."""
    owner_tools: tuple[str, ...] = ()
    """Toolsets and tools that only owners may use."""


class PlatformSettings(Value):
    enabled: bool | None = None
    """Whether the platform is connected. By default, it is connected if its credentials are set."""
    group_allowed_users: Annotated[tuple[str, ...], Aliases(env=("{}_GROUP_ALLOWED_USERS",))] = ()
    """Users who may talk to the agent in the groups of this platform."""
    group_allowed_chats: Annotated[tuple[str, ...], Aliases(env=("{}_GROUP_ALLOWED_CHATS",))] = ()
    """Ids of groups in which every member may talk to the agent."""
    allowed_users: Annotated[tuple[str, ...], Aliases(env=("{}_ALLOWED_USERS",))] = ()
    """Users who may talk to the agent on this platform; `*` for everybody."""
    allow_all: Annotated[bool, Aliases(env=("{}_ALLOW_ALL_USERS",))] = False
    """Whether everybody may talk to the agent on this platform."""
    account_users: dict[str, str] = msgspec.field(default_factory=dict)
    """Users who may talk to the agent on particular accounts of the platform. Each entry maps the
    name of an account to its users, separated by commas. For such an account, the other lists and
    allow_all of the platform do not apply."""
    unauthorized_dm_behavior: Literal["", "pair", "ignore"] = ""
    """The reply to a stranger on this platform, instead of access.unauthorized_dm_behavior."""
    allow_bots: Annotated[Literal["none", "mentions", "all"], Aliases(env=("{}_ALLOW_BOTS",))] = (
        "none"
    )
    """Which messages of other bots the agent reads: `none`, `mentions` (only messages in groups
    that mention the agent), or `all` (all messages in private chats, and messages in groups that
    mention the agent). Other messages of bots in groups are never read. A bot must also be one of
    the users who may talk to the agent."""
    bot_hops: Count = 3
    """Number of messages of bots that are answered in a chat before a person has to write again."""
    toolsets: tuple[str, ...] | None = None
    """Toolsets and tools for this platform, instead of agent.toolsets; an empty list for none."""
    home_channel: Annotated[str | int, Aliases(env=("{}_HOME_CHANNEL", "{}_HOME_ROOM"))] = ""
    """The id, `id:thread` or name of the chat that receives a message if its target names only the
    platform. A chat that was chosen with /sethome takes precedence."""
    channel_prompts: dict[str, str] = msgspec.field(default_factory=dict)
    """Additional instructions for individual chats, by the id of the chat. They are sent to the
    model, but are not stored with the conversation."""
    busy_input_modes: dict[str, str] = msgspec.field(default_factory=dict)
    """Modes for individual chats, by the id of the chat, instead of display.busy_input_mode."""


class DisplaySettings(Value):
    busy_input_mode: Annotated[BusyMode, Aliases(env=("HERMES_GATEWAY_BUSY_INPUT_MODE",))] = "queue"
    """How a chat message is handled if it arrives while the agent works. `queue` answers it
    afterwards, `steer` adds it to the running turn before the next model call, and `interrupt`
    stops the running turn first."""


class LoggingSettings(Value):
    level: Annotated[
        Literal["DEBUG", "INFO", "WARNING", "ERROR"], Aliases(env=("HERMES_LOG_LEVEL",))
    ] = "INFO"
    """The lowest level of messages that are logged."""
    format: Annotated[Literal["text", "json"], Aliases(env=("HERMES_LOG_FORMAT",))] = "text"
    """Whether a line of the log is text or a JSON object."""
    max_size_mb: Annotated[float, msgspec.Meta(gt=0)] = 5.0
    """The size at which the log file is rotated, in megabytes."""
    backup_count: Count = 3
    """How many rotated log files are kept."""


class StoreSettings(Value):
    url: Annotated[str, Aliases(env=("HERMES_STORE_URL",), secret=True)] = ""
    """The address of the database, such as `postgresql://user:password@host/name`; empty for a
    SQLite database in the home."""
    direct_url: Annotated[str, Aliases(env=("HERMES_STORE_DIRECT_URL",), secret=True)] = ""
    """The address of the database server itself, if store.url is the address of a connection
    pooler."""
    shared_folder: Annotated[str, Aliases(env=("HERMES_STORE_SHARED_FOLDER",))] = ""
    """A folder that all gateways of the database share, for workspaces, memory, media, long results
    and lists of tasks; empty if each gateway has these files in its own home."""
    snapshot_minutes: Annotated[float, msgspec.Meta(gt=0)] = 5.0
    """Minutes between two snapshots of a database of at most 1 GB."""
    large_snapshot_minutes: Annotated[float, msgspec.Meta(gt=0)] = 60.0
    """Minutes between two snapshots of a larger database."""

    def __repr__(self) -> str:
        return "StoreSettings()"

    def snapshot_seconds(self, size: int) -> float:
        """Returns the seconds between two snapshots of a database of `size` bytes."""
        minutes = self.snapshot_minutes if size <= LARGE_BYTES else self.large_snapshot_minutes
        return minutes * 60


class BusSettings(Value):
    url: Annotated[str, Aliases(env=("HERMES_BUS_URL",), secret=True)] = ""
    """The address of a NATS server that carries messages between the gateways that share a
    PostgreSQL database, such as `nats://user:password@host:4222`; several addresses are separated
    by commas. If it is empty, the gateways use notifications of the database."""

    def __repr__(self) -> str:
        return "BusSettings()"


class RetentionSettings(Value):
    stateless_hours: Annotated[float, msgspec.Meta(ge=0)] = 24.0
    """Hours for which API requests without a session are kept."""
    inbox_days: Annotated[float, msgspec.Meta(ge=0)] = 30.0
    """Days for which the keys of answered messages are kept. If a platform delivers a message again
    within this time, the message is not answered twice."""
    media_days: Annotated[float, msgspec.Meta(ge=0)] = 30.0
    """Days for which files of a session's messages are kept after their last use."""


class CompressionSettings(Value):
    enabled: bool = True
    """Whether a long conversation is summarised before it exceeds the model's context window."""
    threshold: Annotated[float, msgspec.Meta(gt=0, le=0.95)] = 0.75
    """A conversation is summarised when it fills this share of the context window, from 0 to
    0.95."""


class MemorySettings(Value):
    enabled: Annotated[bool, Aliases(keys=("memory.memory_enabled",))] = True
    """Whether the agent keeps notes in MEMORY.md and USER.md."""
    memory_chars: Annotated[Positive, Aliases(keys=("memory.memory_char_limit",))] = 2200
    """Maximum number of characters of MEMORY.md."""
    user_chars: Annotated[Positive, Aliases(keys=("memory.user_char_limit",))] = 1375
    """Maximum number of characters of USER.md."""
    provider: Literal["", "local"] = ""
    """A memory in addition to the files; `local` searches earlier conversations."""


class WebSettings(Value):
    search: Literal["auto", "searxng", "brave", "tavily"] = "auto"
    """The web search service; `auto` is the first service that is configured."""
    searxng_url: Annotated[str, Aliases(env=("SEARXNG_URL",))] = ""
    """The address of a SearXNG server."""
    brave_key: Annotated[
        str, Aliases(env=("BRAVE_SEARCH_API_KEY", "BRAVE_API_KEY"), secret=True)
    ] = ""
    """The key for Brave Search."""
    tavily_key: Annotated[str, Aliases(env=("TAVILY_API_KEY",), secret=True)] = ""
    """The key for Tavily."""

    def __repr__(self) -> str:
        return f"WebSettings(search={self.search!r})"
