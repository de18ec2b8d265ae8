"""The one configuration: config.yaml, .env and the environment as one frozen value."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from hermes.core.models.catalog import CUSTOM, Catalog, Provider
from hermes.settings_schema import Also, FieldDoc, Schema, convert, describe_fields
from hermes.settings_sources import (
    CONFIG,
    DOTENV,
    ConfigProblems,
    Explanation,
    Files,
    Sources,
    gather,
)
from hermes.state.paths import Home
from hermes.types.errors import ConfigError
from hermes.types.profile import Budget, ModelChoice
from hermes.types.value import Value

ENVIRON: Mapping[str, str] = os.environ
"""The process environment, for those who hand it on."""
Count = Annotated[int, msgspec.Meta(ge=0)]


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
    """Who serves the model; `auto` is the first provider whose key is set."""
    base_url: Annotated[str, Also(env=("HERMES_CUSTOM_BASE_URL",))] = ""
    """The address of an OpenAI-compatible endpoint, instead of a provider's own."""
    api_key: Annotated[str, Also(env=("HERMES_CUSTOM_API_KEY",), secret=True)] = ""
    """The key for `base_url`; a provider's own key is better kept in .env."""
    context_length: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """Tokens that the model can read at once, where the provider does not say."""
    max_tokens: Annotated[
        Annotated[int, msgspec.Meta(ge=1)] | None, Also(env=("HERMES_MAX_TOKENS",))
    ] = None
    """The longest answer, in tokens; empty leaves it to the provider."""

    def __repr__(self) -> str:
        return f"ModelSettings(default={self.default!r}, provider={self.provider!r})"


class ApiServerSettings(Value):
    enabled: Annotated[
        bool, Also(env=("API_SERVER_ENABLED",), keys=("platforms.api_server.enabled",))
    ] = True
    """Whether the HTTP API listens."""
    host: Annotated[
        str, Also(env=("API_SERVER_HOST",), keys=("platforms.api_server.extra.host",))
    ] = "127.0.0.1"
    """The address it listens on; one that others can reach needs a key."""
    port: Annotated[
        int,
        msgspec.Meta(ge=0, le=65535),
        Also(env=("API_SERVER_PORT",), keys=("platforms.api_server.extra.port",)),
    ] = 8642
    """The port it listens on; 0 takes a free one."""
    key: Annotated[
        str,
        Also(env=("API_SERVER_KEY",), keys=("platforms.api_server.extra.key",), secret=True),
    ] = ""
    """The bearer key of its clients, of 16 characters or more; empty makes one at the start."""
    model_name: Annotated[
        str,
        Also(env=("API_SERVER_MODEL_NAME",), keys=("platforms.api_server.extra.model_name",)),
    ] = "hermes-agent"
    """The model name that stands for the default agent."""
    cors_origins: Annotated[
        tuple[str, ...],
        Also(env=("API_SERVER_CORS_ORIGINS",), keys=("platforms.api_server.extra.cors_origins",)),
    ] = ()
    """Web pages that may call it from a browser; `*` for all."""
    max_body_bytes: Annotated[int, msgspec.Meta(ge=1)] = 10_000_000
    """The largest request it reads."""
    max_concurrent_runs: Annotated[
        Count, Also(keys=("gateway.api_server.max_concurrent_runs",))
    ] = 4096
    """Requests that may run at once; 0 for any number."""

    def __repr__(self) -> str:
        return f"ApiServerSettings(enabled={self.enabled}, host={self.host!r}, port={self.port})"


class AgentSettings(Value):
    max_turns: Annotated[int, msgspec.Meta(ge=1), Also(env=("HERMES_MAX_ITERATIONS",))] = 90
    """Model calls in one turn."""
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
    """How often a failed model call is made again."""
    system_prompt: str = ""
    """Instructions added to every conversation."""

    @property
    def budget(self) -> Budget:
        return Budget(steps=self.max_turns, seconds=self.turn_timeout or 7 * 86_400.0)


class StreamingSettings(Value):
    enabled: Annotated[bool, Also(keys=("gateway.streaming.enabled",))] = True
    """Whether an answer grows on the platform while it is written."""
    edit_interval: Annotated[
        float, msgspec.Meta(ge=0), Also(keys=("gateway.streaming.edit_interval",))
    ] = 0.8
    """Seconds between two edits of a message."""
    buffer_threshold: Annotated[Count, Also(keys=("gateway.streaming.buffer_threshold",))] = 24
    """New characters that make an edit worthwhile before the interval is over."""
    cursor: Annotated[str, Also(keys=("gateway.streaming.cursor",))] = " ▉"
    """Shown behind text that still grows."""
    first: Literal["text", "placeholder"] = "text"
    """What the first message shows: real text, or `…` so that no text can ever stand twice."""


class AccessSettings(Value):
    allowed_users: Annotated[tuple[str, ...], Also(env=("GATEWAY_ALLOWED_USERS",))] = ()
    """Users who may talk to the agent, on every platform."""
    allow_all: Annotated[bool, Also(env=("GATEWAY_ALLOW_ALL_USERS",))] = False
    """Lets everybody in, on every platform."""


