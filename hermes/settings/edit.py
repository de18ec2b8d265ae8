"""Changes to config.yaml and .env: checked before they are written, comments kept."""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path

import yaml

from hermes.core.models.catalog import CUSTOM, Catalog
from hermes.settings import ENVIRON, assemble, locate, schema
from hermes.settings.facts import explain
from hermes.settings.schema import Field, convert
from hermes.settings.sources import ConfigProblems, Files, migrated, read_yaml, version
from hermes.state.paths import Home, write_private
from hermes.types.errors import ConfigError
from hermes.types.value import Value


class Change(Value):
    """What was written, and where."""

    path: Path
    name: str
    """The key in the file: a secret has the name of its variable in .env."""
    backup: Path | None = None
    """The file as it was, where comments were lost."""
    overruled_by: str = ""
    """The other source that gives the setting its value all the same."""


def set_value(
    key: str, text: str, home: Path | None = None, environ: Mapping[str, str] = ENVIRON
) -> Change:
    """Gives the setting a value; ConfigError, and nothing written, when it would not work.

    A secret, and what is named by its variable, goes into .env.
    """
    where = locate(home, environ)
    files = Files.of(where)
    if _is_variable(key):
        return _set_variable(where, files, environ, key, text)
    field = schema().field(key)
    if field.also.secret:
        name = _variable(field, where, files, environ)
        return _set_variable(where, files, environ, name, text)
    config, kept = _with_value(where, files.config or "", field, _parsed(field, text))
    fresh = Files(config=config, dotenv=files.dotenv)
    overruled_by = _verified(where, files, fresh, environ, field.key, str(where.config))
    backup = None if kept else _backed_up(where, files.config or "")
    write_private(where.config, config)
    return Change(path=where.config, name=field.key, backup=backup, overruled_by=overruled_by)


def unset_value(
    key: str, home: Path | None = None, environ: Mapping[str, str] = ENVIRON
) -> tuple[Change, ...]:
    """Takes the setting out of both files, or the variable out of .env; a change for each file."""
    where = locate(home, environ)
    files = Files.of(where)
    config, kept = files.config or "", True
    if _is_variable(key):
        dotenv = _without_assignments(files.dotenv or "", (key,))
    else:
        field = schema().field(key)
        key = field.key
        config, kept = _without_value(where, config, field)
        dotenv = _without_assignments(files.dotenv or "", field.also.env)
    fresh = Files(config=config, dotenv=dotenv)
    left = _verified(where, files, fresh, environ, key, "default")
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


def _is_variable(key: str) -> bool:
    return schema().named_by(key) is not None or key in Catalog.load().variables


def _set_variable(
    home: Home, files: Files, environ: Mapping[str, str], name: str, text: str
) -> Change:
    dotenv = _with_assignment(files.dotenv or "", name, text)
    fresh = Files(config=files.config, dotenv=dotenv)
    overruled_by = _verified(home, files, fresh, environ, name, f"{home.dotenv} {name}")
    write_private(home.dotenv, dotenv)
    return Change(path=home.dotenv, name=name, overruled_by=overruled_by)


def migrate(home: Path | None = None, environ: Mapping[str, str] = ENVIRON) -> Path | None:
    """Writes config.yaml in today's form; the backup of the old one, or None if it was current."""
    where = locate(home, environ)
    text = Files.of(where).config or ""
    raw, moved = migrated(read_yaml(where.config, text).raw)
    if not moved:
        return None
    backup = _backed_up(where, text)
    write_private(where.config, _dumped(raw))
    return backup


def _backed_up(home: Home, text: str) -> Path | None:
    if not text.strip():
        return None
    old = version(read_yaml(home.config, text).raw)
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
    home: Home, old: Files, new: Files, environ: Mapping[str, str], key: str, ours: str
) -> str:
    """Who gives the value if not our change; raises for problems that the change brings."""
    try:
        found = explain(assemble(home, new, environ), key).source
    except ConfigProblems as error:
        fresh = [one for one in error.problems if one not in _problems(home, old, environ)]
        if fresh:
            raise ConfigProblems(fresh) from error
        return ""
    return "" if found == "default" or found.startswith(ours) else found


def _problems(home: Home, files: Files, environ: Mapping[str, str]) -> tuple[str, ...]:
    try:
        assemble(home, files, environ)
    except ConfigProblems as error:
        return error.problems
    return ()


def _variable(field: Field, home: Home, files: Files, environ: Mapping[str, str]) -> str:
    """Where a secret goes: a provider's key has the provider's variable."""
    if field.key != "model.api_key":
        return field.also.env[0]
    try:
        model = assemble(home, files, environ).model
    except ConfigProblems:
        return field.also.env[0]
    if model.base_url:
        return field.also.env[0]
    if model.provider in ("", "auto"):
        raise ConfigError(
            "model.api_key is for a model.base_url or a model.provider: set one of them first,"
            " or the provider's own variable, as in `hermes config set OPENAI_API_KEY …`"
        )
    provider = Catalog.load().named(model.provider)
    return (provider.keys or Catalog.load().named(CUSTOM).keys)[0]


def _with_assignment(text: str, name: str, value: str) -> str:
    if not value.isprintable():
        raise ConfigError(f"{name} can't hold line breaks or control characters")
    quote = next((mark for mark in ("", '"', "'") if _reads_back(value, mark)), None)
    if quote is None:
        raise ConfigError(f"{name} can't hold both kinds of quotation marks")
    line = f"{name}={quote}{value}{quote}"
    own = re.compile(rf"(?m)^[ \t]*(?:export[ \t]+)?{name}[ \t]*=.*$")
    if own.search(text):
        return own.sub(lambda _: line, text)
    return f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}{line}\n"


