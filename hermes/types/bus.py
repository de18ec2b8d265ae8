"""The protocol of the bus. It carries messages between the processes that share a store, and may
lose messages."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from hermes.types.identity import OwnerId


class Bus(Protocol):
    """Carries messages that may be lost. Everything that must not be lost is in the store, so a
    lost message only causes a delay."""

    async def send(self, texts: Sequence[str], to: OwnerId | None = None) -> None:
        """Sends the texts, in order, to one process or to all other processes. A failure is only
        logged."""
        ...

    def received(self) -> AsyncIterator[str]:
        """Yields the texts that other processes have sent. Only one reader is allowed."""
        ...

    async def announce(self, commit: int) -> None:
        """Tells all other processes that this process has committed transactions.

        `commit` is the highest number of these transactions. A failure is only logged.
        """
        ...

    def announced(self) -> AsyncIterator[int | None]:
        """Yields the numbers of commits that other processes have announced. Only one reader is
        allowed.

        None means that announcements may have been lost. The reader must then read the store.
        """
        ...


OpenBus = Callable[[OwnerId, str], AbstractAsyncContextManager[Bus]]
"""Opens a bus for one process. The string is a name that is the same for all processes of one
database and different for every other database."""
