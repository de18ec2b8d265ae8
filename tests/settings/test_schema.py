"""The schema of the settings finds a setting by its names and converts its value."""

from pathlib import Path
from typing import Annotated, Literal

import msgspec
import pytest

from hermes.core.models.catalog import Catalog
from hermes.settings import Settings, schema
from hermes.settings.schema import (
    Aliases,
    Field,
    Schema,
    convert,
    describe_fields,
    describe_type,
    fields,
    own_fields,
    unannotated,
    unsupported_keys,
)
from hermes.types.errors import ConfigError
from hermes.types.value import Value


class Inner(Value):
    mode: Annotated[Literal["slow", "Fast"], Aliases(env=("MODE",), keys=("old.mode",))] = "slow"
    """The speed."""
    size: Annotated[int, msgspec.Meta(ge=1, le=9)] = 3


class Outer(Value):
    inner: Inner = Inner()
    folder: Path = Path("here")
    skipped: str = ""


def field(kind: object, *, secret: bool = False) -> Field:
    aliases = Aliases(secret=secret)
    return Field(key="a.b", kind=kind, default=None, aliases=aliases, owner="A", name="b")


def test_fields_have_dotted_keys_and_their_other_names() -> None:
    found = {one.key: one for one in fields(Outer, ("skipped",))}
    assert list(found) == ["inner.mode", "inner.size", "folder"]
    assert found["inner.mode"].aliases.env == ("MODE",)
    assert (found["inner.mode"].owner, found["inner.mode"].default) == ("Inner", "slow")


def test_a_setting_is_found_by_key_alias_and_variable() -> None:
    known = Schema.of(Outer)
    assert {known.field(name).key for name in ("inner.mode", "old.mode", "MODE")} == {"inner.mode"}
    assert known.sections >= {"inner", "old"}


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("inner.mod", ": did you mean 'inner.mode'?"),
        ("MOD", ": did you mean 'MODE'?"),
        ("zz", ": `hermes config show` lists the settings"),
    ],
)
def test_the_error_for_an_unknown_setting_suggests_a_known_one(key: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Schema.of(Outer).field(key)
    assert str(caught.value) == f"unknown setting {key!r}{hint}"


def test_the_error_for_a_misspelt_key_suggests_a_key_of_its_section() -> None:
    known = schema()
    assert known.nearest_key("model.defualt") == "model.default"
    assert known.nearest_key("model.zzzzzz") is None
    assert known.nearest_key("model.service_tiers") is None, "another section has such a key"
    assert known.nearest_key("agent.service_tiers") == "agent.service_tier"
    assert known.nearest_key("agent.service_tiers", ours=True) is None


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (bool, "Yes", True),
        (bool, "off", False),
        (int, "7", 7),
        (float, 2, 2.0),
        (str, "7", "7"),
        (Path, "~/x", Path("~/x").expanduser()),
        (Literal["slow", "Fast"], "FAST", "Fast"),
        (tuple[str, ...], "a, b,,", ("a", "b")),
        (tuple[str, ...], "[a, 'b c']", ("a", "b c")),
        (tuple[str, ...] | None, [1, "b"], ("1", "b")),
        (dict[str, str], {7: "seven"}, {"7": "seven"}),
    ],
)
def test_text_is_converted_to_the_type_of_the_setting(
    kind: object, value: object, expected: object
) -> None:
    assert convert(field(kind), value) == expected


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (bool, "perhaps", "expected true or false, found 'perhaps'"),
        (int, True, "expected a whole number, found true"),
        (Path, "", "expected a path, found ''"),
        (Annotated[int, msgspec.Meta(ge=1, le=9)], 10, "a whole number from 1 to 9, found 10"),
        (Literal["slow", "fast"], "odd", "expected one of slow, fast, found 'odd'"),
        (tuple[str, ...], {"a": "b"}, "expected a list of words, found a mapping"),
        (str, ["a"], "expected text, found a list"),
        (int, "x" * 61, "expected a whole number, found a longer text"),
    ],
)
def test_the_error_for_a_wrong_value_says_what_was_expected_and_found(
    kind: object, value: object, expected: str
) -> None:
    with pytest.raises(ValueError, match=expected):
        convert(field(kind), value)


def test_a_wrong_secret_is_not_shown() -> None:
    with pytest.raises(ValueError, match="found something else") as caught:
        convert(field(int, secret=True), "opensesame")
    assert "opensesame" not in str(caught.value)