def _without_assignments(text: str, names: Iterable[str]) -> str:
    for name in names:
        text = re.sub(rf"(?m)^[ \t]*(?:export[ \t]+)?{name}[ \t]*=.*\n?", "", text)
    return text


def _reads_back(value: str, mark: str) -> bool:
    if not mark:
        return re.fullmatch(r"[^\s'\"#]*", value) is not None
    return mark not in value


def _with_value(home: Home, text: str, field: Field, value: object) -> tuple[str, bool]:
    """The file with the value in it, and whether its comments were kept."""
    raw, moved = migrated(read_yaml(home.config, text).raw)
    wanted = _put(raw, field.key, value)
    if not moved:
        for place in (field.key, *field.also.keys):
            edited = _edited(text, place.split("."), _scalar(value), insert=place == field.key)
            if edited is not None and _means(home, edited, wanted, raw, place, value):
                return edited, True
    return _dumped(wanted), not text.strip()


def _means(
    home: Home,
    edited: str,
    wanted: dict[str, object],
    raw: dict[str, object],
    place: str,
    value: object,
) -> bool:
    """Whether the edit changed this setting and nothing else."""
    return any(_reads_as(home, edited, one) for one in (wanted, _put(raw, place, value)))


def _without_value(home: Home, text: str, field: Field) -> tuple[str, bool]:
    """The file without the setting, and whether its comments were kept."""
    raw, moved = migrated(read_yaml(home.config, text).raw)
    wanted, edited = raw, text
    for place in (field.key, *field.also.keys):
        # `model` is a place of model.default only where it is not the section.
        if place in schema().sections and isinstance(raw.get(place), Mapping):
            continue
        wanted = _dropped(wanted, place)
        edited = _cut(edited, place.split("."))
    if wanted == raw:
        return text, True
    if not moved and _reads_as(home, edited, wanted):
        return edited, edited.count("#") == text.count("#")
    return _dumped(wanted), False


def _dropped(raw: Mapping[str, object], key: str) -> dict[str, object]:
    """Without the key, and without the sections that are empty then."""
    name, _, rest = key.partition(".")
    section = raw.get(name)
    if rest and isinstance(section, Mapping):
        left = _dropped(section, rest)
        if left or not section:
            return {**raw, name: left}
    elif rest:
        return dict(raw)
    return {one: value for one, value in raw.items() if one != name}


def _cut(text: str, path: list[str]) -> str:
    """The text without the lines of the entry, or of the section that holds nothing else."""
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    entry: tuple[yaml.Node, yaml.Node] | None = None
    for name in path:
        entries = node.value if isinstance(node, yaml.MappingNode) else []
        found = next((pair for pair in entries if pair[0].value == name), None)
        if found is None:
            return text
        entry = found if entry is None or len(entries) > 1 else entry
        node = found[1]
    assert entry is not None
    start = text.rfind("\n", 0, entry[0].start_mark.index) + 1
    end = _end(entry[1])
    if text[end - 1] != "\n":
        end = text.find("\n", end) + 1 or len(text)
    return text[:start] + text[end:]


def _end(node: yaml.Node) -> int:
    """Where the last word stands; a block goes on to the next entry, past comments."""
    if isinstance(node, yaml.CollectionNode) and node.value and not node.flow_style:
        last = node.value[-1]
        return _end(last[1] if isinstance(last, tuple) else last)
    index: int = node.end_mark.index
    return index


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


def _edited(text: str, path: list[str], value: str, *, insert: bool) -> str | None:
    """The text with one scalar replaced or one line added; None where that is not enough."""
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    for depth, name in enumerate(path):
        if not isinstance(node, yaml.MappingNode):
            if node is None and depth == 0 and insert:
                break
            return None
        below = next((value for key, value in node.value if key.value == name), None)
        if below is None:
            return _inserted(text, node, path[depth:], value, top=depth == 0) if insert else None
        node = below
    if node is None:
        return _appended(text, _block(path, value, 0))
    if isinstance(node, yaml.MappingNode) or "\n" in text[_span(node)]:
        return None
    span = _span(node)
    return f"{text[: span.start]}{' ' if span.start == span.stop else ''}{value}{text[span.stop :]}"


def _span(node: yaml.Node) -> slice:
    return slice(node.start_mark.index, node.end_mark.index)


def _inserted(
    text: str, section: yaml.MappingNode, path: list[str], value: str, *, top: bool
) -> str | None:
    if section.flow_style or not section.value:
        return None
    if top:
        return _appended(text, _block(path, value, 0))
    start, column = section.start_mark.index, section.start_mark.column
    line = start - column
    return f"{text[:line]}{_block(path, value, column)}{text[line:]}"


def _appended(text: str, block: str) -> str:
    return f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}{block}"


def _block(path: list[str], value: str, column: int) -> str:
    *sections, name = path
    lines = [f"{' ' * (column + 2 * depth)}{one}:" for depth, one in enumerate(sections)]
    lines.append(f"{' ' * (column + 2 * len(sections))}{name}: {value}")
    return "\n".join(lines) + "\n"


def _scalar(value: object) -> str:
    text: str = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=10_000)
    return text.removesuffix("...\n").strip()


def _dumped(raw: Mapping[str, object]) -> str:
    text: str = yaml.safe_dump(dict(raw), sort_keys=False, allow_unicode=True, width=100)
    return text
