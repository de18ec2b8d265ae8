"""Retries a transaction that conflicted with another transaction."""

import logging
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from hermes.types.errors import TransactionConflict

log = logging.getLogger(__name__)

T = TypeVar("T")

ATTEMPTS = 5
PAUSE_SECONDS = 0.004
"""Maximum pause in seconds before the second attempt. The maximum doubles with each further
attempt."""

_chance = random.Random()  # noqa: S311  # spreads retries, not a secret


async def retried(attempt: Callable[[], Awaitable[T]]) -> T:
    """Calls `attempt` and returns its result. Calls it again if it raises TransactionConflict.

    After a few attempts the last error is raised. `attempt` may raise TransactionConflict only if
    the transaction was certainly not committed.
    """
    for number in range(ATTEMPTS - 1):
        try:
            return await attempt()
        except TransactionConflict as conflict:
            log.debug("retrying a transaction: %s", conflict)
        # The pause is random, so that two transactions that conflicted are not retried at the same
        # moment.
        await anyio.sleep(_chance.uniform(0, PAUSE_SECONDS * 2**number))
    return await attempt()
