"""The messenger gets its accounts and home chats from the settings."""

from pathlib import Path

import pytest

from hermes.app.messenger import open_messenger, target_platforms
from hermes.control.targets import BadTarget
from hermes.entry.platforms.telegram.manifest import TELEGRAM
from hermes.settings import load
from hermes.types.errors import ConfigError

TOKEN = "100:secret-token"


def accounts(home: Path, config: str = "", **environ: str) -> dict[str, tuple[str, ...]]:
    (home / "config.yaml").write_text(config)
    found = target_platforms(load(home, environ), [TELEGRAM])
    return {one.name: (*one.accounts, one.home) for one in found}


def test_the_accounts_and_the_home_chat_come_from_the_settings(tmp_path: Path) -> None:
    assert accounts(tmp_path) == {"telegram": ("",)}
    assert accounts(tmp_path, TELEGRAM_BOT_TOKEN=TOKEN) == {"telegram": ("telegram", "")}
    config = "platforms: {telegram: {home_channel: -1001, accounts: {b: {token: '200:b'}}}}"
    assert accounts(tmp_path, config) == {"telegram": ("telegram.b", "-1001")}
    off = "platforms: {telegram: {enabled: false}}"
    found = accounts(tmp_path, off, TELEGRAM_BOT_TOKEN=TOKEN, TELEGRAM_HOME_CHANNEL="7:2")
    assert found == {"telegram": ("7:2",)}


def test_wrong_settings_of_a_platform_are_reported(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not a bot token"):
        accounts(tmp_path, TELEGRAM_BOT_TOKEN="nonsense")


def test_a_terminal_ignores_platforms_with_wrong_settings(tmp_path: Path) -> None:
    settings = load(tmp_path, {"TELEGRAM_BOT_TOKEN": "nonsense"})
    (found,) = target_platforms(settings, [TELEGRAM], strict=False)
    assert found.accounts == ()


async def test_a_process_without_a_gateway_can_resolve_targets(tmp_path: Path) -> None:
    settings = load(tmp_path, {"TELEGRAM_BOT_TOKEN": TOKEN, "TELEGRAM_HOME_CHANNEL": "7"})
    async with open_messenger(settings) as messenger:
        (found,) = await messenger.directory.resolve("telegram")
        assert found.text == "telegram:7"
        with pytest.raises(BadTarget):
            await messenger.directory.resolve("matrix")
