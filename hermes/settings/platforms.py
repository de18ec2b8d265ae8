"""Reads the settings of chat platforms, whose types come from the platforms' manifests."""

import sys
from collections.abc import Iterator, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from hermes.settings import Settings, schema
from hermes.settings.schema import (
    ANY_NAME,
    Field,
    FieldDoc,
    convert,
    describe_type,
    docstrings,
    own_fields,
)
from hermes.settings.sources import (
    CONFIG,
    DOTENV,
    ENVIRONMENT,
    ConfigProblems,
    Explanation,
    FoundValue,
    PlatformSection,
    expanded,
)
from hermes.text.spelling import nearest, suggestion
from hermes.types.platforms import AnyPlatform, ConfigT, Platform

_SAME_PLATFORM, _SAME_SETTING = 0.75, 0.9
"""Minimum similarity (from 0 to 1) at which an unknown name counts as a misspelling. The first
value is for the names of platforms, and the second value is for the names of settings."""


class PlatformField:
    """A setting that the manifest of a platform declares."""

    def __init__(self, platform: AnyPlatform, short: Field) -> None:
        section = f"platforms.{platform.name}"
        env = tuple(name.format(platform.name.upper()) for name in short.aliases.env)
        keys = tuple(f"{section}.{key}" for key in short.aliases.keys)
        self.platform = platform
        self.field = replace(
            short,
            key=f"{section}.{short.key}",
            aliases=replace(short.aliases, env=env, keys=keys),
        )
        """The setting with its full key and the names of its variables."""
        self._short = short

    @property
    def variables(self) -> tuple[str, ...]:
        return self.field.aliases.env

    @property
    def names(self) -> tuple[str, ...]:
        """The key, its aliases and the variables."""
        return (self.field.key, *self.field.aliases.keys, *self.variables)

    def explain(self, settings: Settings) -> Explanation:
        """Returns the value, the place that it comes from, and the values that it overrides.

        If the value is a mapping of sections, only the names of the sections are shown, because
        their contents may be secret.
        """
        found = [_shown(settings, one) for one in _all_found(settings, self.platform, self._short)]
        sources = replace(settings.sources, found={self.field.key: tuple(reversed(found))})
        return sources.explain(self.field)


def platform_fields(platform: AnyPlatform) -> Iterator[PlatformField]:
    """Yields the settings that the manifest of the platform declares."""
    yield from (PlatformField(platform, field) for field in own_fields(platform.config))


def describe_platform(platform: AnyPlatform) -> list[FieldDoc]:
    """Describes the platform's own settings for the reference page."""
    texts = docstrings(sys.modules[platform.config.__module__])
    return [
        FieldDoc(
            key=one.field.key,
            type=describe_type(one.field.kind) or "a mapping",
            default=one.field.default,
            env=one.variables,
            text=texts.get((one.field.owner, one.field.name), ""),
        )
        for one in platform_fields(platform)
    ]


def platform_config(settings: Settings, platform: Platform[ConfigT]) -> ConfigT:
    """Returns the platform's own settings. If the settings have problems, raises a ConfigProblems
    that lists all of them.

    A variable takes precedence over config.yaml, as for every setting.
    """
    values: dict[str, object] = {}
    problems = list(_unknown_settings(settings, platform))
    for field in own_fields(platform.config):
        found = next(iter(_all_found(settings, platform, field)), None)
        if found is None:
            continue
        key = f"platforms.{platform.name}.{field.key}"
        try:
            values[field.key] = convert(field, _value(settings, found))
        except KeyError as error:
            missing = f"needs the variable {error.args[0]}, which is not set"
            problems.append(f"{found.source}: {key} {missing}")
        except ValueError as error:
            problems.append(f"{found.source}: {key}: {error}")
    required = {info.name for info in msgspec.structs.fields(platform.config) if info.required}
    if not problems:
        problems += [
            f"platforms.{platform.name}.{name} is not set: add it to {settings.home.config}"
            for name in sorted(required - values.keys())
        ]
    if problems:
        raise ConfigProblems(problems)
    return platform.config(**values)


