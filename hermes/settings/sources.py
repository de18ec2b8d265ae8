"""Reads settings from config.yaml, .env and the environment, and notes where each value was set."""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote

import msgspec

from hermes.settings.env_file import read_dotenv
from hermes.settings.schema import Field, Schema, convert
from hermes.state.paths import Home
from hermes.text.spelling import nearest, suggestion
from hermes.types.errors import ConfigError
from hermes.types.value import Value

DEFAULT, CONFIG, DOTENV, ENVIRONMENT = range(4)
"""The layers of the configuration: the default values, config.yaml, .env and the environment. A
value in a higher layer takes precedence over values in lower layers."""
VERSION = 1
"""The version of config.yaml that we write. The program Hermes Agent writes higher versions."""

_VARIABLE = re.compile(r"\$\{(\w+)\}")
_SECRET_NAME = re.compile(
    r"(?i)(key|token|secret|passw(or)?d|passphrase|credentials?|authorization|(^|[_-])(pass|auth)"
    r"|[_-]pwd)s?[_-]?\d{0,2}$"
)
# The address of a NATS server may contain a token instead of a user and a password.
_IN_ADDRESS = re.compile(r"(?:://[^\s/:@]{0,256}:|nats://(?=[^\s/:@]+@))([^\s/]+)@")


class ConfigProblems(ConfigError):
    """All problems of a configuration, one line each."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


class ConfigFiles(Value):
    """The texts of config.yaml and .env; None for a missing file."""

    config: str | None = None
    dotenv: str | None = None

    def __repr__(self) -> str:
        return "ConfigFiles()"

    @staticmethod
    def of(home: Home) -> "ConfigFiles":
        return ConfigFiles(config=_text(home.config), dotenv=_text(home.dotenv))


class FoundValue(Value):
    """One value of a setting, and the place where it was set."""

    layer: int
    source: str
    value: object

    def __repr__(self) -> str:
        return f"FoundValue(source={self.source!r})"


class Explanation(Value):
    """A setting's value, and where it comes from."""

    key: str
    value: object
    source: str
    """The place that the value comes from: `environment HERMES_MODEL`,
    `/home/me/.hermes/config.yaml line 3` or `default`."""
    shadowed: tuple[tuple[str, object], ...] = ()
    """Overridden values, each with the place where it was set. The value with the highest
    precedence comes first."""
    secret: bool = False

    def __repr__(self) -> str:
        return f"Explanation(key={self.key!r}, source={self.source!r})"


class PlatformSection(Value):
    """The platform's own settings in config.yaml. They have not been checked."""

    source: str
    """The file and line in which the section begins."""
    settings: dict[str, FoundValue] = msgspec.field(default_factory=dict)


class Sources(Value):
    """All values that were found, before they are checked."""

    found: dict[str, tuple[FoundValue, ...]] = msgspec.field(default_factory=dict)
    """All values of each setting that were found, the value with the lowest precedence first. The
    last value is used."""
    platforms: dict[str, PlatformSection] = msgspec.field(default_factory=dict)
    """The platforms' own settings, by platform."""
    dotenv: dict[str, str] = msgspec.field(default_factory=dict)
    process: dict[str, str] = msgspec.field(default_factory=dict)
    """The process environment, without empty variables."""
    secrets: frozenset[str] = frozenset()
    warnings: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    """Warnings about ignored keys of config.yaml. A configuration of Hermes Agent has many ignored
    keys."""

    def __repr__(self) -> str:
        return f"Sources({', '.join(self.found)})"

    @property
    def environ(self) -> dict[str, str]:
        """The variables of .env and of the process. The variables of the process take
        precedence."""
        return {**self.dotenv, **self.process}

    def layer(self, key: str) -> int:
        """Returns the layer that the setting's value comes from, such as DOTENV."""
        found = self.found.get(key)
        return found[-1].layer if found else DEFAULT

    def explain(self, field: Field) -> Explanation:
        given = [(one.source, _converted(field, one)) for one in self.found.get(field.key, ())]
        (source, value), *shadowed = reversed([("default", field.default), *given])
        return Explanation(
            key=field.key,
            value=value,
            source=source,
            shadowed=tuple(shadowed),
            secret=field.aliases.secret,
        )


def _converted(field: Field, found: FoundValue) -> object:
    try:
        return convert(field, found.value)
    except ValueError:
        return found.value


class ParsedYaml(Value):
    """The values of a YAML file, and the line of each key."""

    raw: dict[str, object] = msgspec.field(default_factory=dict)
    lines: dict[str, int] = msgspec.field(default_factory=dict)
    duplicates: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"ParsedYaml({', '.join(self.raw)})"


