"""The section of a platform has the type that its manifest declares. The code in `hermes.settings`
names no platform."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import pytest

from hermes.settings import Settings, load
from hermes.settings.platforms import check_platforms, platform_config
from hermes.settings.schema import Aliases
from hermes.settings.sources import ConfigProblems
from hermes.testing.platforms import ChatServer, PlainAdapter
from hermes.types.platforms import AnyPlatform, Platform
from hermes.types.value import Value


class Bot(Value):
    token: str
    port: int = 0


class ChatConfig(Value):
    token: Annotated[str, Aliases(env=("CHAT_BOT_TOKEN", "{}_TOKEN"), keys=("extra.token",))] = ""
    port: Annotated[int, msgspec.Meta(ge=1), Aliases(env=("CHAT_PORT",))] = 1
    rooms: tuple[str, ...] = ()
    mode: Literal["poll", "push"] = "poll"
    bots: dict[str, Bot] = msgspec.field(default_factory=dict)


def platform(name: str = "chat") -> Platform[ChatConfig]:
    return Platform(
        name=name,
        config=ChatConfig,
        accounts=lambda config: [name] if config.token else [],
        make=lambda account, config: PlainAdapter(ChatServer(), account),
    )


def settings(
    home: Path, config: str = "", dotenv: str = "", environ: Mapping[str, str] | None = None
) -> Settings:
    (home / "config.yaml").write_text(config, encoding="utf-8")
    (home / ".env").write_text(dotenv, encoding="utf-8")
    return load(home, environ or {})


def problems(found: Settings) -> tuple[str, ...]:
    with pytest.raises(ConfigProblems) as caught:
        platform_config(found, platform())
    return caught.value.problems


def test_a_platform_that_is_not_configured_has_its_defaults(tmp_path: Path) -> None:
    assert platform_config(settings(tmp_path), platform()) == ChatConfig()


def test_a_section_is_read_into_the_type_of_the_manifest(tmp_path: Path) -> None:
    config = """\
platforms:
  chat:
    enabled: true
    allowed_users: [7]
    token: abc
    port: '8'
    rooms: [1, b]
    mode: PUSH
    bots: {support: {token: x, port: 3}}
