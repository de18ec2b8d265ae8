"""Creates the adapters of the configured accounts, and keeps them connected."""

import logging
from collections.abc import Callable, Sequence

import anyio

from hermes.control.access import accept_from_chat
from hermes.control.chat_files import accept_with_files
from hermes.control.gateway import Gateway
from hermes.settings import Settings
from hermes.settings.platforms import platform_config
from hermes.types.errors import (
    AuthFailed,
    ClaimLost,
    ConfigError,
    Disconnected,
    HermesError,
    RateLimited,
)
from hermes.types.platforms import (
    AnyPlatform,
    CanFetch,
    CanListCommands,
    ConfigT,
    Cursor,
    Platform,
    PlatformAdapter,
    WebhookRoute,
)
from hermes.types.protocols import Accept

log = logging.getLogger(__name__)

HELD_SECONDS = 1.0
RECONNECT_BACKOFF = (1.0, 2.0, 5.0, 15.0, 30.0, 60.0)
"""Seconds before the next connection, by the number of consecutive failures."""


def make_adapters(settings: Settings, platforms: Sequence[AnyPlatform]) -> list[PlatformAdapter]:
    """Creates an adapter for every configured account. If that is not possible, raises a
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
        hint = f": install it with `pip install 'hermes[{platform.extra}]'`"
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


async def serve(gateway: Gateway, adapter: PlatformAdapter) -> None:
    """Listens and delivers for the account until cancelled. Returns early if the account's
    credential is invalid."""
    cursor = await hold(gateway, adapter)
    accept: Accept = gateway.accept
    if isinstance(adapter, CanFetch):
        accept = accept_with_files(accept, gateway.admits, gateway.media, adapter.fetch)
    accept = accept_from_chat(accept, adapter.account)
    failures = 0

    def ready() -> None:
        nonlocal failures
        failures = 0
        log.info("%s is connected", adapter.account)

    while True:
        try:
            await _run(gateway, adapter, accept, ready, cursor)
            pause = _backoff(failures)
            log.warning("%s ended its connection; reconnecting in %s s", adapter.account, pause)
        except AuthFailed as error:
            log.error("%s can't log in and is off until the restart: %s", adapter.account, error)
            return
        except ClaimLost as lost:
            log.warning("%s", lost)
            await anyio.sleep(HELD_SECONDS)
            cursor = await hold(gateway, adapter)
            continue
        except HermesError as error:
            limited = isinstance(error, RateLimited) and error.retry_after
            pause = limited or _backoff(failures)
            passing = isinstance(error, Disconnected | RateLimited)
            level = logging.WARNING if passing else logging.ERROR
            log.log(level, "%s: %s; reconnecting in %s s", adapter.account, error, pause)
        except Exception:
            pause = _backoff(failures)
            log.exception("%s failed; reconnecting in %s s", adapter.account, pause)
        failures += 1
        await anyio.sleep(pause)


async def _run(
    gateway: Gateway,
    adapter: PlatformAdapter,
    accept: Accept,
    ready: Callable[[], None],
    cursor: Cursor,
) -> None:
    """Runs the adapter. Raises ClaimLost as soon as another process serves the account."""
    lost = False

    async def watch() -> None:
        nonlocal lost
        await gateway.account_lost(adapter)
        lost = True
        group.cancel_scope.cancel()

    try:
        async with anyio.create_task_group() as group:
            group.start_soon(watch)
            group.start_soon(_show_commands, gateway, adapter)
            await adapter.run(accept, ready, cursor)
            group.cancel_scope.cancel()
    except BaseExceptionGroup as raised:
        # The watch raises nothing, so this is the error of the adapter.
        raise raised.exceptions[0] from None
    if lost:
        raise ClaimLost(f"account {adapter.account} is now served by another process")


async def _show_commands(gateway: Gateway, adapter: PlatformAdapter) -> None:
    if isinstance(adapter, CanListCommands):
        try:
            await adapter.show_commands(gateway.commands)
        except HermesError as error:
            log.warning("the menu of commands of %s was not set: %s", adapter.account, error)


def _backoff(failures: int) -> float:
    return RECONNECT_BACKOFF[min(failures, len(RECONNECT_BACKOFF) - 1)]


async def hold(gateway: Gateway, adapter: PlatformAdapter) -> Cursor:
    """Waits until no other process serves the account. Returns the cursor to continue from."""
    told = False
    while True:
        try:
            if cursor := await gateway.hold_account(adapter):
                return cursor
            if not told:
                told = True
                log.warning("%s is served by another process; waiting for it", adapter.account)
        except HermesError as error:
            log.error("%s can't be served yet: %s", adapter.account, error)
        await anyio.sleep(HELD_SECONDS)
