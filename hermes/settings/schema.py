"""Describes settings by key, type and aliases, and converts values to their types."""

import ast
import inspect
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import ModuleType, UnionType
from typing import Annotated, Literal, Union, get_args, get_origin

import msgspec

from hermes.core.models.catalog import Catalog
from hermes.text.spelling import did_you_mean, nearest
from hermes.types.errors import ConfigError
from hermes.types.value import Value

_UNSUPPORTED_SECTIONS = {
    "": "approvals attachments browser checkpoints code_execution"
    " command_allowlist context credential_pool_strategies cron curator"
    " custom_providers dashboard database delegation fallback_model fallback_providers"
    " file_read_max_chars goals group_sessions_per_user hooks honcho image_gen kanban"
    " lsp max_concurrent_sessions mcp mcp_servers moa model_catalog network onboarding"
    " personalities platform_hints platform_toolsets plugins"
    " privacy prompt_caching provider_routing providers quick_commands runtime secrets security"
    " session_reset sessions skills smart_model_routing stt thread_sessions_per_user"
    " tool_loop_guardrails tool_output tools tts updates vision"
    " voice x_search",
    "model.": "api_mode auth_mode default_headers entra extra_body extra_headers"
    " reasoning_effort streaming supports_vision timeout",
    "agent.": "environment_hint environment_probe"
    " gateway_auto_continue_freshness gateway_notify_interval gateway_timeout_warning"
    " image_input_mode reasoning_effort reasoning_overrides"
    " service_tier tool_use_enforcement verbose verify_on_stop",
    "auxiliary.": "approval background_review compression curator goal_judge mcp"
    " memory_query_rewrite monitor profile_describer skills_hub timeout title_generation"
    " triage_specifier tts_audio_tags vision web_extract",
    "compression.": "abort_on_summary_failure hygiene_hard_message_limit in_place protect_first_n"
    " protect_last_n summary_model target_ratio",
    "memory.": "flush_min_turns nudge_interval user_profile_enabled write_approval",
    "terminal.": "container_persistent cwd docker_env docker_forward_env"
    " docker_mount_cwd_to_workspace docker_network docker_run_as_host_user home_mode"
    " persistent_shell sandbox_dir",
    "web.": "backend extract_backend search_backend",
    "display.": "background_process_notifications bell_on_complete busy_ack_enabled busy_text_mode"
    " cleanup_progress compact copy_shortcut ephemeral_system_ttl final_response_markdown"
    " inline_diffs interim_assistant_messages language mouse_tracking persistent_output personality"
    " platforms resume_display runtime_footer show_cost show_reasoning skin streaming timestamps"
    " tool_preview_length tool_progress tool_progress_command tool_progress_grouping"
    " tool_progress_overrides tui_statusbar user_message_preview",
    "logging.": "memory_monitor",
    "streaming.": "fresh_final_after_seconds mode transport",
    "gateway.streaming.": "fresh_final_after_seconds mode transport",
    "gateway.": "delivery_ledger max_inbound_media_bytes media_delivery_allow_dirs"
    " message_timestamps multiplex_profiles platform_connect_timeout platforms profile_routes"
    " proxy_key proxy_url relay_url respawn_storm restart_loop_guard strict trust_recent_files"
    " write_sessions_json",
    "platforms.*.": "api_key channel_overrides extra gateway_restart_notification"
    " reply_to_mode token typing_indicator",
    "platforms.api_server.": "home_channel reply_to_mode token",
}


@cache
def unsupported_keys() -> frozenset[str]:
    """Returns the settings of Hermes Agent that Hermes does not support. A warning says that they
    are ignored."""
    sections = _UNSUPPORTED_SECTIONS.items()
    own = {section + name for section, names in sections for name in names.split()}
    return frozenset(own.union(Catalog.load().unsupported_settings))


_TEXTS = dict[str, str]
_Filled = Annotated[str, msgspec.Meta(min_length=1)]
_NAME = r"[A-Z][A-Z0-9_]*"
_TRUE, _FALSE = ("true", "1", "yes", "on"), ("false", "0", "no", "off")


SETTINGS_HINT = ": `hermes config show` lists the settings"
"""The end of the error for an unknown setting, if no known setting has a similar name."""
ANY_NAME = "<name>"
"""Placeholder for the platform's name in the key of a platform setting."""


class Aliases(Value):
    """The aliases of a setting, as an annotation of its type."""

    env: tuple[str, ...] = ()
    """Environment variables of the setting, the variable with the highest precedence first. `{}` is
    replaced by the name of a platform."""
    keys: tuple[str, ...] = ()
    """Other keys in config.yaml. For a platform's own setting, these keys are relative to the
    platform's section."""
    secret: bool = False
    """Whether the value is a secret, which is never shown and is written to .env."""


class Field(Value):
    """One setting with its dotted key."""

    key: str
    kind: object
    default: object
    aliases: Aliases
    owner: str
    """Name of the class that declares and documents the setting."""
    name: str


