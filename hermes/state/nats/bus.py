"""The bus of processes on several machines: messages over NATS.

While no server can be reached, messages are lost. During this time, the process looks for changes
in the store every second.
"""

import itertools
import logging
import re
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import anyio
import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg

from hermes.state.bus_messages import HEADER_SIZE, BusMessages
from hermes.state.nats.address import NatsAddress
from hermes.types.identity import OwnerId

log = logging.getLogger(__name__)

NATS_CONNECT_SECONDS = 2
PING_SECONDS = 5
"""Seconds between two pings to the server. After two pings without an answer, the connection counts
as lost."""
NATS_PAUSE_SECONDS = 1.0
"""Pause between two attempts to connect."""
BUS_POLL_SECONDS = 1.0
"""While there is no connection, the process looks for changes in the store at intervals of this
many seconds."""
COMPLAINT_SECONDS = 60.0
"""Minimum number of seconds between two log lines that say that there is no connection."""
PUBLISH_SECONDS = 1.0
"""Maximum duration of one call of `send` or `announce`, in seconds. Messages that are not sent in
time are lost."""
NATS_CLOSE_SECONDS = 2.0
NATS_PIECE_CHARACTERS = 32_768
"""Maximum number of characters in a piece of a message. A character has up to 4 bytes, so a piece
stays below 1 MB, the default limit of a NATS server."""
_TOKEN = re.compile(r"[0-9A-Za-z_-]{1,64}")
"""Matches the names that are safe as a part of a NATS subject. Other names might contain
wildcards."""
_FORBIDDEN = "permissions violation"


class NatsBus:
    """Connects to NATS, and reconnects whenever the connection is lost. The subjects contain the
    name of the database, so that only processes with the same database receive the messages."""

    def __init__(self, addresses: Sequence[NatsAddress], owner: OwnerId, database: str) -> None:
        self._addresses = addresses
        self._messages = BusMessages(owner)
        self._prefix = f"hermes.{database}"
        self._owner = owner
        self._client: Client | None = None
        """The client while it is connected and its subscriptions are in effect; None otherwise."""
        self._disconnected = anyio.Event()
        self._disconnected.set()
        self._tried = anyio.Event()
        self._complain_at = 0.0
        self._complained = False

    async def send(self, texts: Sequence[str], to: OwnerId | None = None) -> None:
        subject = f"{self._prefix}.all" if to is None else self._subject_of(to)
        if subject is None or self._client is None:
            log.debug("a message to other processes is lost")
            return
        characters = min(NATS_PIECE_CHARACTERS, (self._client.max_payload - HEADER_SIZE) // 4)
        if characters < 1:
            log.debug("a message to other processes is left out: the server takes short ones only")
            return
        pieces = [piece for text in texts for piece in self._messages.pieces(text, characters)]
        await self._publish(self._client, subject, pieces)

    async def announce(self, commit: int) -> None:
        if self._client is not None:
            announcement = self._messages.announcement(commit)
            await self._publish(self._client, f"{self._prefix}.commits", [announcement])

    def received(self) -> AsyncIterator[str]:
        return self._messages.received()

    def announced(self) -> AsyncIterator[int | None]:
        return self._messages.announced()

    async def run(self) -> None:
        """Keeps the bus connected until this call is cancelled."""
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._poll)
                for address in itertools.cycle(self._addresses):
                    await self._use(address)
                    await anyio.sleep(NATS_PAUSE_SECONDS)
        finally:
            self._messages.close()

    async def first_attempt(self) -> None:
        """Returns when the first attempt to connect has succeeded or failed."""
        await self._tried.wait()

    async def _use(self, address: NatsAddress) -> None:
        """Connects to the server, and returns when the connection has failed or is lost."""
        connection = NatsConnection(address)
        try:
            with anyio.fail_after(2 * NATS_CONNECT_SECONDS):
                await connection.open()
                await self._subscribe(connection.client)
            if not connection.closed.is_set():
                self._begin(connection)
            await connection.closed.wait()
            self._complain(address, connection.reason or "the connection was closed")
        except (nats.errors.Error, OSError, ValueError) as error:
            self._complain(address, connection.reason or _described(error))
        finally:
            self._end()
            await connection.close()

    async def _subscribe(self, client: Client) -> None:
        await client.subscribe(f"{self._prefix}.commits", cb=self._take_announcement)
        await client.subscribe(f"{self._prefix}.all", cb=self._take_piece)
        own = self._subject_of(self._owner)
        assert own is not None, "the id of a process is part of a subject"
        await client.subscribe(own, cb=self._take_piece)
        # Each flush sends a ping and waits for the answer. The first ping may overtake the
        # subscriptions. The answer to the second ping proves that the server has received the
        # subscriptions.
        await client.flush(NATS_CONNECT_SECONDS)
        await client.flush(NATS_CONNECT_SECONDS)

    def _begin(self, connection: "NatsConnection") -> None:
        place = connection.address.place
        if self._complained:
            log.warning("the bus is connected to NATS at %s again", place)
            self._complained = False
        elif not self._tried.is_set():
            log.info("the bus is connected to NATS at %s", place)
        self._client = connection.client
        self._disconnected = anyio.Event()
        # Announcements that were sent before this connection existed are lost, so the reader of
        # announcements must look for changes in the store.
        self._messages.interrupted()
        self._tried.set()

    def _end(self) -> None:
        self._client = None
        self._disconnected.set()
        self._tried.set()

    async def _poll(self) -> None:
        while True:
            await self._disconnected.wait()
            self._messages.interrupted()
            await anyio.sleep(BUS_POLL_SECONDS)

    def _complain(self, address: NatsAddress, reason: str) -> None:
        now = time.monotonic()
        if now < self._complain_at:
            return
        self._complain_at = now + COMPLAINT_SECONDS
        self._complained = True
        log.error(
            "the bus is not connected, so changes of other gateways are polled every second: %s",
            _advice(address.place, reason),
        )

    def _subject_of(self, owner: OwnerId) -> str | None:
        """Returns the NATS subject for messages to a process; None if `owner` can't be the id of a
        process."""
        return f"{self._prefix}.to.{owner}" if _TOKEN.fullmatch(owner) else None

    async def _publish(self, client: Client, subject: str, texts: Sequence[str]) -> None:
        try:
            with anyio.move_on_after(PUBLISH_SECONDS) as sending:
                for text in texts:
                    await client.publish(subject, text.encode())
        except (nats.errors.Error, OSError) as error:
            log.debug("a message to other processes is lost: %s", error)
        if sending.cancelled_caught:
            log.debug("a message to other processes is lost: the server is too slow")

    async def _take_announcement(self, message: Msg) -> None:
        self._messages.take_announcement(message.data.decode("utf-8", "replace"))

    async def _take_piece(self, message: Msg) -> None:
        self._messages.take_piece(message.data.decode("utf-8", "replace"))