def read_sources(
    schema: Schema, home: Home, files: ConfigFiles, environ: Mapping[str, str]
) -> tuple[Sources, list[str]]:
    """Returns the values from config.yaml, .env and the environment, and the problems of
    config.yaml."""
    dotenv, warnings = read_dotenv(home.dotenv, files.dotenv or "")
    process = {name: value for name, value in environ.items() if value}
    merged = {**dotenv, **process}
    tree = read_yaml(home.config, files.config or "")
    warnings += [f"{home.config}: {key} is given twice; the last counts" for key in tree.duplicates]
    raw, moved = migrated(tree.raw)
    if moved:
        warnings.append(f"{home.config} has an older version: `hermes config migrate` updates it")
    config = _Config(schema, home.config, tree.lines, merged, foreign=config_version(raw) > VERSION)
    config.walk(raw)
    found: dict[str, list[FoundValue]] = {}
    # The last value of a setting is used. So the value under the setting's own key is placed after
    # the values under its aliases.
    for key, _, one in sorted(config.found, key=lambda found: found[0] == found[1]):
        found.setdefault(key, []).append(one)
    for layer, label, values in (
        (DOTENV, str(home.dotenv), dotenv),
        (ENVIRONMENT, "environment", process),
    ):
        for key, name, value in _named(schema, values):
            one = FoundValue(layer=layer, source=f"{label} {name}", value=value)
            found.setdefault(key, []).append(one)
    sources = Sources(
        found={key: tuple(values) for key, values in found.items()},
        platforms=config.platforms,
        dotenv=dotenv,
        process=process,
        secrets=frozenset({*_secrets(dotenv), *_secrets(process), *_secrets(raw)}),
        warnings=tuple(warnings),
        ignored=tuple(config.ignored),
    )
    return sources, config.problems


def _named(schema: Schema, values: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    fields = {field.key: field for name in values if (field := schema.field_of_variable(name))}
    for field in fields.values():
        for name in reversed(field.aliases.env):
            if name in values:
                yield field.key, name, values[name]


class _Config:
    """Sorts the keys of config.yaml into settings, warnings and problems."""

    def __init__(
        self,
        schema: Schema,
        path: Path,
        lines: Mapping[str, int],
        environ: Mapping[str, str],
        *,
        foreign: bool,
    ) -> None:
        self.schema, self.path, self.lines, self.environ = schema, path, lines, environ
        self.foreign = foreign
        self.found: list[tuple[str, str, FoundValue]] = []
        """The settings that were found. Each item has the key of the setting, the path in the file,
        and the value."""
        self.platforms: dict[str, PlatformSection] = {}
        self.ignored: list[str] = []
        self.problems: list[str] = []

    def walk(self, raw: Mapping[str, object], section: str = "") -> None:
        for name, value in raw.items():
            key = f"{section}{name}"
            if key == "_config_version" or value is None:
                continue
            if isinstance(value, Mapping) and self.schema.is_section(key):
                if self.schema.is_platform(key):
                    self.platforms[str(name)] = PlatformSection(source=self._where(key))
                self.walk(value, f"{key}.")
            elif field := self.schema.at(key):
                self._take(field, key, value)
            elif self.schema.is_section(key):
                self.problems.append(f"{self._where(key)}: {key} must be a mapping of settings")
            elif self.schema.is_platform(section.removesuffix(".")):
                # These settings are checked later, because the platform's manifest, which declares
                # them, is not known here.
                found = FoundValue(layer=CONFIG, source=self._where(key), value=value)
                self.platforms[section.split(".")[1]].settings[str(name)] = found
            elif self.schema.unsupported(key):
                self.ignored.append(f"{self.path.name}: {key} is not supported yet and is ignored")
            else:
                self._unknown(key, value)

    def _where(self, key: str) -> str:
        line = self.lines.get(key)
        return f"{self.path} line {line}" if line else str(self.path)

    def _take(self, field: Field, key: str, value: object) -> None:
        try:
            value = expanded(value, self.environ)
        except KeyError as error:
            self.problems.append(
                f"{self._where(key)}: {key} needs the variable {error.args[0]}, which is not set"
            )
            return
        if value == "" and _rejects_empty_text(field):
            return
        found = FoundValue(layer=CONFIG, source=self._where(key), value=value)
        self.found.append((field.key, key, found))

    def _unknown(self, key: str, value: object) -> None:
        # A Hermes Agent configuration has keys and platform sections that we do not know. Only a
        # key that resembles one of our keys is reported.
        lenient = self.foreign or (isinstance(value, Mapping) and "." not in key)
        if lenient and not self.schema.nearest_key(key, ours=True, cutoff=0.8):
            self.ignored.append(f"{self.path.name}: {key} is not known and is ignored")
            return
        near = self.schema.nearest_key(key) or nearest(key, self.schema.fields)
        self.problems.append(f"{self._where(key)}: unknown key {key!r}{suggestion(near)}")


def _rejects_empty_text(field: Field) -> bool:
    try:
        convert(field, "")
    except ValueError:
        return True
    return False


def expanded(value: object, environ: Mapping[str, str]) -> object:
    """Replaces `${NAME}` in the value. Raises KeyError for a variable that is not set."""
    match value:
        case str():
            return _VARIABLE.sub(lambda match: environ[match[1]], value)
        case list():
            return [expanded(item, environ) for item in value]
        case Mapping():
            return {key: expanded(item, environ) for key, item in value.items()}
        case _:
            return value


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} can't be read: {error}") from error


