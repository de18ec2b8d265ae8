"""Finds and explains settings by name: general settings, and settings of the installed
platforms."""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

from hermes.core.models.catalog import Catalog
from hermes.settings import Settings, schema
from hermes.settings.models import explain
from hermes.settings.platforms import PlatformField, platform_config, platform_fields
from hermes.settings.schema import SETTINGS_HINT, Field
from hermes.settings.sources import Explanation
from hermes.text.spelling import did_you_mean
from hermes.types.errors import ConfigError
from hermes.types.platforms import AnyPlatform


class KnownSettings:
    """All settings that can be read and changed by name.

    A name is a key, an alias of a key, or a variable. The platforms are loaded only for a name that
    is not the name of a general setting. So people can change general settings even if a plugin
    can't be loaded.
    """

    def __init__(self, platforms: Callable[[], Sequence[AnyPlatform]] = tuple) -> None:
        self._platforms = platforms

    def field(self, name: str) -> Field:
        """Returns the setting with this name. Raises ConfigError if there is no such setting."""
        if found := _general(name):
            return found
        return self._own(name).field

    def is_variable(self, name: str) -> bool:
        """Returns whether this is the name of an environment variable, and not a key of
        config.yaml."""
        if _is_general(name):
            return bool(schema().field_of_variable(name)) or name in Catalog.load().variables
        found = self._by_name.get(name)
        return found is not None and name in found.variables

    def explain(self, settings: Settings, name: str) -> Explanation:
        """Returns the value of a setting or of a provider's variable, and the place that the value
        comes from."""
        if _is_general(name):
            return explain(settings, name)
        return self._own(name).explain(settings)

    def check(self, settings: Settings, name: str) -> None:
        """Raises ConfigProblems if the name belongs to a platform whose settings are wrong."""
        found = None if _is_general(name) else self._by_name.get(name)
        if found is not None:
            platform_config(settings, found.platform)

    def explain_platforms(self, settings: Settings) -> Iterator[Explanation]:
        """Yields the settings of platforms that have been set. Settings with their default value
        are left out."""
        for field in dict.fromkeys(self._by_name.values()):
            explanation = field.explain(settings)
            if explanation.source != "default":
                yield explanation

    def _own(self, name: str) -> PlatformField:
        if found := self._by_name.get(name):
            return found
        hint = did_you_mean(name, {*schema().fields, *schema().variables, *self._by_name})
        raise ConfigError(f"unknown setting {name!r}{hint or SETTINGS_HINT}")

    @cached_property
    def _by_name(self) -> dict[str, PlatformField]:
        """The settings of all platforms. The mapping contains a setting under each of its names."""
        found = [field for platform in self._platforms() for field in platform_fields(platform)]
        return {name: one for one in found for name in one.names}


def _general(name: str) -> Field | None:
    return schema().at(name) or schema().field_of_variable(name)


def _is_general(name: str) -> bool:
    """Returns whether a general setting or a provider's variable has this name."""
    return _general(name) is not None or name in Catalog.load().variables
