"""Declares Telegram: its settings, its accounts and its webhooks."""

import re
from collections.abc import Sequence
from typing import Annotated
from urllib.parse import urlsplit

import msgspec

from hermes.settings.schema import Aliases
from hermes.types.errors import ConfigError
from hermes.types.platforms import Platform, PlatformAdapter, WebhookRoute, refs_like
from hermes.types.value import Value

_TOKEN = re.compile(r"\d+:[\w-]+", re.ASCII)
_SECRET = re.compile(r"[\w-]{1,256}", re.ASCII)


class TelegramAccount(Value):
    """One additional bot."""

    token: str


class TelegramConfig(Value):
    token: Annotated[str, Aliases(env=("TELEGRAM_BOT_TOKEN",), secret=True)] = ""
    """The token of the bot, from @BotFather."""
    accounts: dict[str, TelegramAccount] = msgspec.field(default_factory=dict)
    """Additional bots, by a name of your choice. Each has a `token`."""
    base_url: Annotated[str, Aliases(env=("TELEGRAM_BASE_URL",), keys=("extra.base_url",))] = (
        "https://api.telegram.org"
    )
    """The root of the Bot API server; `/bot<token>/<method>` is appended to it."""
    webhook_url: Annotated[str, Aliases(env=("TELEGRAM_WEBHOOK_URL",))] = ""
    """The public HTTPS address at which Telegram delivers updates. If there is no address, the
    gateway polls Telegram for updates."""
    webhook_secret: Annotated[str, Aliases(env=("TELEGRAM_WEBHOOK_SECRET",), secret=True)] = ""
    """The secret that Telegram repeats in each delivery. It is required with `webhook_url`."""
    reactions: Annotated[bool, Aliases(env=("TELEGRAM_REACTIONS",))] = False
    """Whether the bot reacts to a message with 👀 when the agent begins to work on the message."""


def accounts(config: TelegramConfig) -> Sequence[str]:
    """Returns the configured accounts. Raises ConfigError for a value that can't be used."""
    tokens = {"telegram": config.token} if config.token else {}
    tokens |= {f"telegram.{name}": one.token for name, one in config.accounts.items()}
    for account, token in tokens.items():
        if not _TOKEN.fullmatch(token):
            raise ConfigError(f"the token of {account} is not a bot token: copy it from @BotFather")
    if len(set(tokens.values())) < len(tokens):
        raise ConfigError("two accounts of telegram have the same token: each needs its own bot")
    if not urlsplit(config.base_url).hostname:
        raise ConfigError(f"platforms.telegram.base_url is not a URL: {config.base_url!r}")
    if config.webhook_url and not _SECRET.fullmatch(config.webhook_secret):
        raise ConfigError(
            "platforms.telegram.webhook_url needs webhook_secret (TELEGRAM_WEBHOOK_SECRET): 1 to"
            " 256 letters, digits, _ or -"
        )
    return list(tokens)


def token_of(account: str, config: TelegramConfig) -> str:
    name = account.partition(".")[2]
    return config.accounts[name].token if name else config.token


def webhook_url(account: str, config: TelegramConfig) -> str:
    """Returns the address to which Telegram delivers an account's updates; empty for polling."""
    name = account.partition(".")[2]
    url = config.webhook_url.rstrip("/")
    if url and not urlsplit(url).path:
        url += "/telegram"
    return f"{url}/{name}" if url and name else url


def make(account: str, config: TelegramConfig) -> PlatformAdapter:
    # aiohttp is slow to import, and many commands do not need it.
    from hermes.entry.platforms.telegram.adapter import TelegramAdapter  # noqa: PLC0415

    return TelegramAdapter(account, config)


def routes(config: TelegramConfig) -> Sequence[WebhookRoute]:
    from hermes.entry.platforms.telegram.webhook import webhook_route  # noqa: PLC0415

    if not config.webhook_url:
        return ()
    return [webhook_route(account, config) for account in accounts(config)]


TELEGRAM = Platform(
    name="telegram",
    config=TelegramConfig,
    accounts=accounts,
    make=make,
    credential=token_of,
    routes=routes,
    quality="gold",
    refs=refs_like(r"(-?\d+|@[A-Za-z]\w+)(?::(\d+))?", "-1001234567890"),
)