class PlatformSettings(Value):
    enabled: bool | None = None
    """Whether the platform is connected; empty connects it when its credentials are set."""
    allowed_users: Annotated[tuple[str, ...], Also(env=("{}_ALLOWED_USERS",))] = ()
    """Users who may talk to the agent here."""
    allow_all: Annotated[bool, Also(env=("{}_ALLOW_ALL_USERS",))] = False
    """Lets everybody in here."""


class DisplaySettings(Value):
    busy_input_mode: Annotated[
        Literal["queue", "steer", "interrupt"], Also(env=("HERMES_GATEWAY_BUSY_INPUT_MODE",))
    ] = "queue"
    """What becomes of a message that arrives while the agent works; only `queue` works so far."""


class LoggingSettings(Value):
    level: Annotated[
        Literal["DEBUG", "INFO", "WARNING", "ERROR"], Also(env=("HERMES_LOG_LEVEL",))
    ] = "INFO"
    """How much the log tells."""


class RetentionSettings(Value):
    stateless_hours: Annotated[float, msgspec.Meta(ge=0)] = 24.0
    """How long API requests without a session are kept."""
    inbox_days: Annotated[float, msgspec.Meta(ge=0)] = 30.0
    """How long answered messages are remembered, so that none is answered twice."""


class Settings(Value):
    """Everything an operator can decide. Made by `load`; equal for every entry point."""

    home: Home
    """The folder of the profile: `HERMES_HOME`, or ~/.hermes."""
    model: ModelSettings = ModelSettings()
    """Which model answers, and where it is reached."""
    api_server: ApiServerSettings = ApiServerSettings()
    """The OpenAI-compatible HTTP API."""
    agent: AgentSettings = AgentSettings()
    """The limits and the voice of the agent."""
    streaming: StreamingSettings = StreamingSettings()
    """How an answer grows where a platform can edit."""
    access: AccessSettings = AccessSettings()
    """Who may talk to the agent on any platform."""
    platforms: dict[str, PlatformSettings] = msgspec.field(default_factory=dict)
    """Messaging platforms, by name; those that nothing is said about are left out."""
    display: DisplaySettings = DisplaySettings()
    """What people see of the agent at work."""
    logging: LoggingSettings = LoggingSettings()
    """The log."""
    retention: RetentionSettings = RetentionSettings()
    """How long things are kept."""
    workspace: Annotated[Path, Also(env=("HERMES_WORKSPACE",))] = Path("workspace")
    """The folder that file tools stay inside; a relative one is in the home."""
    timezone: Annotated[str, Also(env=("HERMES_TIMEZONE",))] = ""
    """The IANA name of the zone for times shown and scheduled; empty for the machine's."""
    warnings: tuple[str, ...] = ()
    """What was read past, one line each."""
    sources: Sources = Sources()
    """Where every value came from."""

    def __repr__(self) -> str:
        return f"Settings(home={str(self.home.root)!r})"

    def explain(self, key: str) -> Explanation:
        """The setting's value, who gave it, and whom that overruled."""
        explanation = self.sources.explain(schema().field(key))
        if explanation.key == "workspace":
            return msgspec.structs.replace(explanation, value=self.workspace)
        return explanation

    def keys(self) -> tuple[str, ...]:
        """Every setting; of platforms only those that something is said about."""
        found = self.sources.found
        return tuple(
            key for key in schema().fields if key in found or not key.startswith("platforms.")
        )

    def secrets(self) -> frozenset[str]:
        """Everything that must never be shown or logged."""
        own = {self.model.api_key, self.api_server.key} - {""}
        return self.sources.secrets | own


_DERIVED = ("home", "warnings", "sources")


def schema() -> Schema:
    """Every setting by its key."""
    return Schema.of(Settings, _DERIVED)


def describe() -> list[FieldDoc]:
    """Every setting for the reference page; what each platform has stands there once."""
    home = FieldDoc(
        key="HERMES_HOME",
        type="a path",
        default="~/.hermes",
        env=("HERMES_HOME",),
        text="The folder of configuration, store and logs; set in the environment only.",
    )
    return [home, *describe_fields(Settings, _DERIVED)]


def load(home: Path | None = None, environ: Mapping[str, str] = ENVIRON) -> Settings:
    """Reads the configuration; ConfigError says everything that is wrong with it."""
    where = locate(home, environ)
    return assemble(where, Files.of(where), environ)


def locate(home: Path | None = None, environ: Mapping[str, str] = ENVIRON) -> Home:
    """The home that `load` would read."""
    root = home or Path(environ.get("HERMES_HOME") or "~/.hermes")
    return Home(root=root.expanduser().absolute())


