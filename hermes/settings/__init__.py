"""Loads the configuration from config.yaml, .env and the environment."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, get_args

import msgspec

from hermes.settings.approvals import ApprovalSettings, approval_problems
from hermes.settings.clouds import DaytonaSettings, ModalSettings
from hermes.settings.keys import NEW_KEY_ADVICE, weakness
from hermes.settings.network import network_problems
from hermes.settings.schema import ANY_NAME, Aliases, FieldDoc, Schema, convert, describe_fields
from hermes.settings.sections import (
    AccessSettings,
    AgentSettings,
    ApiServerSettings,
    AuxiliarySettings,
    BusSettings,
    CompressionSettings,
    DisplaySettings,
    HumanDelaySettings,
    LoggingSettings,
    MemorySettings,
    ModelSettings,
    PlatformSettings,
    RetentionSettings,
    StoreSettings,
    StreamingSettings,
    WebSettings,
)
from hermes.settings.sources import ConfigFiles, ConfigProblems, Explanation, Sources, read_sources
from hermes.settings.terminal import TerminalSettings
from hermes.state.paths import Home
from hermes.state.privacy import protect
from hermes.types.errors import ConfigError
from hermes.types.profile import BusyMode
from hermes.types.value import Value

ENVIRON: Mapping[str, str] = os.environ
"""The process environment. No other module may read `os.environ`."""


class Settings(Value):
    """All settings of the operator. `load` creates them, in the same way for every entry point."""

    home: Home
    """The folder of the profile: `HERMES_HOME`, or ~/.hermes if that variable is not set."""
    model: ModelSettings = ModelSettings()
    """The model that answers, and its endpoint."""
    auxiliary: AuxiliarySettings = AuxiliarySettings()
    """The model that writes summaries and titles."""
    api_server: ApiServerSettings = ApiServerSettings()
    """The HTTP API for programs and chat clients."""
    agent: AgentSettings = AgentSettings()
    """The limits and instructions of the agent."""
    memory: MemorySettings = MemorySettings()
    """The agent's memory."""
    compression: CompressionSettings = CompressionSettings()
    """Settings for the summaries of long conversations."""
    terminal: TerminalSettings = TerminalSettings()
    """How the agent's commands run."""
    approvals: ApprovalSettings = ApprovalSettings()
    """The actions of the agent that a person must approve."""
    modal: ModalSettings = ModalSettings()
    """The account at Modal, for the backend `modal`."""
    daytona: DaytonaSettings = DaytonaSettings()
    """The account at Daytona, for the backend `daytona`."""
    web: WebSettings = WebSettings()
    """How the agent searches the web."""
    streaming: StreamingSettings = StreamingSettings()
    """How an answer is shown while it is written, on platforms that can edit messages."""
    human_delay: HumanDelaySettings = HumanDelaySettings()
    """Pauses between the messages of a long answer."""
    access: AccessSettings = AccessSettings()
    """The people who may talk to the agent on all platforms. The section of a platform can admit
    more people."""
    platforms: dict[str, PlatformSettings] = msgspec.field(default_factory=dict)
    """The settings of each messaging platform, by its name. Platforms without settings are left
    out."""
    display: DisplaySettings = DisplaySettings()
    """Settings for messages that arrive while the agent works."""
    logging: LoggingSettings = LoggingSettings()
    """Settings of the log."""
    retention: RetentionSettings = RetentionSettings()
    """How long data is kept."""
    store: StoreSettings = StoreSettings()
    """The database and its snapshots."""
    bus: BusSettings = BusSettings()
    """The bus between gateways on several machines."""
    workspace: Annotated[Path, Aliases(env=("HERMES_WORKSPACE",))] = Path("workspace")
    """The folder that file tools can access; a relative path is inside the home, or inside
    store.shared_folder if that is set."""
    timezone: Annotated[str, Aliases(env=("HERMES_TIMEZONE",))] = ""
    """The IANA name of the time zone; empty for the time zone of the machine."""
    warnings: tuple[str, ...] = ()
    """Warnings about settings that were ignored, one line each."""
    sources: Sources = Sources()
    """The values that were found in config.yaml, .env and the environment, before they are
    checked."""

    def __repr__(self) -> str:
        return f"Settings(home={str(self.home.root)!r})"

    @property
    def files(self) -> Home:
        """The folder that contains workspaces, memory, media, long results and lists of tasks."""
        shared = self.store.shared_folder
        return Home(root=Path(shared).expanduser()) if shared else self.home

    def with_shared_folder(self, folder: str) -> "Settings":
        """Returns a copy of the settings with this shared folder. If `folder` is "", the copy has
        no shared folder."""
        inside = self.workspace.is_relative_to(self.files.root)
        store = msgspec.structs.replace(self.store, shared_folder=folder)
        changed = msgspec.structs.replace(self, store=store)
        if not inside:
            return changed
        workspace = changed.files.root / self.workspace.relative_to(self.files.root)
        return msgspec.structs.replace(changed, workspace=workspace)

    def explain(self, key: str) -> Explanation:
        """Returns the setting's value, the place that the value comes from, and the values that it
        overrides."""
        explanation = self.sources.explain(schema().field(key))
        if explanation.key == "workspace":
            return msgspec.structs.replace(explanation, value=self.workspace)
        return explanation

    def keys(self) -> tuple[str, ...]:
        """Returns the keys of all settings. Platform settings are included only if they are set."""
        general = (key for key in schema().fields if ANY_NAME not in key)
        return tuple(dict.fromkeys((*general, *sorted(self.sources.found))))

    def is_on(self, key: str) -> bool:
        """Returns the value of a boolean setting of the gateway. Raises ConfigError if there is no
        such setting."""
        value: object = self
        field = schema().field(key)
        if field.key in schema().fields:
            for name in field.key.split("."):
                value = getattr(value, name)
        if not isinstance(value, bool):
            raise ConfigError(
                f"{key!r} is not a setting whose value is true or false: name a boolean setting"
            )
        return value

    def secrets(self) -> frozenset[str]:
        """Returns all values that must never be shown or logged."""
        web, auxiliary = self.web, self.auxiliary
        keys = (self.model.api_key, self.api_server.key, auxiliary.api_key, web.brave_key)
        addresses = (self.store.url, self.store.direct_url, self.bus.url)
        passed = {self.sources.environ.get(name, "") for name in self.terminal.secrets}
        passed.add(self.terminal.sudo_password)
        own = {*keys, *addresses, *passed, web.tavily_key, _made_key(self.home)} - {""}
        return self.sources.secrets | own


