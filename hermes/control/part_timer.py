"""Wakes the gateway when a message stops waiting for its further parts."""

import time
from collections.abc import Callable

import anyio
import anyio.abc

from hermes.state.message_parts import next_due
from hermes.types.store import Store


class PartTimer:
    def __init__(self, store: Store, group: anyio.abc.TaskGroup, wake: Callable[[], None]) -> None:
        self._store = store
        self._group = group
        self._wake = wake
        self._due: set[float] = set()
        """The times at which the gateway will be woken."""

    def set(self, due: float) -> None:
        """Wakes the gateway at the time `due`."""
        if due not in self._due:
            self._due.add(due)
            self._group.start_soon(self._wait, due)

    async def look(self, after: float) -> None:
        """Looks in the store for the messages that wait for further parts, including the messages
        that other processes have stored. Finds the first of these messages that stops waiting later
        than the time `after`, and sets the timer to the end of its wait."""
        due = await self._store.read(next_due, after)
        if due is not None:
            self.set(due)

    async def _wait(self, due: float) -> None:
        await anyio.sleep(max(due - time.time(), 0.0))
        self._due.discard(due)
        self._wake()
