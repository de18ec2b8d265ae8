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
from hermes.types.platforms import AnyPlatform


def target_platforms(
    settings: Settings, platforms: Sequence[AnyPlatform]
) -> tuple[TargetPlatform, ...]:
    """Returns the installed platforms with their configured accounts.

    Raises ConfigError if the settings of a platform can't be read.
    """
    return tuple(_target_platform(settings, platform) for platform in platforms)


def _target_platform(settings: Settings, platform: AnyPlatform) -> TargetPlatform:
    section = settings.platforms.get(platform.name)
    off = section is not None and section.enabled is False
    config = None if off else platform_config(settings, platform)
    return TargetPlatform(
        name=platform.name,
        accounts=() if config is None else tuple(platform.accounts(config)),
        refs=platform.refs,
        home=str(section.home_channel).strip() if section else "",
    )


@asynccontextmanager
async def open_messenger(settings: Settings) -> AsyncIterator[ChatMessenger]:
    """Yields a messenger for a process that runs no gateway."""
    platforms = target_platforms(settings, all_plugins().platforms())
    media = MediaIntake(MediaCache(settings.files.media), Egress().download)
    async with home_store(settings) as store:
        yield ChatMessenger(store, Directory(store, platforms), media)
