"""The settings of Telegram come from config.yaml and the environment, and wrong settings are
refused."""

from pathlib import Path

import pytest

from hermes.entry.messaging import configured_routes, make_adapters
from hermes.entry.platforms.telegram.manifest import (
    TELEGRAM,
    TelegramAccount,
    TelegramConfig,
    accounts,
    routes,
    token_of,
    webhook_url,
)
from hermes.settings import load
from hermes.settings.platforms import platform_config
from hermes.settings.schema import own_fields
from hermes.types.errors import ConfigError

TOKEN = "100:abc"


def test_the_settings_are_read_from_the_environment(tmp_path: Path) -> None:
    environ = {
        "TELEGRAM_BOT_TOKEN": TOKEN,
        "TELEGRAM_BASE_URL": "http://127.0.0.1:8081",
        "TELEGRAM_ALLOWED_USERS": "7,8",
        "TELEGRAM_ALLOW_ALL_USERS": "false",
    }
    settings = load(tmp_path, environ)
    config = platform_config(settings, TELEGRAM)
    assert config == TelegramConfig(token=TOKEN, base_url="http://127.0.0.1:8081")
    assert settings.platforms["telegram"].allowed_users == ("7", "8")
    (adapter,) = make_adapters(settings, [TELEGRAM])
    assert adapter.account == "telegram"
    assert configured_routes(settings, [TELEGRAM]) == []


def test_several_bots_are_read_from_the_file(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(
        "platforms:\n  telegram:\n    token: '1:a'\n    base_url: http://127.0.0.1:8081\n"
        "    accounts:\n      support: {token: '${SUPPORT}'}\n"
    )
    config = platform_config(load(tmp_path, {"SUPPORT": "2:b"}), TELEGRAM)
    assert accounts(config) == ["telegram", "telegram.support"]
    assert token_of("telegram", config) == "1:a"
    assert token_of("telegram.support", config) == "2:b"


def test_without_a_token_there_is_no_account() -> None:
    assert accounts(TelegramConfig()) == []
    assert routes(TelegramConfig()) == ()


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        (TelegramConfig(token="secret"), "the token of telegram is not a bot token"),
        (
            TelegramConfig(token=TOKEN, accounts={"b": TelegramAccount(token=TOKEN)}),
            "the same token",
        ),
        (TelegramConfig(token=TOKEN, base_url="nowhere"), "base_url is not a URL"),
        (TelegramConfig(token=TOKEN, webhook_url="https://a.b"), "needs webhook_secret"),
        (
            TelegramConfig(token=TOKEN, webhook_url="https://a.b", webhook_secret="not ok"),
            "needs webhook_secret",
        ),
    ],
)
def test_a_value_that_can_not_be_used_is_refused(config: TelegramConfig, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as caught:
        accounts(config)
    assert TOKEN not in str(caught.value)
    assert "secret" not in str(caught.value).replace("webhook_secret", "")


def test_every_account_has_its_own_webhook() -> None:
    config = TelegramConfig(
        token=TOKEN,
        accounts={"support": TelegramAccount(token="2:b")},
        webhook_url="https://bot.example",
        webhook_secret="s",
    )
    assert webhook_url("telegram", config) == "https://bot.example/telegram"
    assert [route.path for route in routes(config)] == ["/telegram", "/telegram/support"]
    assert webhook_url("telegram", TelegramConfig(webhook_url="https://a.b/c/")) == "https://a.b/c"


def test_every_setting_is_documented() -> None:
    page = (Path(__file__).parents[4] / "docs" / "platforms" / "telegram.md").read_text()
    for field in own_fields(TelegramConfig):
        assert f"| `{field.key}` |" in page
        assert all(f"`{name}`" in page for name in field.aliases.env)