def check_platforms(settings: Settings, platforms: Sequence[AnyPlatform]) -> tuple[str, ...]:
    """Returns warnings about ignored settings. Raises ConfigProblems for misspelt names."""
    known = {platform.name: platform for platform in platforms}
    file, warnings, problems = settings.home.config.name, [], []
    for name, section in settings.sources.platforms.items():
        if platform := known.get(name):
            warnings += [
                f"{file}: platforms.{name}.{setting} is not supported yet and is ignored"
                for setting in _undeclared(section, platform)
                if schema().unsupported(f"platforms.{name}.{setting}")
            ]
            continue
        near = nearest(name, known, _SAME_PLATFORM)
        if near:
            problems.append(_misspelt(section.source, f"platforms.{name}", f"platforms.{near}"))
            continue
        problems += [
            _misspelt(found.source, f"platforms.{name}.{setting}", f"platforms.{name}.{near}")
            for setting, found in section.settings.items()
            if (near := nearest(setting, _general_settings(), _SAME_SETTING))
        ]
        warnings.append(f"{file}: platforms.{name} is ignored: this platform is not installed")
    if problems:
        raise ConfigProblems(problems)
    return tuple(warnings)


def _all_found(settings: Settings, platform: AnyPlatform, field: Field) -> Iterator[FoundValue]:
    """Yields the values of a setting in the order of their precedence: first from the environment,
    then from .env, then from config.yaml."""
    sources = settings.sources
    names = [name.format(platform.name.upper()) for name in field.aliases.env]
    dotenv = str(settings.home.dotenv)
    for layer, label, values in (
        (ENVIRONMENT, "environment", sources.process),
        (DOTENV, dotenv, sources.dotenv),
    ):
        for name in names:
            if name in values:
                yield FoundValue(layer=layer, source=f"{label} {name}", value=values[name])
    section = sources.platforms.get(platform.name, PlatformSection(source=""))
    for place in (field.key, *field.aliases.keys):
        if found := _at(section, place):
            yield found


def _shown(settings: Settings, found: FoundValue) -> FoundValue:
    """Returns the value as it is shown to people."""
    if isinstance(found.value, Mapping) and any(
        isinstance(one, Mapping) for one in found.value.values()
    ):
        return replace(found, value=", ".join(found.value))
    try:
        return replace(found, value=_value(settings, found))
    except KeyError:
        return found


def _value(settings: Settings, found: FoundValue) -> object:
    # `${NAME}` is replaced only in values from config.yaml.
    inside = found.layer == CONFIG
    return expanded(found.value, settings.sources.environ) if inside else found.value


def _at(section: PlatformSection, place: str) -> FoundValue | None:
    setting, *path = place.split(".")
    found = section.settings.get(setting)
    for name in path:
        below = found.value if found else None
        if not isinstance(below, Mapping) or name not in below:
            return None
        assert found is not None
        found = replace(found, value=below[name])
    return found


def _unknown_settings(settings: Settings, platform: AnyPlatform) -> Iterator[str]:
    section = settings.sources.platforms.get(platform.name, PlatformSection(source=""))
    known = {*_general_settings(), *(field.key for field in own_fields(platform.config))}
    for setting, found in _undeclared(section, platform).items():
        key = f"platforms.{platform.name}.{setting}"
        near = nearest(setting, known)
        if not schema().unsupported(key):
            yield _misspelt(found.source, key, f"platforms.{platform.name}.{near}" if near else "")


def _undeclared(section: PlatformSection, platform: AnyPlatform) -> dict[str, FoundValue]:
    """Returns the settings in the section that are not fields of the platform's config type."""
    places = [(field.key, *field.aliases.keys) for field in own_fields(platform.config)]
    declared = {place.partition(".")[0] for names in places for place in names}
    return {name: found for name, found in section.settings.items() if name not in declared}


def _general_settings() -> set[str]:
    """Returns the names of the settings that every platform has."""
    named = (key.partition(f".{ANY_NAME}.")[2] for key in schema().fields)
    return {name for name in named if name}


def _misspelt(source: str, key: str, near: str) -> str:
    return f"{source}: unknown key {key!r}{suggestion(near)}"
