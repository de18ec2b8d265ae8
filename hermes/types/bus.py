"""The protocol of the bus, which carries messages between the processes of a store and may lose
them."""

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from hermes.types.identity import OwnerId


class Bus(Protocol):
    """Carries messages that may be lost. They only save time, because the store has everything that
    must not be lost."""

    async def send(self, texts: Sequence[str], to: OwnerId | None = None) -> None:
        """Sends the texts, in order, to one process or to all other processes. A failure is only
        logged."""
        ...

    def received(self) -> AsyncIterator[str]:
        """Yields the texts that other processes have sent. Only one reader is allowed."""
        ...
