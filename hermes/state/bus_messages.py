"""Splits the messages of a bus (the channel between processes) into pieces that can be sent, and
joins the pieces that arrive."""

import itertools
import logging
from collections.abc import AsyncIterator
from contextlib import suppress

import anyio

log = logging.getLogger(__name__)

UNREAD_MESSAGES = 1024
"""Maximum number of messages that wait for the reader. Further messages are dropped."""
UNFINISHED_MESSAGES = 64
"""Maximum number of incomplete messages. If there are more, the oldest message is dropped."""
HEADER_SIZE = 100
"""Maximum number of bytes in the header of a piece, which precedes its text."""


class BusMessages:
    """The messages that one process sends and receives, over any kind of bus. Received text is
    ignored if it is neither a piece of a message nor an announcement."""

    def __init__(self, id: str) -> None:
        self._id = id
        self._numbers = itertools.count(1)
        self._pieces: dict[str, list[str]] = {}
        """The pieces of messages that are not complete yet."""
        self._inbox, self._outlet = anyio.create_memory_object_stream[str](UNREAD_MESSAGES)
        self._commits, self._announced = anyio.create_memory_object_stream[int | None](
            UNREAD_MESSAGES
        )

    def pieces(self, text: str, characters: int) -> list[str]:
        """Splits the text of a message. Each piece contains at most `characters` characters of the
        text, after a header."""
        # The number makes every piece different, because PostgreSQL drops a notification that
        # equals an earlier notification.
        number = next(self._numbers)
        starts = range(0, max(len(text), 1), characters)
        return [
            f"{self._id} {number} {position} {len(starts)} {text[start : start + characters]}"
            for position, start in enumerate(starts, 1)
        ]

    def take_piece(self, piece: str) -> None:
        """Processes a piece that has arrived. The pieces of a message must arrive in order."""
        parts = piece.split(" ", 4)
        if len(parts) < 5 or not (_is_number(parts[2]) and _is_number(parts[3])):
            return
        sender, number, position, count, text = parts
        if sender == self._id:
            return
        key = f"{sender} {number}"
        pieces = self._pieces.pop(key, [])
        if len(pieces) + 1 != int(position):
            # An earlier piece was lost, so the whole message is dropped.
            return
        pieces.append(text)
        if len(pieces) >= int(count):
            self._put("".join(pieces))
            return
        if len(self._pieces) >= UNFINISHED_MESSAGES:
            del self._pieces[next(iter(self._pieces))]
        self._pieces[key] = pieces

    def announcement(self, commit: int) -> str:
        return f"{self._id} {commit}"

    def take_announcement(self, text: str) -> None:
        """Reads an announcement, which says that another process has committed a transaction."""
        sender, _, number = text.partition(" ")
        if sender != self._id and _is_number(number):
            self._note_commit(int(number))

    def interrupted(self) -> None:
        """Forgets incomplete messages, and tells the reader that announcements may have been lost.

        Call this when the connection is lost, and again when a new connection is open.
        """
        self._pieces.clear()
        self._note_commit(None)

    async def received(self) -> AsyncIterator[str]:
        with suppress(anyio.ClosedResourceError):
            async for text in self._outlet:
                yield text

    async def announced(self) -> AsyncIterator[int | None]:
        with suppress(anyio.ClosedResourceError):
            async for commit in self._announced:
                yield commit

    def close(self) -> None:
        """Closes the streams, so that the loops over `received` and `announced` end."""
        for stream in (self._inbox, self._outlet, self._commits, self._announced):
            stream.close()

    def _put(self, text: str) -> None:
        try:
            self._inbox.send_nowait(text)
        except anyio.WouldBlock:
            log.debug("a message of another process is dropped: too many wait")
        except anyio.ClosedResourceError:
            log.debug("a message of another process is dropped: the store is closed")

    def _note_commit(self, commit: int | None) -> None:
        try:
            self._commits.send_nowait(commit)
        except anyio.WouldBlock:
            log.debug("an announcement is dropped: the reader has many others to look at")
        except anyio.ClosedResourceError:
            log.debug("an announcement is dropped: the store is closed")


def _is_number(text: str) -> bool:
    return text.isdecimal() and len(text) < 20
