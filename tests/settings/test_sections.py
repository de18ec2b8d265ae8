"""The sections have valid defaults, redact secrets and check limits."""

import inspect

import msgspec
import pytest

from hermes.settings import schema, sections
from hermes.settings.schema import convert, unannotated
from hermes.settings.sections import (
    AgentSettings,
    ApiServerSettings,
    AuxiliarySettings,
    ModelSettings,
    PlatformSettings,
    WebSettings,
)
from hermes.types.value import Value

SECTIONS = [
    one
    for _, one in inspect.getmembers(sections, inspect.isclass)
    if one.__module__ == sections.__name__ and issubclass(one, Value)
]


@pytest.mark.parametrize("section", SECTIONS, ids=lambda one: one.__name__)
def test_the_defaults_are_valid(section: type[Value]) -> None:
    made = section()
    assert msgspec.convert(msgspec.to_builtins(made), section) == made


def test_every_default_has_the_setting_s_type() -> None:
    for field in schema().fields.values():
        plain = isinstance(field.default, str | int | float | bool)
        if plain and unannotated(field.kind) in (str, int, float, bool):
            assert convert(field, field.default) == field.default, field.key


@pytest.mark.parametrize(
    "made",
    [
        ModelSettings(api_key="the-secret"),
        AuxiliarySettings(api_key="the-secret"),
        ApiServerSettings(key="the-secret"),
        WebSettings(brave_key="the-secret", tavily_key="the-secret"),
    ],
    ids=lambda one: type(one).__name__,
)
def test_a_secret_is_never_in_a_repr(made: Value) -> None:
    assert "the-secret" not in repr(made)


def test_every_secret_setting_is_marked_as_a_secret() -> None:
    secret = {key for key, field in schema().fields.items() if field.aliases.secret}
    named = {key for key in schema().fields if key.endswith("key")}
    assert named <= secret


def test_a_turn_without_a_time_limit_gets_a_week() -> None:
    assert AgentSettings(turn_timeout=0, max_turns=3).budget.seconds == 7 * 86_400
    assert AgentSettings(turn_timeout=9, max_turns=3).budget.steps == 3


def test_a_platform_admits_nobody_by_default() -> None:
    assert PlatformSettings().allowed_users == ()
    assert not PlatformSettings().allow_all
    assert PlatformSettings().enabled is None


@pytest.mark.parametrize(
    ("section", "given"),
    [
        (ModelSettings, {"context_length": 0}),
        (ModelSettings, {"input_price": -1.0}),
        (ModelSettings, {"max_tokens": "many"}),
        (AgentSettings, {"max_turns": 0}),
        (AgentSettings, {"clarify_timeout": 0.0}),
    ],
)
def test_a_number_out_of_its_range_is_refused(
    section: type[msgspec.Struct], given: dict[str, object]
) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(given, section)


def test_the_wire_format_may_be_any_name() -> None:
    found = msgspec.convert({"wire": "telegraph"}, ModelSettings)
    assert (found.wire, ModelSettings().wire) == ("telegraph", "auto")
