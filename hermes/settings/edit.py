"""Changes settings in config.yaml and .env. Changes are checked first, and comments are kept."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from hermes.core.models.catalog import Catalog
from hermes.settings import ENVIRON, assemble, locate, schema
from hermes.settings.config_file import dumped, edits, lost_comments
from hermes.settings.env_file import with_assignment, without_assignments
from hermes.settings.known_settings import KnownSettings
from hermes.settings.schema import Field, convert
from hermes.settings.sources import ConfigFiles, ConfigProblems, config_version, migrated, read_yaml
from hermes.state.paths import Home, write_private
from hermes.types.errors import ConfigError
from hermes.types.providers import CUSTOM
from hermes.types.value import Value

GENERAL_SETTINGS = KnownSettings()
"""The general settings, without the settings that platforms declare."""


class Change(Value):
    """A change that was written to a file."""

    path: Path
    name: str
    """The key in config.yaml, or the variable in .env."""
    backup: Path | None = None
    """A copy of the old file, if the new file has lost comments or has a new version; otherwise
    None."""
    overruled_by: str = ""
    """The place of another value that overrides the changed value: an environment variable or a
    file. Empty if nothing overrides the changed value."""


def set_value(
    key: str,
    text: str,
    home: Path | None = None,
    environ: Mapping[str, str] = ENVIRON,
    known: KnownSettings = GENERAL_SETTINGS,
) -> Change:
    """Sets a setting or a variable. If the value is invalid, raises ConfigError and writes nothing.

    Secrets and variables are written to .env, and other settings to config.yaml.
    """
    where = locate(home, environ)
    files = ConfigFiles.of(where)
    if known.is_variable(key):
        return _set_variable(where, files, environ, key, text, known)
    field = known.field(key)
    if field.aliases.secret and field.aliases.env:
        name = _variable(field, where, files, environ)
        return _set_variable(where, files, environ, name, text, known)
    config, kept = _with_value(where, files.config or "", field, _parsed(field, text))
    fresh = ConfigFiles(config=config, dotenv=files.dotenv)
    ours = str(where.config)
    overruled_by = _verified(where, files, fresh, environ, known, (field.key, ours))
    backup = None if kept else _backed_up(where, files.config or "")
    write_private(where.config, config)
    return Change(path=where.config, name=field.key, backup=backup, overruled_by=overruled_by)


def unset_value(
    key: str,
    home: Path | None = None,
    environ: Mapping[str, str] = ENVIRON,
    known: KnownSettings = GENERAL_SETTINGS,
) -> tuple[Change, ...]:
    """Removes a setting from both files, or a variable from .env. Returns one change for each
    changed file."""
    where = locate(home, environ)
    files = ConfigFiles.of(where)
    config, kept = files.config or "", True
    if known.is_variable(key):
        dotenv = without_assignments(files.dotenv or "", (key,))
    else:
        field = known.field(key)
        key = field.key
        config, kept = _without_value(where, config, field)
        dotenv = without_assignments(files.dotenv or "", field.aliases.env)
    fresh = ConfigFiles(config=config, dotenv=dotenv)
    left = _verified(where, files, fresh, environ, known, (key, "default"))
    changes = []
    if config != (files.config or ""):
        backup = None if kept else _backed_up(where, files.config or "")
        write_private(where.config, config)
        changes.append(Change(path=where.config, name=key, backup=backup, overruled_by=left))
    if dotenv != (files.dotenv or ""):
        write_private(where.dotenv, dotenv)
        changes.append(Change(path=where.dotenv, name=key, overruled_by=left))
    if not changes:
        hint = f"; {left} sets it" if left else ""
        raise ConfigError(f"{key} is set neither in {where.config} nor in {where.dotenv}{hint}")
    return tuple(changes)


def _set_variable(
    home: Home,
    files: ConfigFiles,
    environ: Mapping[str, str],
    name: str,
    text: str,
    known: KnownSettings,
) -> Change:
    dotenv = with_assignment(files.dotenv or "", name, text)
    fresh = ConfigFiles(config=files.config, dotenv=dotenv)
    ours = f"{home.dotenv} {name}"
    overruled_by = _verified(home, files, fresh, environ, known, (name, ours))
    write_private(home.dotenv, dotenv)
    return Change(path=home.dotenv, name=name, overruled_by=overruled_by)


def migrate(home: Path | None = None, environ: Mapping[str, str] = ENVIRON) -> Path | None:
    """Migrates config.yaml to the current version. Returns the backup, or None if the file was
    current."""
    where = locate(home, environ)
    text = ConfigFiles.of(where).config or ""
    raw = read_yaml(where.config, text).raw
    wanted, moved = migrated(raw)
    if not moved:
        return None
    backup = _backed_up(where, text)
    write_private(where.config, _rewritten(where, text, raw, wanted)[0])
    return backup


def _backed_up(home: Home, text: str) -> Path | None:
    if not text.strip():
        return None
    old = config_version(read_yaml(home.config, text).raw)
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    backup = home.config.with_name(f"{home.config.name}.bak-{old}-{stamp}")
    write_private(backup, text)
    return backup


def _parsed(field: Field, text: str) -> object:
    if "${" in text:
        return text
    try:
        value = convert(field, text)
    except ValueError as error:
        raise ConfigError(f"{field.key}: {error}") from error
    match value:
        case tuple():
            return list(value)
        case Path():
            return str(value)
        case _:
            return value


def _verified(
    home: Home,
    old: ConfigFiles,
    new: ConfigFiles,
    environ: Mapping[str, str],
    known: KnownSettings,
    change: tuple[str, str],
) -> str:
    """Returns the place of another value that overrides the change: an environment variable or a
    file. Returns "" if nothing overrides the change. Raises ConfigProblems if the change causes new
    problems.

    `change` is a pair: the name of the setting, and the beginning of the text with which `explain`
    describes the place of the new value.
    """
    key, ours = change
    try:
        settings = assemble(home, new, environ)
        known.check(settings, key)
        found = known.explain(settings, key).source
    except ConfigProblems as error:
        before = _problems(home, old, environ, known, key)
        fresh = [one for one in error.problems if one not in before]
        if fresh:
            raise ConfigProblems(fresh) from error
        return ""
    return "" if found == "default" or found.startswith(ours) else found


def _problems(
    home: Home,
    files: ConfigFiles,
    environ: Mapping[str, str],
    known: KnownSettings,
    key: str,
) -> tuple[str, ...]:
    try:
        known.check(assemble(home, files, environ), key)
    except ConfigProblems as error:
        return error.problems
    return ()


def _variable(field: Field, home: Home, files: ConfigFiles, environ: Mapping[str, str]) -> str:
    """Returns the name of the variable in .env that stores a secret. For the key of a provider,
    this is the provider's own variable."""
    if field.key != "model.api_key":
        return field.aliases.env[0]
    try:
        model = assemble(home, files, environ).model
    except ConfigProblems:
        return field.aliases.env[0]
    if model.base_url:
        return field.aliases.env[0]
    if model.provider in ("", "auto"):
        raise ConfigError(
            "model.api_key does not say which endpoint the key is for: set model.base_url or"
            " model.provider first, or set the provider's own variable instead, as in"
            f" `hermes config set {Catalog.load().providers[0].keys[0]} …`"
        )
    provider = Catalog.load().named(model.provider)
    return (provider.keys or Catalog.load().named(CUSTOM).keys)[0]


