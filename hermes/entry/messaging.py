"""Keeps an account of a chat platform connected, for as long as the gateway runs."""

import logging

import anyio

from hermes.control.gateway import Gateway
from hermes.types.errors import (
    AuthFailed,
    ClaimLost,
    Disconnected,
    HermesError,
    RateLimited,
)
from hermes.types.platforms import Cursor, PlatformAdapter

log = logging.getLogger(__name__)

HELD_SECONDS = 1.0
RECONNECT_BACKOFF = (1.0, 2.0, 5.0, 15.0, 30.0, 60.0)
"""Seconds before the next connection, by the number of failures in a row."""


async def serve(gateway: Gateway, adapter: PlatformAdapter) -> None:
    """Listens and delivers for the account until cancelled. Returns if its credential is bad."""
    cursor = await hold(gateway, adapter)
    failures = 0

    def ready() -> None:
        nonlocal failures
        failures = 0
        log.info("%s is connected", adapter.account)

    while True:
        try:
            await adapter.run(gateway.accept, ready, cursor)
            pause = _backoff(failures)
            log.warning("%s ended its connection; again in %s s", adapter.account, pause)
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
            level = logging.WARNING if isinstance(error, Disconnected) else logging.ERROR
            log.log(level, "%s: %s; again in %s s", adapter.account, error, pause)
        except Exception:
            pause = _backoff(failures)
            log.exception("%s failed; again in %s s", adapter.account, pause)
        failures += 1
        await anyio.sleep(pause)


def _backoff(failures: int) -> float:
    return RECONNECT_BACKOFF[min(failures, len(RECONNECT_BACKOFF) - 1)]


async def hold(gateway: Gateway, adapter: PlatformAdapter) -> Cursor:
    """Waits until no other process serves the account; the cursor to continue from."""
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