"""
    found = settings(tmp_path, config)
    assert platform_config(found, platform()) == ChatConfig(
        token="abc", port=8, rooms=("1", "b"), mode="push", bots={"support": Bot(token="x", port=3)}
    )
    assert found.platforms["chat"].allowed_users == ("7",)
    assert found.platforms["chat"].enabled is True


def test_variables_of_the_manifest_take_precedence_over_the_file(tmp_path: Path) -> None:
    config = "platforms: {chat: {token: yaml, port: 2}}\n"
    found = settings(tmp_path, config, "CHAT_PORT=3\nCHAT_TOKEN=dotenv\n", {"CHAT_PORT": "4"})
    assert platform_config(found, platform()) == ChatConfig(token="dotenv", port=4)
    found = settings(tmp_path, config, "", {"CHAT_TOKEN": "second", "CHAT_BOT_TOKEN": "first"})
    assert platform_config(found, platform()).token == "first"


def test_references_in_a_variable_are_not_expanded(tmp_path: Path) -> None:
    found = settings(tmp_path, environ={"CHAT_TOKEN": "a${NOT_SET}"})
    assert platform_config(found, platform()).token == "a${NOT_SET}"


def test_a_variable_with_the_platform_s_name_belongs_to_the_platform(tmp_path: Path) -> None:
    found = settings(tmp_path, environ={"OTHER_TOKEN": "theirs"})
    assert platform_config(found, platform()).token == ""
    assert platform_config(found, platform("other")).token == "theirs"


def test_an_alias_in_the_section_is_read(tmp_path: Path) -> None:
    found = settings(tmp_path, "platforms: {chat: {extra: {token: deep}}}\n")
    assert platform_config(found, platform()).token == "deep"
    found = settings(tmp_path, "platforms: {chat: {token: own, extra: {token: deep}}}\n")
    assert platform_config(found, platform()).token == "own"
    found = settings(tmp_path, "platforms: {chat: {extra: {other: 1}}}\n")
    assert platform_config(found, platform()).token == ""


def test_a_value_may_name_a_variable(tmp_path: Path) -> None:
    config = "platforms:\n  chat:\n    bots: {a: {token: '${SECRET_OF_A}'}}\n"
    found = settings(tmp_path, config, environ={"SECRET_OF_A": "s"})
    assert platform_config(found, platform()).bots["a"].token == "s"
    (problem,) = problems(settings(tmp_path, config))
    assert "line 3: platforms.chat.bots needs the variable SECRET_OF_A" in problem


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("port: many", "platforms.chat.port: expected a whole number from 1, found 'many'"),
        ("port: 0", "platforms.chat.port: expected a whole number from 1, found 0"),
        ("mode: pull", "platforms.chat.mode: expected one of poll, push, found 'pull'"),
        ("bots: {a: {token: x, port: y}}", "platforms.chat.bots: Expected `int`, got `str`"),
        ("tokn: x", "unknown key 'platforms.chat.tokn': did you mean 'platforms.chat.token'?"),
        ("alow_all: true", "did you mean 'platforms.chat.allow_all'?"),
        ("fax: 1", "unknown key 'platforms.chat.fax'"),
    ],
)
def test_the_error_for_a_wrong_value_names_the_file_the_line_and_the_key(
    tmp_path: Path, line: str, expected: str
) -> None:
    (problem,) = problems(settings(tmp_path, f"platforms:\n  chat:\n    {line}\n"))
    assert problem.startswith(f"{tmp_path / 'config.yaml'} line 3: ")
    assert expected in problem


def test_the_error_names_a_wrong_variable(tmp_path: Path) -> None:
    (problem,) = problems(settings(tmp_path, environ={"CHAT_PORT": "x"}))
    assert problem.startswith("environment CHAT_PORT: platforms.chat.port: expected")


def test_a_setting_without_a_default_must_be_set(tmp_path: Path) -> None:
    strict = Platform(
        name="strict",
        config=Bot,
        accounts=lambda config: [],
        make=lambda account, config: PlainAdapter(ChatServer()),
    )
    with pytest.raises(ConfigProblems, match=r"platforms\.strict\.token is not set"):
        platform_config(settings(tmp_path), strict)


def checked(home: Path, config: str, *platforms: AnyPlatform) -> tuple[str, ...]:
    return check_platforms(settings(home, config), platforms)


def test_a_section_of_a_platform_that_is_not_installed_gives_a_warning(tmp_path: Path) -> None:
    config = "platforms:\n  telegram: {token: '123:abcdefgh', allowed_users: [1]}\n"
    assert checked(tmp_path, config, platform()) == (
        "config.yaml: platforms.telegram is ignored: this platform is not installed",
    )
    assert checked(tmp_path, "", platform()) == ()


def test_a_setting_that_is_not_supported_yet_gives_a_warning(tmp_path: Path) -> None:
    config = "platforms: {chat: {reply_to_mode: first}}\n"
    assert checked(tmp_path, config, platform()) == (
        "config.yaml: platforms.chat.reply_to_mode is not supported yet and is ignored",
    )
    assert platform_config(settings(tmp_path, config), platform()) == ChatConfig()


@pytest.mark.parametrize(
    ("config", "place", "meant"),
    [
        ("platforms:\n  chta: {}\n", "line 2", "platforms.chat"),
        ("platforms:\n  irc:\n    alow_all: true\n", "line 3", "platforms.irc.allow_all"),
    ],
)
def test_the_error_for_a_misspelt_section_names_the_file_the_line_and_the_nearest_name(
    tmp_path: Path, config: str, place: str, meant: str
) -> None:
    with pytest.raises(ConfigProblems) as caught:
        checked(tmp_path, config, platform())
    (problem,) = caught.value.problems
    assert f"{tmp_path / 'config.yaml'} {place}: unknown key" in problem
    assert f"did you mean {meant!r}?" in problem