class NatsConnection:
    """One connection to one server. A lost connection is not reopened."""

    def __init__(self, address: NatsAddress) -> None:
        self.address = address
        self.client = Client()
        self.closed = anyio.Event()
        self.reason = ""
        """The last error that the client has reported."""

    async def open(self) -> None:
        address = self.address
        await self.client.connect(
            address.url,
            name="hermes",
            user=address.user,
            password=address.password,
            token=address.token,
            error_cb=self._note_error,
            closed_cb=self._note_end,
            # `NatsBus` reconnects itself. If the client reconnected, it would queue messages and
            # send them late.
            allow_reconnect=False,
            max_reconnect_attempts=1,
            reconnect_time_wait=0,
            connect_timeout=NATS_CONNECT_SECONDS,
            ping_interval=PING_SECONDS,
            flush_timeout=PUBLISH_SECONDS,
            no_echo=True,
        )

    async def close(self) -> None:
        with anyio.move_on_after(NATS_CLOSE_SECONDS, shield=True):
            await self.client.close()

    async def _note_error(self, error: Exception) -> None:
        self.reason = _described(error)
        if _FORBIDDEN in self.reason.lower():
            # After a permission error, the server leaves the connection open, but does not deliver
            # messages. So the connection counts as closed.
            self.closed.set()

    async def _note_end(self) -> None:
        self.closed.set()


@asynccontextmanager
async def open_nats_bus(
    addresses: Sequence[NatsAddress], owner: OwnerId, database: str
) -> AsyncIterator[NatsBus]:
    """Opens a bus, and closes it when the block ends.

    If no server can be reached at first, no error is raised, and the bus goes on trying to connect
    in the background.
    """
    bus = NatsBus(addresses, owner, database)
    group = await anyio.create_task_group().__aenter__()
    try:
        group.start_soon(bus.run)
        await bus.first_attempt()
        yield bus
    finally:
        group.cancel_scope.cancel()
        # The caller's exception is not passed to the task group, because the group would wrap the
        # exception in an ExceptionGroup.
        await group.__aexit__(None, None, None)


def _described(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "there was no answer in time"
    return " ".join(str(error).split())[:500] or type(error).__name__


def _advice(place: str, reason: str) -> str:
    lower = reason.lower()
    if "authorization violation" in lower or "authentication" in lower:
        return (
            f"the NATS server at {place} refuses the user or the password of bus.url: correct"
            f" HERMES_BUS_URL in .env, or bus.url in config.yaml ({reason})"
        )
    if _FORBIDDEN in lower:
        return (
            f"the NATS server at {place} does not permit the user of bus.url to use the subjects"
            f" of hermes: permit it to publish and to subscribe to hermes.> ({reason})"
        )
    return (
        f"the NATS server at {place} can't be reached ({reason}): is it running there, and is"
        " bus.url right?"
    )
