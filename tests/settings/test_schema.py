"""Settings by key, by their other places, by their variables, and in words."""

from pathlib import Path
from typing import Annotated, Literal

import msgspec
import pytest

from hermes.settings import schema
from hermes.settings.schema import Also, Schema, convert, in_words, nearest, own_fields
from hermes.types.errors import ConfigError
from hermes.types.value import Value


class Inner(Value):
    count: Annotated[int, msgspec.Meta(ge=1), Also(env=("COUNT",))] = 3


class PerName(Value):
    open: Annotated[bool, Also(env=("{}_OPEN",))] = False


class Root(Value):
    inner: Inner = Inner()
    names: dict[str, PerName] = msgspec.field(default_factory=dict)
    color: Annotated[Literal["red", "blue"], Also(keys=("old.color",))] = "red"


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


def test_the_variable_of_a_named_section_has_its_name() -> None:
    assert SCHEMA.field("names.any.open").also.env == ("ANY_OPEN",)


@pytest.mark.parametrize(
    "name", ["inner.cuont", "_OPEN", "any_OPEN", "names.any.shut", "names.any"]
)
def test_anything_else_is_no_setting(name: str) -> None:
    with pytest.raises(ConfigError, match="unknown setting"):
        SCHEMA.field(name)


def test_any_name_is_a_section_where_names_are_free() -> None:
    assert SCHEMA.is_section("inner")
    assert SCHEMA.is_section("names.any")
    assert SCHEMA.is_platform("names.any")
    assert not SCHEMA.is_platform("inner")
    assert not SCHEMA.is_section("inner.count")
    assert not SCHEMA.is_section("names.any.more")


def test_a_section_of_ours_below_platforms_is_no_platform() -> None:
    assert schema().is_section("platforms.api_server")
    assert not schema().is_platform("platforms.api_server")
    assert schema().is_platform("platforms.telegram")


def test_no_platform_is_known_by_name() -> None:
    known = {key.split(".")[1] for key in schema().places if key.startswith("platforms.")}
    assert known == {"<name>", "api_server"}


def test_the_settings_of_one_section_are_not_taken_apart() -> None:
    assert [field.key for field in own_fields(Root)] == ["inner", "names", "color"]


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("inner.count", "5", 5),
        ("color", "BLUE", "blue"),
        ("names.any.open", "yes", True),
    ],
)
def test_text_becomes_the_setting_s_type(key: str, value: str, expected: object) -> None:
    assert convert(SCHEMA.field(key), value) == expected


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (int | None, "a whole number"),
        (Annotated[float, msgspec.Meta(gt=0, le=1)], "a number above 0 to 1"),
        (Literal["a", "b"], "one of a, b"),
        (tuple[str, ...] | None, "a list of words"),
        (Path, "a path"),
        (Inner, ""),
        (dict[str, Inner], ""),
    ],
)
def test_a_type_in_words(kind: object, words: str) -> None:
    assert in_words(kind) == words


def test_the_nearest_name_is_near() -> None:
    assert nearest("cuont", ["count", "color"]) == "count"
    assert nearest("zzz", ["count", "color"]) is None
