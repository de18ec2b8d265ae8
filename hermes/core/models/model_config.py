"""The settings about models, as plain values."""

from enum import IntEnum
from pathlib import Path

import msgspec

from hermes.types.value import Value


class SettingLayer(IntEnum):
    """The place where a setting was given. If a setting was given in several places, the place with
    the highest number takes precedence."""

    DEFAULT = 0
    CONFIG = 1
    DOTENV = 2
    ENVIRONMENT = 3


class SettingSource(Value):
    """The place where the value of one setting was given."""

    layer: SettingLayer = SettingLayer.DEFAULT
    text: str = "default"
    """The place where the setting was given, in words for people, such as `environment
    HERMES_MODEL` or `config.yaml line 3`."""


class EndpointConfig(Value):
    """The model and the endpoint that one section of the settings names."""

    section: str
    provider: str = ""
    model: str = ""
    base_url: str = ""
    api_key: str = ""
    key_address: str = ""
    """The address for which the key was stored: the address that was set in the same place as the
    key, or in a place of lower precedence. Empty if no such address is set."""

    def __repr__(self) -> str:
        return f"EndpointConfig(section={self.section!r})"


class ModelConfig(Value):
    """All settings about models, and where each setting comes from."""

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
    """The place where each setting was given, by the key of the setting, such as `model.default`.
    Settings with their default value are left out."""
    variables: dict[str, str] = msgspec.field(default_factory=dict)
    """The environment variable that can set each setting, by the key of the setting."""
    environ: dict[str, str] = msgspec.field(default_factory=dict)
    """The variables of the .env file and of the process environment. The process environment takes
    precedence."""
    process: frozenset[str] = frozenset()
    """Names of the variables in the process environment. All other variables are in the .env
    file."""
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
        """Returns where the setting comes from, in words for people."""
        return self.sources.get(key, SettingSource()).text

    def variable_source(self, name: str) -> str:
        """Returns where a variable is set, in words for people, or "" for an empty name."""
        if not name:
            return ""
        return f"environment {name}" if name in self.process else f"{self.dotenv_file} {name}"
