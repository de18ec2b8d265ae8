"""The one configuration: config.yaml, .env and the environment as one frozen value."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec

from hermes.settings.keys import NEW_KEY_ADVICE, weakness
from hermes.settings.schema import ANY_NAME, Aliases, FieldDoc, Schema, convert, describe_fields
from hermes.settings.sections import (
    AccessSettings,
    AgentSettings,
    ApiServerSettings,
    AuxiliarySettings,
    CompressionSettings,
    DisplaySettings,
    LoggingSettings,
    MemorySettings,
    ModelSettings,
    PlatformSettings,
    RetentionSettings,
    StoreSettings,
    StreamingSettings,
    TerminalSettings,
    WebSettings,
)
from hermes.settings.sources import ConfigFiles, ConfigProblems, Explanation, Sources, read_sources
from hermes.state.paths import Home
from hermes.state.privacy import protect
from hermes.types.value import Value

ENVIRON: Mapping[str, str] = os.environ
"""The process environment, for those who hand it on."""
PLANNED_BACKENDS = ("docker", "singularity", "ssh", "modal", "daytona")
"""Execution backends that configurations name already, and that do not exist yet."""


class Settings(Value):
    """Everything an operator can decide. Made by `load`; equal for every entry point."""

    home: Home
    """The folder of the profile: `HERMES_HOME`, or ~/.hermes."""
    model: ModelSettings = ModelSettings()
    """Which model answers, and where it is reached."""
    auxiliary: AuxiliarySettings = AuxiliarySettings()
    """Which model writes summaries and titles."""
    api_server: ApiServerSettings = ApiServerSettings()
    """The HTTP API for programs and chat clients."""
    agent: AgentSettings = AgentSettings()
    """The limits and the voice of the agent."""
    memory: MemorySettings = MemorySettings()
    """What the agent keeps between conversations."""
    compression: CompressionSettings = CompressionSettings()
    """How a conversation stays inside the model's window."""
    terminal: TerminalSettings = TerminalSettings()
    """Where the agent's commands run."""
    web: WebSettings = WebSettings()
    """How the agent searches the web."""
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
    store: StoreSettings = StoreSettings()
    """The database, and the snapshots of it."""
    workspace: Annotated[Path, Aliases(env=("HERMES_WORKSPACE",))] = Path("workspace")
    """The folder that file tools stay inside; a relative one is in the home."""
    timezone: Annotated[str, Aliases(env=("HERMES_TIMEZONE",))] = ""
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
        general = (key for key in schema().fields if ANY_NAME not in key)
        return tuple(dict.fromkeys((*general, *sorted(self.sources.found))))

    def secrets(self) -> frozenset[str]:
        """Everything that must never be shown or logged."""
        web, auxiliary = self.web, self.auxiliary
        keys = (self.model.api_key, self.api_server.key, auxiliary.api_key, web.brave_key)
        own = {*keys, web.tavily_key, _made_key(self.home)} - {""}
        return self.sources.secrets | own


def _made_key(home: Home) -> str:
    """The API's key where none was configured; empty where none was made either."""
    try:
        return home.api_key.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""


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
    """Reads the configuration; ConfigError says everything that is wrong with it.

    Files and folders with secrets are restricted to their owner first.
    """
    where = locate(home, environ)
    protect(where)
    return assemble(where, ConfigFiles.of(where), environ)


def locate(home: Path | None = None, environ: Mapping[str, str] = ENVIRON) -> Home:
    """The home that `load` would read."""
    root = home or Path(environ.get("HERMES_HOME") or "~/.hermes")
    return Home(root=root.expanduser().absolute())


def assemble(home: Home, files: ConfigFiles, environ: Mapping[str, str]) -> Settings:
    """The settings that these files and this environment make."""
    sources, problems = read_sources(schema(), home, files, environ)
    values: dict[str, object] = {}
    for key, found in sources.found.items():
        try:
            values[key] = convert(schema().field(key), found[-1].value)
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
    return msgspec.structs.replace(settings, warnings=(*settings.warnings, *_ignored(settings)))


def _ignored(settings: Settings) -> list[str]:
    """What is asked for and can't be had yet."""
    warnings = []
    if settings.display.busy_input_mode != "queue":
        warnings.append("display.busy_input_mode: only 'queue' works so far; messages are queued")
    if settings.terminal.backend in PLANNED_BACKENDS:
        # Never on the host instead: who asks for a container does not mean that.
        warnings.append(
            f"terminal.backend: {settings.terminal.backend!r} is not supported yet;"
            " no command is run"
        )
    return warnings


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
    if problem := weakness(api.key):
        return [
            f"{source}: api_server.key {problem}: {NEW_KEY_ADVICE}, once this one is removed"
            " (`hermes config unset api_server.key`)"
        ]
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