def _made_key(home: Home) -> str:
    """Returns the key in the key file of the home, or "" if the file can't be read."""
    try:
        return home.api_key.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""


_DERIVED = ("home", "warnings", "sources")


def schema() -> Schema:
    """Returns the schema of all settings."""
    return Schema.of(Settings, _DERIVED)


def describe() -> list[FieldDoc]:
    """Describes every setting for the reference page. The settings that all platforms have are
    listed only once."""
    home = FieldDoc(
        key="HERMES_HOME",
        type="a path",
        default="~/.hermes",
        env=("HERMES_HOME",),
        text="The home: the folder of all data. It can be set in the environment only.",
    )
    return [home, *describe_fields(Settings, _DERIVED)]


def load(home: Path | None = None, environ: Mapping[str, str] = ENVIRON) -> Settings:
    """Reads the configuration. Raises a ConfigError that lists all problems.

    Files and folders with secrets are first made accessible to their owner only.
    """
    where = locate(home, environ)
    protect(where)
    return read(where, environ)


def read(home: Home, environ: Mapping[str, str] = ENVIRON) -> Settings:
    """Reads the configuration like `load`, but changes no permissions."""
    return assemble(home, ConfigFiles.of(home), environ)


def locate(home: Path | None = None, environ: Mapping[str, str] = ENVIRON) -> Home:
    """Returns the home that `load` would read."""
    root = home or Path(environ.get("HERMES_HOME") or "~/.hermes")
    return Home(root=root.expanduser().absolute())


def assemble(home: Home, files: ConfigFiles, environ: Mapping[str, str]) -> Settings:
    """Returns the settings from these files and this environment."""
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
    problems += [
        *_access_problems(settings),
        *_role_problems(settings),
        *_zone_problems(settings),
        *_shared_folder_problems(settings),
        *_busy_mode_problems(settings),
        *network_problems(settings.terminal),
        *approval_problems(settings.approvals),
    ]
    if problems:
        raise ConfigProblems(problems)
    return settings


def _built(home: Home, sections: Mapping[str, Mapping[str, object]]) -> Settings:
    top = dict(sections.get("", {}))
    workspace = top.pop("workspace", Path("workspace"))
    platforms = {
        section.partition(".")[2]: msgspec.convert(values, PlatformSettings)
        for section, values in sections.items()
        if section.startswith("platforms.")
    }
    plain = {key: values for key, values in sections.items() if key and "." not in key}
    settings = msgspec.convert({**top, **plain, "home": home}, Settings)
    assert isinstance(workspace, Path)
    return msgspec.structs.replace(
        settings, workspace=settings.files.root / workspace, platforms=platforms
    )


_LOOPBACK = re.compile(r"localhost|::1|127(\.\d{1,3}){3}")


def _access_problems(settings: Settings) -> list[str]:
    """Returns mistakes in the settings that would give strangers access to the API."""
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


def _role_problems(settings: Settings) -> list[str]:
    named = {"owners": settings.access.owners, "admins": settings.access.admins}
    return [
        f"{settings.explain(f'access.{role}').source}: access.{role} needs the platform of {id!r}:"
        f" write it like 'telegram:{id.strip(':')}'"
        for role, ids in named.items()
        for id in ids
        if not all(id.partition(":"))
    ]


def _zone_problems(settings: Settings) -> list[str]:
    if not settings.timezone:
        return []
    import zoneinfo  # noqa: PLC0415  # rarely needed

    try:
        zoneinfo.ZoneInfo(settings.timezone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        source = settings.explain("timezone").source
        return [f"{source}: timezone {settings.timezone!r} is not known: try 'Europe/Berlin'"]
    return []


def _busy_mode_problems(settings: Settings) -> list[str]:
    known = get_args(BusyMode)
    return [
        f"platforms.{name}.busy_input_modes: {mode!r} is no mode: use one of {', '.join(known)}"
        for name, platform in settings.platforms.items()
        for mode in platform.busy_input_modes.values()
        if mode not in known
    ]


def _shared_folder_problems(settings: Settings) -> list[str]:
    if not settings.store.shared_folder:
        return []
    folder, home = settings.files.root, settings.home.root
    prefix = (
        f"{settings.explain('store.shared_folder').source}: store.shared_folder {str(folder)!r}"
    )
    if not folder.is_absolute():
        return [f"{prefix} is a relative path: write the whole path"]
    if folder.resolve().is_relative_to(home.resolve()):
        return [f"{prefix} is in the home {home}, which other machines don't share"]
    return []