def test_a_type_is_described_in_plain_words() -> None:
    assert describe_type(int | None) == "a whole number"
    assert describe_type(Annotated[float, msgspec.Meta(gt=0)]) == "a number above 0"
    assert unannotated(Annotated[int, msgspec.Meta(ge=1)]) is int


def test_every_setting_is_described_once_with_its_text() -> None:
    found = {one.key: one for one in describe_fields(Settings, ("home", "warnings", "sources"))}
    assert found["model.provider"].text.startswith("The provider of the model")
    assert found["model.provider"].env == ("HERMES_INFERENCE_PROVIDER",)
    assert found["platforms.<name>.allowed_users"].env == ("<NAME>_ALLOWED_USERS",)


def test_ignored_keys_are_known_including_those_named_after_providers() -> None:
    known = schema()
    assert known.unsupported("model.api_mode")
    assert known.unsupported("platforms.telegram.reply_to_mode"), "a key of every platform"
    assert not known.unsupported("model.nonsense")
    assert Catalog.load().unsupported_settings
    assert unsupported_keys() >= set(Catalog.load().unsupported_settings)


def test_no_key_is_both_a_setting_and_ignored() -> None:
    assert not unsupported_keys() & schema().places.keys()


class Counted(Value):
    count: Annotated[int, msgspec.Meta(ge=1), Aliases(env=("COUNT",))] = 3


class PerName(Value):
    open: Annotated[bool, Aliases(env=("{}_OPEN",))] = False


class Root(Value):
    inner: Counted = Counted()
    names: dict[str, PerName] = msgspec.field(default_factory=dict)
    color: Annotated[Literal["red", "blue"], Aliases(keys=("old.color",))] = "red"


SCHEMA = Schema.of(Root)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("inner.count", "inner.count"),
        ("COUNT", "inner.count"),
        ("old.color", "color"),
        ("names.any.open", "names.any.open"),
        ("ANY_OPEN", "names.any.open"),
        ("SOME_ONE_OPEN", "names.some_one.open"),
    ],
)
def test_a_setting_is_found_by_each_of_its_names(name: str, key: str) -> None:
    assert SCHEMA.field(name).key == key


def test_the_variable_of_a_named_section_contains_the_name() -> None:
    assert SCHEMA.field("names.any.open").aliases.env == ("ANY_OPEN",)


@pytest.mark.parametrize(
    "name", ["inner.cuont", "_OPEN", "any_OPEN", "names.any.shut", "names.any"]
)
def test_an_unknown_name_is_not_a_setting(name: str) -> None:
    with pytest.raises(ConfigError, match="unknown setting"):
        SCHEMA.field(name)


def test_any_platform_name_may_be_a_section() -> None:
    assert SCHEMA.is_section("inner")
    assert SCHEMA.is_section("names.any")
    assert SCHEMA.is_platform("names.any")
    assert not SCHEMA.is_platform("inner")
    assert not SCHEMA.is_section("inner.count")
    assert not SCHEMA.is_section("names.any.more")


def test_a_built_in_section_below_platforms_is_not_a_platform() -> None:
    assert schema().is_section("platforms.api_server")
    assert not schema().is_platform("platforms.api_server")
    assert schema().is_platform("platforms.telegram")


def test_no_platform_is_known_by_name() -> None:
    known = {key.split(".")[1] for key in schema().places if key.startswith("platforms.")}
    assert known == {"<name>", "api_server"}


def test_a_subsection_counts_as_one_setting() -> None:
    assert [field.key for field in own_fields(Root)] == ["inner", "names", "color"]


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("inner.count", "5", 5),
        ("color", "BLUE", "blue"),
        ("names.any.open", "yes", True),
    ],
)
def test_text_is_converted_or_refused_by_type(key: str, value: str, expected: object) -> None:
    assert convert(SCHEMA.field(key), value) == expected


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (int | None, "a whole number"),
        (Annotated[float, msgspec.Meta(gt=0, le=1)], "a number above 0 to 1"),
        (Literal["a", "b"], "one of a, b"),
        (tuple[str, ...] | None, "a list of words"),
        (Path, "a path"),
        (Counted, ""),
        (dict[str, Counted], ""),
    ],
)
def test_every_type_has_a_description(kind: object, words: str) -> None:
    assert describe_type(kind) == words
