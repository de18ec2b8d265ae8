"""Commits the record of something that has already happened, and retries until the store accepts
the record."""

import logging
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import anyio

from hermes.types.errors import StoreUnavailable
from hermes.types.store import Store, Work

log = logging.getLogger(__name__)

T = TypeVar("T")
P = ParamSpec("P")

RETRY_SECONDS = 1.0


async def persist(
    store: Store, transaction: Callable[P, Work[T]], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Commits the transaction, and retries while the disk is full or the database is down."""
    while True:
        try:
            return await store.run(transaction, *args, **kwargs)
        except StoreUnavailable as error:
            log.error("can't store what has happened, trying again: %s", error)
            await anyio.sleep(RETRY_SECONDS)
