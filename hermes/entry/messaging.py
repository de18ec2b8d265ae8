"""Creates the adapters and the webhook routes of the configured accounts."""

import hashlib
from collections.abc import Sequence

from hermes.settings import Settings
from hermes.settings.platforms import platform_config
from hermes.types.errors import ConfigError
from hermes.types.platforms import (
    AnyPlatform,
    ConfigT,
    Platform,
    PlatformAdapter,
    WebhookRoute,
)


def make_adapters(settings: Settings, platforms: Sequence[AnyPlatform]) -> list[PlatformAdapter]:
    """Creates an adapter for every configured account. If an adapter can't be created, raises a
    ConfigError that says why."""
    adapters = [adapter for platform in platforms for adapter in _adapters(settings, platform)]
    accounts = [adapter.account for adapter in adapters]
    for account in accounts:
        if accounts.count(account) > 1:
            raise ConfigError(
                f"two adapters have the account {account!r}, and would deliver into each other's"
                " chats: every account needs a name of its own"
            )
    return adapters


def _adapters(settings: Settings, platform: Platform[ConfigT]) -> list[PlatformAdapter]:
    enabled = _is_enabled(settings, platform.name)
    if enabled is False:
        return []
    config = platform_config(settings, platform)
    accounts = platform.accounts(config)
    if enabled and not accounts:
        raise ConfigError(
            f"platforms.{platform.name}.enabled is true, but no account is configured:"
            " set its credentials, or remove the setting"
        )
    try:
        adapters = [platform.make(account, config) for account in accounts]
    except ImportError as error:
        hint = f": install it with `pip install 'hermes-gateway[{platform.extra}]'`"
        raise ConfigError(
            f"{platform.name} needs a package that is not installed ({error.name})"
            f"{hint if platform.extra else ''}"
        ) from error
    for adapter in adapters:
        _check_account(platform.name, adapter.account)
    return adapters


def _check_account(platform: str, account: str) -> None:
    own, dot, name = account.partition(".")
    if own != platform or bool(dot) != bool(name):
        raise ConfigError(
            f"{account!r} can't be the name of an account of {platform}: it must be {platform!r} or"
            f" '{platform}.<name>'"
        )


def credential_keys(settings: Settings, platforms: Sequence[AnyPlatform]) -> dict[str, str]:
    """Returns the keys of the credentials of all configured accounts, by account.

    The key of a credential is a hash, from which nobody can learn the credential. Accounts without
    a credential are left out.
    """
    return {
        account: key
        for platform in platforms
        if _is_enabled(settings, platform.name) is not False
        for account, key in _credential_keys(settings, platform).items()
    }


def _credential_keys(settings: Settings, platform: Platform[ConfigT]) -> dict[str, str]:
    config = platform_config(settings, platform)
    found = {account: platform.credential(account, config) for account in platform.accounts(config)}
    return {account: credential_key(platform.name, own) for account, own in found.items() if own}


def credential_key(platform: str, credential: str) -> str:
    """Returns the hash that names the lock of a credential. The lock lets only one process use the
    credential."""
    return hashlib.sha256(f"hermes credential\0{platform}\0{credential}".encode()).hexdigest()


def configured_routes(settings: Settings, platforms: Sequence[AnyPlatform]) -> list[WebhookRoute]:
    """Returns the webhook routes of platforms that have an account.

    Platforms without an account are left out, because their handlers can't verify requests. Raises
    ConfigError if there are routes but no HTTP server.
    """
    routes = [route for platform in platforms for route in _routes(settings, platform)]
    if routes and not settings.api_server.enabled:
        raise ConfigError(
            f"api_server.enabled is false, so nothing can be delivered at {routes[0].path}: set it"
            " to true, or turn the platform's webhooks off"
        )
    return routes


def _routes(settings: Settings, platform: Platform[ConfigT]) -> Sequence[WebhookRoute]:
    if _is_enabled(settings, platform.name) is False:
        return ()
    config = platform_config(settings, platform)
    return platform.routes(config) if platform.accounts(config) else ()


def _is_enabled(settings: Settings, name: str) -> bool | None:
    section = settings.platforms.get(name)
    return section.enabled if section else None
