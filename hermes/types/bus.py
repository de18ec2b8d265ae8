"""The protocol of the bus: messages between the processes of a store, which may be lost."""

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from hermes.types.identity import OwnerId


class Bus(Protocol):
    """Carries messages that may be lost. They only save time, because the store has everything that
    must not be lost."""

    async def send(self, texts: Sequence[str], to: OwnerId | None = None) -> None:
        """Sends the texts, in order, to one process or to all others. A failure is only logged."""
        ...

    def received(self) -> AsyncIterator[str]:
        """Yields the texts that other processes have sent. There may be one reader."""
        ...
