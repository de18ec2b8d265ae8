"""The settings that decide which model answers, as plain values."""

from enum import IntEnum
from pathlib import Path

import msgspec

from hermes.types.value import Value


class SettingLayer(IntEnum):
    """Where a setting was given; a later layer wins."""

    DEFAULT = 0
    CONFIG = 1
    DOTENV = 2
    ENVIRONMENT = 3


class SettingSource(Value):
    """Where one setting was given."""

    layer: SettingLayer = SettingLayer.DEFAULT
    text: str = "default"
    """As a person reads it: `environment HERMES_MODEL` or `config.yaml line 3`."""


class EndpointConfig(Value):
    """The settings of one section that name a model and the endpoint that serves it."""

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
    """Name of the wire format of the main model; `auto` for the provider's."""
    fallbacks: tuple[str, ...] = ()
    custom_base_url: str = ""
    """Address of the provider `custom` where the main section has none."""
    context_length: int | None = None
    max_tokens: int | None = None
    attachments: tuple[str, ...] | None = None
    """Kinds of attachments that the main model accepts; None if the settings don't say."""
    input_price: float | None = None
    output_price: float | None = None
    sources: dict[str, SettingSource] = msgspec.field(default_factory=dict)
    """By the key of the setting; a setting that has its default is left out."""
    variables: dict[str, str] = msgspec.field(default_factory=dict)
    """The environment variable of a setting, by its key."""
    environ: dict[str, str] = msgspec.field(default_factory=dict)
    """The .env file, and over it the environment of the process."""
    process: frozenset[str] = frozenset()
    """Names of the variables that come from the environment of the process."""
    config_file: Path = Path("config.yaml")
    dotenv_file: Path = Path(".env")
    models: Path = Path("models")
    """The folder of model files."""
    cache: Path = Path("cache")
    """The folder of lists of models."""

    def __repr__(self) -> str:
        return f"ModelConfig(main={self.main!r})"

    def layer(self, key: str) -> SettingLayer:
        return self.sources.get(key, SettingSource()).layer

    def source(self, key: str) -> str:
        """Where the setting was given, as a person reads it."""
        return self.sources.get(key, SettingSource()).text

    def variable_source(self, name: str) -> str:
        """Where a variable is set, as a person reads it; empty without a name."""
        if not name:
            return ""
        return f"environment {name}" if name in self.process else f"{self.dotenv_file} {name}"