def fields(root: type[msgspec.Struct], skip: Iterable[str] = ()) -> Iterator[Field]:
    """Yields all settings of a section and its subsections."""
    for info in msgspec.structs.fields(root):
        if info.name in skip:
            continue
        kind = info.type
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            yield from (_below(info.name, field) for field in fields(kind))
        elif get_origin(kind) is dict and kind != _TEXTS:
            yield from _per_platform(info.name, get_args(kind)[1])
        else:
            yield _field(root, info)


def own_fields(section: type[msgspec.Struct]) -> Iterator[Field]:
    """Yields the settings of one section. A subsection counts as one setting."""
    yield from (_field(section, info) for info in msgspec.structs.fields(section))


def _field(section: type[msgspec.Struct], info: msgspec.structs.FieldInfo) -> Field:
    aliases = next((one for one in _annotations(info.type) if isinstance(one, Aliases)), Aliases())
    made = info.default_factory
    return Field(
        key=info.name,
        kind=info.type,
        default=info.default if made is msgspec.NODEFAULT else made(),
        aliases=aliases,
        owner=section.__name__,
        name=info.name,
    )


def _below(section: str, field: Field) -> Field:
    return msgspec.structs.replace(field, key=f"{section}.{field.key}")


def _per_platform(section: str, kind: type[msgspec.Struct]) -> Iterator[Field]:
    for field in fields(kind):
        yield _below(section, _below(ANY_NAME, field))


def _of_platform(field: Field, name: str) -> Field:
    env = tuple(one.format(name.upper()) for one in field.aliases.env)
    return msgspec.structs.replace(
        field,
        key=field.key.replace(ANY_NAME, name),
        aliases=msgspec.structs.replace(field.aliases, env=env),
    )


class FieldDoc(Value):
    """A setting on the reference page."""

    key: str
    type: str
    default: object
    env: tuple[str, ...]
    text: str


def describe_fields(root: type[msgspec.Struct], skip: Iterable[str] = ()) -> list[FieldDoc]:
    """Returns every setting with its documentation."""
    kinds = [info.type for info in msgspec.structs.fields(root)]
    modules = {root.__module__, *(kind.__module__ for kind in kinds if isinstance(kind, type))}
    texts = {
        place: text
        for name in modules
        if name.startswith(__package__)
        for place, text in docstrings(sys.modules[name]).items()
    }
    docs: dict[str, FieldDoc] = {}
    for field in fields(root, skip):
        docs[field.key] = FieldDoc(
            key=field.key,
            type=describe_type(field.kind),
            default=field.default,
            env=tuple(name.format(ANY_NAME.upper()) for name in field.aliases.env),
            text=texts.get((field.owner, field.name), ""),
        )
    return list(docs.values())


def docstrings(module: ModuleType) -> dict[tuple[str, str], str]:
    """Returns the docstrings of the fields in a module, by class and field."""
    tree = ast.parse(inspect.getsource(module))
    texts: dict[tuple[str, str], str] = {}
    for cls in (node for node in tree.body if isinstance(node, ast.ClassDef)):
        for field, text in pairwise(cls.body):
            match field, text:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(words))),
                ):
                    texts[cls.name, name] = inspect.cleandoc(words)
    return texts


