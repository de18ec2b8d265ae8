"""A setting is found by each of its names. The manifest of a platform adds the settings of this
platform."""

from pathlib import Path

import pytest

from hermes.settings import load
from hermes.settings.edit import set_value, unset_value
from hermes.settings.known_settings import KnownSettings
from hermes.settings.sources import ConfigProblems
from hermes.testing.platforms import ChatServer, PlainAdapter, fake_platform
from hermes.types.errors import ConfigError

CHAT = fake_platform("chat", ChatServer(), PlainAdapter)
KNOWN = KnownSettings(lambda: [CHAT])


@pytest.mark.parametrize(
    ("name", "key", "variable"),
    [
        ("timezone", "timezone", False),
        ("HERMES_TIMEZONE", "timezone", True),
        ("platforms.chat.allowed_users", "platforms.chat.allowed_users", False),
        ("platforms.chat.mode", "platforms.chat.mode", False),
        ("platforms.chat.token", "platforms.chat.token", False),
        ("CHAT_BOT_TOKEN", "platforms.chat.token", True),
    ],
)
def test_a_setting_is_found_by_its_key_and_by_its_variable(
    name: str, key: str, variable: bool
) -> None:
    assert KNOWN.field(name).key == key
    assert KNOWN.is_variable(name) is variable


def test_a_variable_of_a_provider_is_known_without_a_platform() -> None:
    assert KnownSettings().is_variable("GROQ_API_KEY")
    assert not KnownSettings().is_variable("CHAT_BOT_TOKEN")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("platforms.chat.mod", "did you mean 'platforms.chat.mode'?"),
        ("CHAT_BOT_TOKE", "did you mean 'CHAT_BOT_TOKEN'?"),
        ("platforms.irc.qqqqqqqq", "unknown setting 'platforms.irc.qqqqqqqq'"),
    ],
)
def test_the_error_for_an_unknown_setting_names_a_similar_one(name: str, told: str) -> None:
    with pytest.raises(ConfigError, match="unknown setting") as caught:
        KNOWN.field(name)
    assert told in str(caught.value)


def test_only_settings_of_platforms_that_have_a_value_are_listed(tmp_path: Path) -> None:
    assert list(KNOWN.explain_platforms(load(tmp_path, {}))) == []
    (tmp_path / "config.yaml").write_text("platforms: {chat: {mode: push}}\n")
    found = KNOWN.explain_platforms(load(tmp_path, {"CHAT_BOT_TOKEN": "t"}))
    assert {one.key: one.value for one in found} == {
        "platforms.chat.token": "t",
        "platforms.chat.mode": "push",
    }


def test_a_value_that_names_a_variable_is_explained_with_its_value(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("platforms: {chat: {token: '${HIDDEN}'}}\n")
    found = KNOWN.explain(load(tmp_path, {"HIDDEN": "t"}), "platforms.chat.token")
    assert (found.value, found.secret) == ("t", True)
    missing = KNOWN.explain(load(tmp_path, {}), "platforms.chat.token")
    assert missing.value == "${HIDDEN}"


def test_a_wrong_value_of_a_platform_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="expected one of poll, push, found 'pull'"):
        set_value("platforms.chat.mode", "pull", tmp_path, {}, KNOWN)
    assert not (tmp_path / "config.yaml").exists()


def test_a_wrong_value_of_a_platform_can_be_corrected_and_removed(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("platforms: {chat: {mode: pull, accounts: {b: t}}}\n")
    with pytest.raises(ConfigProblems):
        KNOWN.check(load(tmp_path, {}), "platforms.chat.mode")
    set_value("platforms.chat.token", "t", tmp_path, {}, KNOWN)
    set_value("platforms.chat.mode", "push", tmp_path, {}, KNOWN)
    assert KNOWN.explain(load(tmp_path, {}), "platforms.chat.mode").value == "push"
    (done,) = unset_value("platforms.chat.mode", tmp_path, {}, KNOWN)
    assert (done.name, done.path) == ("platforms.chat.mode", config)
    assert KNOWN.explain(load(tmp_path, {}), "platforms.chat.mode").source == "default"


def test_a_change_names_the_variable_that_overrides_a_setting_of_a_platform(
    tmp_path: Path,
) -> None:
    environ = {"CHAT_BOT_TOKEN": "other"}
    change = set_value("platforms.chat.token", "t", tmp_path, environ, KNOWN)
    assert (change.name, change.path) == ("CHAT_BOT_TOKEN", tmp_path / ".env")
    assert change.overruled_by == "environment CHAT_BOT_TOKEN"
