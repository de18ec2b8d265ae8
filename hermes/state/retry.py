"""Retries a transaction that conflicted with another one."""

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
"""The longest pause before the second attempt; each later one may be twice as long."""

_chance = random.Random()  # noqa: S311  # spreads retries, not a secret


async def retried(attempt: Callable[[], Awaitable[T]]) -> T:
    """The result of `attempt`, which is called again when it raises TransactionConflict.

    After a few attempts the error of the last one is raised. An error that leaves open whether the
    transaction was committed must not be a TransactionConflict.
    """
    for number in range(ATTEMPTS - 1):
        try:
            return await attempt()
        except TransactionConflict as conflict:
            log.debug("retrying a transaction: %s", conflict)
        # Two transactions that conflicted must not be retried at the same moment.
        await anyio.sleep(_chance.uniform(0, PAUSE_SECONDS * 2**number))
    return await attempt()
