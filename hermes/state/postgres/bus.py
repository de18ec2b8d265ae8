"""The message bus between processes that share a database. It uses PostgreSQL's notifications."""

import logging
from collections.abc import AsyncIterator, Sequence

from hermes.state.bus_messages import BusMessages
from hermes.state.postgres import transactions
from hermes.state.postgres.pool import Pool
from hermes.types.errors import StoreUnavailable
from hermes.types.identity import OwnerId

log = logging.getLogger(__name__)

PIECE_CHARACTERS = 1900
"""Maximum number of characters in one notification. A notification must be shorter than 8000 bytes,
and a character has up to 4 bytes."""
COMMITS_CHANNEL = "hermes"
"""The channel on which commits are announced. Every process that waits for changes listens to
it."""
BUS_CHANNEL = "hermes_bus"
"""The channel of messages to all processes."""


def channel_of(owner: str) -> str:
    """Returns the name of the channel on which a process receives messages."""
    return f"hermes_{owner}"


class PostgresBus:
    """Sends notifications. Another object, which holds the receiving connection, passes arriving
    notifications to `take`."""

    def __init__(self, pool: Pool, id: str) -> None:
        self._pool = pool
        self._messages = BusMessages(id)

    async def send(self, texts: Sequence[str], to: OwnerId | None = None) -> None:
        pieces = [
            piece for text in texts for piece in self._messages.pieces(text, PIECE_CHARACTERS)
        ]
        await self._notify(BUS_CHANNEL if to is None else channel_of(to), pieces)

    async def announce(self, commit: int) -> None:
        await self._notify(COMMITS_CHANNEL, [self._messages.announcement(commit)])

    def received(self) -> AsyncIterator[str]:
        return self._messages.received()

    def announced(self) -> AsyncIterator[int | None]:
        return self._messages.announced()

    def take(self, channel: str, payload: str) -> None:
        """Processes a notification that has arrived."""
        if channel == COMMITS_CHANNEL:
            self._messages.take_announcement(payload)
        else:
            self._messages.take_piece(payload)

    def interrupted(self) -> None:
        """Tells the reader that announcements may have been lost. Call this when the connection is
        lost, and again when a new connection is open."""
        self._messages.interrupted()

    def close(self) -> None:
        self._messages.close()

    async def _notify(self, name: str, payloads: Sequence[str]) -> None:
        try:
            channel = await self._pool.acquire()
            try:
                await transactions.notify(channel, name, payloads)
            finally:
                await self._pool.release(channel)
        except StoreUnavailable as error:
            log.debug("a message to other processes is lost: %s", error)