def _with_value(home: Home, text: str, field: Field, value: object) -> tuple[str, bool]:
    """Returns the file with the new value, and whether its comments were kept."""
    raw = read_yaml(home.config, text).raw
    fresh, _ = migrated(raw)
    return _rewritten(home, text, raw, _put(fresh, _place(fresh, field), value))


def _without_value(home: Home, text: str, field: Field) -> tuple[str, bool]:
    """Returns the text of the file without the setting, and whether all comments were kept."""
    raw = read_yaml(home.config, text).raw
    fresh, _ = migrated(raw)
    wanted = fresh
    for place in (field.key, *field.aliases.keys):
        # A setting can have the name of a section as an alias, as `model.default` has `model`. If
        # the file has that section, it is not removed, because it may contain other settings.
        if place not in schema().sections or not isinstance(fresh.get(place), Mapping):
            wanted = _dropped(wanted, place)
    return (text, True) if wanted == fresh else _rewritten(home, text, raw, wanted)


def _rewritten(
    home: Home, text: str, raw: Mapping[str, object], wanted: Mapping[str, object]
) -> tuple[str, bool]:
    """Returns the text with the wanted values, and whether the comments and the version of the old
    text were kept."""
    found = (one for one in edits(text, raw, wanted) if _reads_as(home, one, wanted))
    fresh = next(found, dumped(wanted))
    return fresh, not lost_comments(text, fresh) and config_version(raw) == config_version(wanted)


def _place(raw: Mapping[str, object], field: Field) -> str:
    """Returns the key under which a value of the setting belongs in the file. If the file has the
    short form of a section, such as `model: gpt-x`, this is the name of the section."""
    section = field.key.partition(".")[0]
    if section == field.key or raw.get(section) is None or isinstance(raw[section], Mapping):
        return field.key
    return section if section in field.aliases.keys else field.key


def _dropped(raw: Mapping[str, object], key: str) -> dict[str, object]:
    """Returns the values without the key, and without sections that become empty."""
    name, _, rest = key.partition(".")
    section = raw.get(name)
    if rest and isinstance(section, Mapping):
        left = _dropped(section, rest)
        if left or not section:
            return {**raw, name: left}
    elif rest:
        return dict(raw)
    return {one: value for one, value in raw.items() if one != name}


def _reads_as(home: Home, text: str, wanted: Mapping[str, object]) -> bool:
    try:
        return read_yaml(home.config, text).raw == wanted
    except ConfigError:
        return False


def _put(raw: Mapping[str, object], key: str, value: object) -> dict[str, object]:
    name, _, rest = key.partition(".")
    if not rest:
        return {**raw, name: value}
    section = raw.get(name)
    if not isinstance(section, Mapping):
        # `model: gpt-x` is the short form of `model: {default: gpt-x}`.
        section = {"default": section} if name == "model" and section else {}
    return {**raw, name: _put(section, rest, value)}
