"""The settings about models, as plain values."""

from enum import IntEnum
from pathlib import Path

import msgspec

from hermes.types.value import Value


class SettingLayer(IntEnum):
    """The place where a setting was given. A higher layer takes precedence."""

    DEFAULT = 0
    CONFIG = 1
    DOTENV = 2
    ENVIRONMENT = 3


class SettingSource(Value):
    """The source of one setting."""

    layer: SettingLayer = SettingLayer.DEFAULT
    text: str = "default"
    """The source in words for people: `environment HERMES_MODEL` or `config.yaml line 3`."""


class EndpointConfig(Value):
    """The model and the endpoint that one section of the settings names."""

    section: str
    provider: str = ""
    model: str = ""
    base_url: str = ""
    api_key: str = ""

    def __repr__(self) -> str:
        return f"EndpointConfig(section={self.section!r})"


class ModelConfig(Value):
    """All settings about models, with their sources."""

    main: EndpointConfig = EndpointConfig(section="model")
    auxiliary: EndpointConfig = EndpointConfig(section="auxiliary")
    wire: str = "auto"
    """Name of the wire format of the main model; `auto` for the provider's default."""
    fallbacks: tuple[str, ...] = ()
    custom_base_url: str = ""
    """Address of the provider `custom`. It is used if the main section has no address."""
    context_length: int | None = None
    max_tokens: int | None = None
    attachments: tuple[str, ...] | None = None
    """Kinds of attachments that the main model accepts; None if the settings don't say."""
    input_price: float | None = None
    output_price: float | None = None
    sources: dict[str, SettingSource] = msgspec.field(default_factory=dict)
    """The source of each setting. Settings with their default value are left out."""
    variables: dict[str, str] = msgspec.field(default_factory=dict)
    """The name of the environment variable for each setting."""
    environ: dict[str, str] = msgspec.field(default_factory=dict)
    """The variables of the .env file and of the process. The variables of the process take
    precedence."""
    process: frozenset[str] = frozenset()
    """Names of the variables that are set in the process."""
    config_file: Path = Path("config.yaml")
    dotenv_file: Path = Path(".env")
    models: Path = Path("models")
    """Folder of the model files."""
    cache: Path = Path("cache")
    """Folder of the cached model lists."""

    def __repr__(self) -> str:
        return f"ModelConfig(main={self.main!r})"

    def layer(self, key: str) -> SettingLayer:
        return self.sources.get(key, SettingSource()).layer

    def source(self, key: str) -> str:
        """Returns the source of the setting, in words for people."""
        return self.sources.get(key, SettingSource()).text

    def variable_source(self, name: str) -> str:
        """Returns where a variable is set, in words for people, or "" for an empty name."""
        if not name:
            return ""
        return f"environment {name}" if name in self.process else f"{self.dotenv_file} {name}"
