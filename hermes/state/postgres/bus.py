"""The message bus between processes that share a database. It uses PostgreSQL's notifications."""

import itertools
import logging
from collections.abc import AsyncIterator, Sequence

import anyio

from hermes.state.postgres import transactions
from hermes.state.postgres.pool import Pool
from hermes.types.errors import StoreUnavailable
from hermes.types.identity import OwnerId

log = logging.getLogger(__name__)

PIECE_CHARACTERS = 1900
"""Number of characters in one notification. A notification has less than 8000 bytes, and a
character has up to 4."""
UNREAD_MESSAGES = 1024
"""Maximum number of messages that wait for the reader. Further messages are dropped."""
BUS_CHANNEL = "hermes_bus"
"""The channel to which every process listens."""


def channel_of(owner: str) -> str:
    """Returns the channel of messages to one process."""
    return f"hermes_{owner}"


class PostgresBus:
    """Sends a long message in several notifications, and joins the notifications that it
    receives."""

    def __init__(self, pool: Pool, id: str) -> None:
        self._pool = pool
        self._id = id
        self._numbers = itertools.count(1)
        self._pieces: dict[str, list[str]] = {}
        """The received pieces of each sender's message that is not complete yet."""
        self._inbox, self._outlet = anyio.create_memory_object_stream[str](UNREAD_MESSAGES)

    async def send(self, texts: Sequence[str], to: OwnerId | None = None) -> None:
        payloads = [payload for text in texts for payload in self._payloads(text)]
        name = BUS_CHANNEL if to is None else channel_of(to)
        try:
            channel = await self._pool.acquire()
            try:
                await transactions.notify(channel, name, payloads)
            finally:
                await self._pool.release(channel)
        except StoreUnavailable as error:
            log.debug("a message to other processes is lost: %s", error)

    async def received(self) -> AsyncIterator[str]:
        async for text in self._outlet:
            yield text

    def take(self, payload: str) -> None:
        """Takes a notification that has arrived."""
        sender, number, position, count, piece = payload.split(" ", 4)
        if sender == self._id:
            return
        key = f"{sender} {number}"
        pieces = self._pieces.setdefault(key, [])
        if len(pieces) + 1 != int(position):
            # The connection was lost while the message was being received.
            del self._pieces[key]
            return
        pieces.append(piece)
        if len(pieces) < int(count):
            return
        del self._pieces[key]
        try:
            self._inbox.send_nowait("".join(pieces))
        except anyio.WouldBlock:
            log.debug("a message of another process is dropped: too many wait")

    def interrupted(self) -> None:
        """Forgets incomplete messages. Call this after the connection was lost."""
        self._pieces.clear()

    def close(self) -> None:
        self._inbox.close()
        self._outlet.close()

    def _payloads(self, text: str) -> list[str]:
        # The number keeps PostgreSQL from dropping equal payloads of one transaction.
        number = next(self._numbers)
        starts = range(0, max(len(text), 1), PIECE_CHARACTERS)
        return [
            f"{self._id} {number} {position} {len(starts)} {text[start : start + PIECE_CHARACTERS]}"
            for position, start in enumerate(starts, 1)
        ]