class Schema(Value):
    """Finds a setting by its key, by one of its other keys in config.yaml, or by its environment
    variable."""

    fields: dict[str, Field]
    places: dict[str, str]
    """Maps every dotted path that a setting can have in config.yaml to the key of the setting."""
    variables: dict[str, str]
    """Maps every environment variable to the key of its setting."""
    sections: frozenset[str]

    @staticmethod
    @cache
    def of(root: type[msgspec.Struct], skip: tuple[str, ...] = ()) -> "Schema":
        found = {field.key: field for field in fields(root, skip)}
        places = {key: key for key in found}
        for field in found.values():
            places |= dict.fromkeys(field.aliases.keys, field.key)
        variables = {name: field.key for field in found.values() for name in field.aliases.env}
        sections = {place.rsplit(".", n)[0] for place in places for n in range(1, 4)}
        return Schema(
            fields=found,
            places=places,
            variables=variables,
            sections=frozenset(sections - found.keys()),
        )

    def at(self, place: str) -> Field | None:
        """Returns the setting at a path in config.yaml, or None. In the path of a platform setting,
        any name of a platform is accepted."""
        key = self.places.get(place)
        if key is not None:
            return self.fields[key]
        section, _, rest = place.partition(".")
        name, _, setting = rest.partition(".")
        field = self.fields.get(f"{section}.{ANY_NAME}.{setting}")
        return _of_platform(field, name) if field else None

    def is_platform(self, place: str) -> bool:
        """Returns whether the path is the section of a platform."""
        section, dot, name = place.partition(".")
        named = f"{section}.{ANY_NAME}" in self.sections and dot and "." not in name
        return bool(named) and place not in self.sections

    def is_section(self, place: str) -> bool:
        return place in self.sections or self.is_platform(place)

    def field_of_variable(self, variable: str) -> Field | None:
        """Returns the setting of an environment variable, or None."""
        key = self.variables.get(variable)
        if key is not None and key in self.places:
            return self.fields[key]
        for pattern, key in self.variables.items():
            before, sign, after = pattern.partition("{}")
            name = variable.removeprefix(before).removesuffix(after)
            if sign and variable == f"{before}{name}{after}" and re.fullmatch(_NAME, name):
                return _of_platform(self.fields[key], name.lower())
        return None

    def field(self, key: str) -> Field:
        """Returns the setting for a key, an alias or a variable. Raises ConfigError if there is no
        such setting."""
        if found := self.at(key) or self.field_of_variable(key):
            return found
        hint = did_you_mean(key, {*self.fields, *self.variables})
        raise ConfigError(f"unknown setting {key!r}{hint or SETTINGS_HINT}")

    def unsupported(self, key: str) -> bool:
        head, _, rest = key.partition(".")
        anywhere = f"{head}.*.{rest.partition('.')[2]}"
        return not unsupported_keys().isdisjoint((key, anywhere))

    def nearest_key(self, key: str, *, ours: bool = False, cutoff: float = 0.6) -> str | None:
        """Returns the most similar key of the same section, or None. If `ours` is true, keys that
        only the program Hermes Agent supports are left out."""
        section, dot, name = key.rpartition(".")
        known = {*self.places, *self.sections, *(() if ours else unsupported_keys())}
        beside = {one.rpartition(".")[2] for one in known if one.rpartition(".")[0] == section}
        near = nearest(name, beside, cutoff)
        return f"{section}{dot}{near}" if near else None


def convert(field: Field, value: object) -> object:
    """Converts a value to the setting's type. Raises a ValueError that says what was expected."""
    kind = unannotated(field.kind)
    try:
        if kind is Path:
            return Path(msgspec.convert(value, _Filled)).expanduser()
        if kind in (tuple[str, ...], tuple[str, ...] | None):
            return _words(value)
        if kind == _TEXTS:
            # YAML reads `off` without quotes as false.
            named = msgspec.convert(value, dict[str | int, str | Literal[False]])
            return {str(name): "off" if text is False else text for name, text in named.items()}
        if get_origin(kind) is Literal:
            value = "off" if value is False and "off" in get_args(kind) else value
            value = next(
                (one for one in get_args(kind) if str(one).casefold() == str(value).casefold()),
                value,
            )
        elif kind is bool and isinstance(value, str):
            value = {**dict.fromkeys(_TRUE, True), **dict.fromkeys(_FALSE, False)}.get(
                value.casefold(), value
            )
            return msgspec.convert(value, bool)
        return msgspec.convert(value, field.kind, strict=not isinstance(value, str))
    except msgspec.ValidationError as error:
        expected = describe_type(field.kind)
        if not expected:
            raise ValueError(str(error)) from error
        shown = "something else" if field.aliases.secret else _found(value)
        raise ValueError(f"expected {expected}, found {shown}") from error


def _words(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        value = _bracketed(value) if re.fullmatch(r"(?s)\s*\[.*\]\s*", value) else value.split(",")
    # People write numeric ids without quotes, and YAML reads these ids as numbers.
    items = msgspec.convert(value, list[str | int])
    return tuple(text for item in items if (text := str(item).strip()))


def _bracketed(text: str) -> object:
    import yaml  # noqa: PLC0415  # slow to import, rarely needed

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(f"expected a list of words, found {text!r}") from error


def _annotations(kind: object) -> tuple[object, ...]:
    return get_args(kind)[1:] if get_origin(kind) is Annotated else ()


def unannotated(kind: object) -> object:
    """Returns the type without its annotations."""
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind


_NAMES = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    Path: "a path",
    tuple[str, ...]: "a list of words",
    _TEXTS: "a mapping of texts",
}


def describe_type(kind: object) -> str:
    """Describes the type for people. The description is empty for a section."""
    inner = unannotated(kind)
    if get_origin(inner) is Literal:
        return "one of " + ", ".join(str(one) or '""' for one in get_args(inner))
    text = next((name for known, name in _NAMES.items() if known == inner), "")
    if get_origin(inner) in (Union, UnionType):
        # An optional setting is described by its type without None.
        text = text or describe_type(get_args(inner)[0])
    for meta in _annotations(kind):
        if isinstance(meta, msgspec.Meta):
            text += f" from {meta.ge}" if meta.ge is not None else ""
            text += f" above {meta.gt}" if meta.gt is not None else ""
            text += f" to {meta.le}" if meta.le is not None else ""
    return text


def _found(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case Mapping():
            return "a mapping"
        case list() | tuple():
            return "a list"
        case str() if len(value) > 60:
            return "a longer text"
        case str() | int() | float():
            return repr(value)
        case _:
            return f"a {type(value).__name__}"
