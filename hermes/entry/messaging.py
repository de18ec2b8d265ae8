"""Keeps an account of a chat platform connected, for as long as the gateway runs."""

import logging

import anyio

from hermes.control.gateway import Gateway
from hermes.types.errors import AuthFailed, Disconnected, HermesError, RateLimited
from hermes.types.protocols import PlatformAdapter

log = logging.getLogger(__name__)

HELD_SECONDS = 1.0
BACKOFF = (1.0, 2.0, 5.0, 15.0, 30.0, 60.0)
"""Seconds before the next connection, by how often it failed in a row."""


async def serve(gateway: Gateway, adapter: PlatformAdapter) -> None:
    """Listens and delivers for the account until cancelled. Ends alone if its credential is bad."""
    await hold(gateway, adapter)
    failures = 0

    def ready() -> None:
        nonlocal failures
        failures = 0
        log.info("%s is connected", adapter.account)

    while True:
        try:
            await adapter.run(gateway.accept, ready)
            pause = BACKOFF[min(failures, len(BACKOFF) - 1)]
            log.warning("%s ended its connection; again in %s s", adapter.account, pause)
        except AuthFailed as error:
            log.error("%s can't log in and is off until the restart: %s", adapter.account, error)
            return
        except HermesError as error:
            pause = BACKOFF[min(failures, len(BACKOFF) - 1)]
            if isinstance(error, RateLimited) and error.retry_after:
                pause = error.retry_after
            level = logging.WARNING if isinstance(error, Disconnected) else logging.ERROR
            log.log(level, "%s: %s; again in %s s", adapter.account, error, pause)
        except Exception:
            pause = BACKOFF[min(failures, len(BACKOFF) - 1)]
            log.exception("%s failed; again in %s s", adapter.account, pause)
        failures += 1
        await anyio.sleep(pause)


async def hold(gateway: Gateway, adapter: PlatformAdapter) -> None:
    """Waits until no other process serves the account."""
    told = False
    while True:
        try:
            if await gateway.hold_account(adapter):
                return
            if not told:
                told = True
                log.warning("%s is served by another process; waiting for it", adapter.account)
        except HermesError as error:
            log.error("%s can't be taken up: %s", adapter.account, error)
        await anyio.sleep(HELD_SECONDS)
