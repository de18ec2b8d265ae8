"""Builds the messenger, which sends messages to the chats of the configured platforms."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from hermes.app.builtins import all_plugins
from hermes.app.stores import home_store
from hermes.boundary.egress import Egress
from hermes.control.directory import Directory
from hermes.control.media import MediaIntake
from hermes.control.messenger import ChatMessenger
from hermes.control.targets import TargetPlatform
from hermes.settings import Settings
from hermes.settings.platforms import platform_config
from hermes.state.media import MediaCache
from hermes.types.errors import ConfigError
from hermes.types.platforms import AnyPlatform
from hermes.types.store import Store


def target_platforms(
    settings: Settings, platforms: Sequence[AnyPlatform], *, strict: bool = True
) -> tuple[TargetPlatform, ...]:
    """Returns the installed platforms with their configured accounts.

    Raises ConfigError if the settings of a platform are wrong. If `strict` is false, such a
    platform raises no error and is returned without accounts.
    """
    return tuple(_target_platform(settings, platform, strict=strict) for platform in platforms)


def _target_platform(settings: Settings, platform: AnyPlatform, *, strict: bool) -> TargetPlatform:
    section = settings.platforms.get(platform.name)
    accounts: Sequence[str] = ()
    try:
        if section is None or section.enabled is not False:
            accounts = platform.accounts(platform_config(settings, platform))
    except ConfigError:
        if strict:
            raise
    return TargetPlatform(
        name=platform.name,
        accounts=tuple(accounts),
        refs=platform.refs,
        home=str(section.home_channel).strip() if section else "",
    )


def messenger_of(
    settings: Settings, store: Store, platforms: Sequence[TargetPlatform]
) -> ChatMessenger:
    """Returns a messenger that uses this store, for a process that runs no gateway."""
    media = MediaIntake(MediaCache(settings.files.media), Egress().download)
    return ChatMessenger(store, Directory(store, platforms), media)


@asynccontextmanager
async def open_messenger(settings: Settings) -> AsyncIterator[ChatMessenger]:
    """Opens the store and yields a messenger, for a process that runs no gateway."""
    platforms = target_platforms(settings, all_plugins().platforms())
    async with home_store(settings) as store:
        yield messenger_of(settings, store, platforms)
