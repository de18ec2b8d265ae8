"""The workspace of a person at a terminal."""

from pathlib import Path

from msgspec.structs import replace

from hermes.settings import Settings
from hermes.settings.sources import DEFAULT
from hermes.types.errors import ConfigError


def here(settings: Settings) -> Settings:
    """Returns settings with the current directory as the workspace, unless a workspace is
    configured."""
    if settings.sources.layer("workspace") != DEFAULT:
        return settings
    try:
        return replace(settings, workspace=Path.cwd())
    except FileNotFoundError:
        raise ConfigError(
            "the current directory no longer exists: change to another directory"
        ) from None
