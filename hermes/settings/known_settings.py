"""Finds and explains settings by name: the general ones and those of the installed platforms."""

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

    A name is a key, an alias of a key, or a variable. The platforms are requested only if a name is
    not the name of a general setting, because a plugin that can't be loaded must not keep people
    from changing other settings.
    """

    def __init__(self, platforms: Callable[[], Sequence[AnyPlatform]] = tuple) -> None:
        self._platforms = platforms

    def field(self, name: str) -> Field:
        """Returns the setting. Raises ConfigError if there is none."""
        if found := _general(name):
            return found
        return self._own(name).field

    def is_variable(self, name: str) -> bool:
        """Returns whether the name is the name of a variable."""
        if _is_general(name):
            return bool(schema().field_of_variable(name)) or name in Catalog.load().variables
        found = self._by_name.get(name)
        return found is not None and name in found.variables

    def explain(self, settings: Settings, name: str) -> Explanation:
        """Returns the value and the source of a setting or of a provider's variable."""
        if _is_general(name):
            return explain(settings, name)
        return self._own(name).explain(settings)

    def check(self, settings: Settings, name: str) -> None:
        """Raises ConfigProblems if the name belongs to a platform whose settings are wrong."""
        found = None if _is_general(name) else self._by_name.get(name)
        if found is not None:
            platform_config(settings, found.platform)

    def explain_platforms(self, settings: Settings) -> Iterator[Explanation]:
        """Yields the settings of platforms that have a value."""
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
        """The platforms' own settings, by every name that they have."""
        found = [field for platform in self._platforms() for field in platform_fields(platform)]
        return {name: one for one in found for name in one.names}


def _general(name: str) -> Field | None:
    return schema().at(name) or schema().field_of_variable(name)


def _is_general(name: str) -> bool:
    """Returns whether the name is known without the manifests of platforms."""
    return _general(name) is not None or name in Catalog.load().variables
