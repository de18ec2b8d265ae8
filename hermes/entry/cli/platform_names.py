"""Checks the names of platforms that people type at the command line."""

from hermes.entry.cli.runtime import Runtime
from hermes.text.spelling import did_you_mean
from hermes.types.errors import HermesError


class UnknownPlatform(HermesError):
    code = "unknown_platform"
    status = 404


def check_platform(runtime: Runtime, name: str) -> None:
    """Raises UnknownPlatform if no platform with this name is installed."""
    platforms = {platform.name for platform in runtime.platforms()}
    if name not in platforms:
        hint = did_you_mean(name, platforms) or f": there are {', '.join(sorted(platforms))}"
        raise UnknownPlatform(f"there is no platform {name!r}{hint}")