def read_yaml(path: Path, text: str) -> ParsedYaml:
    """Parses a YAML mapping. If the text is anything else, raises a ConfigError that names the
    line."""
    if not text.strip():
        return ParsedYaml()
    import yaml  # noqa: PLC0415  # takes 20 ms, and a home may have no config.yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
    try:
        node = loader.get_single_node()
        raw = loader.construct_document(node) if node else None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{path} line {mark.line + 1}" if mark else str(path)
        written = text.split("\n")
        if mark and mark.line < len(written) and "\t" in written[mark.line][: mark.column + 1]:
            problem = "there is a tab; YAML is indented with spaces, so put spaces in its place"
            raise ConfigError(f"{where}: {problem}") from error
        raise ConfigError(f"{where}: {error.problem or error.context}") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: {error}") from error
    if raw is None:
        return ParsedYaml()
    if not isinstance(raw, dict):
        raise ConfigError(f"{path} must be a mapping of settings, found {type(raw).__name__}")
    lines: dict[str, int] = {}
    duplicates: list[str] = []
    for key, line in _lines(node):
        if key in lines:
            duplicates.append(f"{key} (lines {lines[key]} and {line})")
        lines[key] = line
    return ParsedYaml(raw=_with_text_keys(raw), lines=lines, duplicates=tuple(duplicates))


def _with_text_keys(raw: Mapping[object, object]) -> dict[str, object]:
    return {
        str(key): _with_text_keys(value) if isinstance(value, dict) else value
        for key, value in raw.items()
    }


def _lines(node: object, section: str = "", depth: int = 0) -> Iterator[tuple[str, int]]:
    import yaml  # noqa: PLC0415  # already imported

    # Settings are at most four levels deep. The limit also stops the recursion in recursive YAML.
    if not isinstance(node, yaml.MappingNode) or depth > 4:
        return
    for name, value in node.value:
        key = f"{section}{name.value}"
        yield key, name.start_mark.line + 1
        yield from _lines(value, f"{key}.", depth + 1)


def _secrets(values: Mapping[str, object]) -> Iterator[str]:
    """Yields passwords in addresses, and the values of settings whose names suggest a
    credential."""
    for name, value in values.items():
        match value:
            case Mapping():
                yield from _secrets(value)
            case list():
                for one in value:
                    yield from _secrets({name: one})
            case str():
                if len(value) >= 8 and _SECRET_NAME.search(name):
                    yield value
                for found in _IN_ADDRESS.findall(value):
                    yield from filter(_is_no_common_word, (found, unquote(found)))


def _is_no_common_word(password: str) -> bool:
    # A password can be a common word, as in `postgres:postgres@`. Such a password is not masked,
    # because the word would then be masked in all texts.
    return len(password) >= (12 if password.isalpha() else 8)


def config_version(raw: Mapping[str, object]) -> int:
    """Returns the version of the file, or 0 if it has none."""
    found = raw.get("_config_version", 0)
    return max(found, 0) if isinstance(found, int) else 0


def _endpoint_into_model(raw: dict[str, object]) -> dict[str, object]:
    """Migrates to version 1: moves `base_url` and `api_key` into the section `model`, unless that
    section exists already."""
    loose: dict[str, object] = {name: raw[name] for name in ("base_url", "api_key") if name in raw}
    model = raw.get("model")
    if not loose or isinstance(model, Mapping):
        return raw
    rest = {name: value for name, value in raw.items() if name not in loose}
    if model:
        loose = {"default": model, **loose}
    return {**rest, "model": loose}


CONFIG_MIGRATIONS: tuple[Callable[[dict[str, object]], dict[str, object]], ...] = (
    _endpoint_into_model,
)
"""The migration at index n converts version n to version n + 1."""


def migrated(raw: dict[str, object]) -> tuple[dict[str, object], bool]:
    """Returns the content of config.yaml in the format of the current version, and whether a
    migration has changed the content."""
    fresh = raw
    for migration in CONFIG_MIGRATIONS[config_version(raw) : VERSION]:
        fresh = migration(fresh)
    if fresh == raw:
        return raw, False
    return {**fresh, "_config_version": VERSION}, True