def assemble(home: Home, files: Files, environ: Mapping[str, str]) -> Settings:
    """The settings that these files and this environment make."""
    sources, problems = gather(schema(), home, files, environ)
    values: dict[str, object] = {}
    for key, found in sources.found.items():
        try:
            values[key] = convert(schema().fields[key], found[-1].value)
        except ValueError as error:
            problems.append(f"{found[-1].source}: {key}: {error}")
    sections: dict[str, dict[str, object]] = {}
    for key, value in values.items():
        section, _, name = key.rpartition(".")
        sections.setdefault(section, {})[name] = value
    settings = msgspec.structs.replace(
        _built(home, sections), sources=sources, warnings=sources.warnings
    )
    problems += [*_access_problems(settings), *_zone_problems(settings)]
    if problems:
        raise ConfigProblems(problems)
    if settings.display.busy_input_mode != "queue":
        ignored = "display.busy_input_mode: only 'queue' works so far; messages are queued"
        return msgspec.structs.replace(settings, warnings=(*settings.warnings, ignored))
    return settings


def _built(home: Home, sections: Mapping[str, Mapping[str, object]]) -> Settings:
    top = dict(sections.get("", {}))
    workspace = home.root / top.pop("workspace", "workspace")  # type: ignore[operator]  # a Path
    platforms = {
        section.partition(".")[2]: msgspec.convert(values, PlatformSettings)
        for section, values in sections.items()
        if section.startswith("platforms.")
    }
    plain = {key: values for key, values in sections.items() if key and "." not in key}
    settings = msgspec.convert({**top, **plain, "home": home}, Settings)
    return msgspec.structs.replace(settings, workspace=workspace, platforms=platforms)


_LOOPBACK = re.compile(r"localhost|::1|127(\.\d{1,3}){3}")
_PLACEHOLDERS = ("changeme", "change-me", "change_me", "your-", "your_", "yourkey", "placeholder")


def _access_problems(settings: Settings) -> list[str]:
    """What would let strangers in."""
    api, source = settings.api_server, settings.explain("api_server.key").source
    if not api.enabled:
        return []
    if not api.key:
        if _LOOPBACK.fullmatch(api.host):
            return []
        where = settings.home.dotenv
        return [f"api_server.host {api.host!r} is open to others: set API_SERVER_KEY in {where}"]
    if api.key.casefold().startswith(_PLACEHOLDERS):
        return [f"{source}: api_server.key is a placeholder: set a random one"]
    if len(api.key) < 16:
        return [f"{source}: api_server.key has {len(api.key)} characters: it needs 16 or more"]
    return []


def _zone_problems(settings: Settings) -> list[str]:
    if not settings.timezone:
        return []
    import zoneinfo  # noqa: PLC0415  # few set a zone

    try:
        zoneinfo.ZoneInfo(settings.timezone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        source = settings.explain("timezone").source
        return [f"{source}: timezone {settings.timezone!r} is not known: try 'Europe/Berlin'"]
    return []


def resolve_model(settings: Settings) -> ModelChoice | None:
    """The model that answers; None when nothing is configured, ConfigError when it can't work."""
    model, layer = settings.model, settings.sources.layer
    catalog = Catalog.load()
    name = model.provider.casefold() or "auto"
    named = name not in ("auto", CUSTOM)
    chosen, addressed = layer("model.provider"), layer("model.base_url")
    if model.base_url and (not named or addressed >= max(DOTENV, chosen)):
        provider = catalog.at(model.base_url) or catalog.named(CUSTOM)
        # A key of config.yaml belongs to the address of config.yaml: no other may see it.
        own = addressed <= CONFIG or layer("model.api_key") >= DOTENV
        return _choice(settings, provider, model.base_url, model.api_key if own else "")
    if named:
        provider, own = catalog.named(name), chosen <= CONFIG
        key = model.api_key if own and layer("model.api_key") <= CONFIG else ""
        key = provider.key(settings.sources.environ) or key
        return _choice(settings, provider, model.base_url if own else "", key)
    if name == CUSTOM:
        raise ConfigError(
            f"model.provider is custom and model.base_url is empty: set it in"
            f" {settings.home.config}, or HERMES_CUSTOM_BASE_URL in {settings.home.dotenv}"
        )
    first = catalog.auto(settings.sources.environ, model.default)
    return _choice(settings, first, "", "") if first else None


def _choice(settings: Settings, provider: Provider, base_url: str, api_key: str) -> ModelChoice:
    environ = settings.sources.environ
    key = api_key or provider.key(environ)
    if provider.key_required and not key:
        raise ConfigError(
            f"{provider.label} needs a key: set {provider.keys[0]} in {settings.home.dotenv}"
        )
    model = provider.model(settings.model.default)
    if not model:
        raise ConfigError(
            f"no model is named for {provider.label}: set model.default in {settings.home.config},"
            " or HERMES_MODEL"
        )
    return ModelChoice(
        provider=provider.name,
        model=model,
        base_url=(base_url or provider.address(environ)).rstrip("/"),
        api_key=key,
        context_length=settings.model.context_length,
    )
