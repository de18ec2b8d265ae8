"""A few connections to the server, opened when they are needed."""

import asyncio
from collections import deque
from typing import Any, NamedTuple

import anyio
import psycopg
from psycopg import conninfo

from hermes.state.postgres.channel import Channel
from hermes.state.postgres.errors import connect_error
from hermes.types.errors import ConfigError, StoreUnavailable

CONNECTIONS = 8
"""Maximum number of connections for transactions. One more connection holds the lock of the
process."""
CONNECT_SECONDS = 5
_KEEPALIVE: dict[str, Any] = {
    "connect_timeout": CONNECT_SECONDS,
    "keepalives": 1,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
"""Options of each connection. With them, a dead server or network is noticed within about ten
seconds."""


def application_name(owner: str) -> str:
    """Returns the name under which the server lists the connections of a process."""
    return f"hermes {owner}"


class Server(NamedTuple):
    """A server and a database, with everything that is needed to connect."""

    url: str
    application: str = "hermes"
    """The application name of the connections. Other processes find the connections by this
    name."""

    @property
    def place(self) -> str:
        """The name of the server and the database for error messages. It contains no password."""
        found = self._parts()
        host, port = found.get("host") or "this machine", found.get("port")
        where = f"{host}:{port}" if port else str(host)
        return f"the database {found.get('dbname') or ''!r} on {where}"

    def _parts(self) -> dict[str, Any]:
        try:
            return conninfo.conninfo_to_dict(self.url)
        except psycopg.Error:
            # The text of psycopg's error is left out, because it quotes the password.
            raise ConfigError(
                "store.url can't be read: it has to look like postgresql://user:password@host/name,"
                " with %40 for an @ in the password"
            ) from None

    async def connect(self, *, starting: bool = False) -> psycopg.AsyncConnection[Any]:
        """Opens a connection. Raises StoreUnavailable if that fails. While a store is being opened,
        a wrong setting raises ConfigError instead."""
        given = {**_KEEPALIVE, **self._parts(), "application_name": self.application}
        complete = conninfo.make_conninfo(**given)
        try:
            with anyio.fail_after(2 * CONNECT_SECONDS):
                return await psycopg.AsyncConnection.connect(
                    complete, autocommit=True, prepare_threshold=None
                )
        except (psycopg.Error, OSError, TimeoutError) as error:
            raise connect_error(error, self.place, starting=starting) from error

    async def open_channel(self) -> Channel:
        """Opens a connection for transactions. Raises StoreUnavailable if that fails."""
        connection = await self.connect()
        try:
            with anyio.fail_after(CONNECT_SECONDS):
                return Channel(connection, pooled=await is_pooled(connection))
        except BaseException as error:
            await connection.close()
            if isinstance(error, psycopg.Error | TimeoutError):
                raise connect_error(error, self.place, starting=False) from error
            raise


async def is_pooled(connection: psycopg.AsyncConnection[Any]) -> bool:
    """Returns whether a pooler such as pgbouncer is between this process and the server.

    A pooler answers the login itself. Therefore the process id that the login returns differs from
    the process id of the server's backend.
    """
    found = await connection.execute("select pg_backend_pid()")
    return await found.fetchone() != (connection.info.backend_pid,)


class Pool:
    """Lends connections. A lost connection is replaced when a connection is needed."""

    def __init__(self, server: Server, size: int = CONNECTIONS) -> None:
        self._server = server
        self._idle: list[Channel] = []
        self._free = self._size = size
        self._waiters: deque[asyncio.Future[None]] = deque()
        self.closed = False
        self._loop = asyncio.get_running_loop()

    async def acquire(self) -> Channel:
        """Returns a connection that is not known to be lost. The caller must release the
        connection."""
        await self._take_slot()
        try:
            self._need_open()
            while self._idle:
                channel = self._idle.pop()
                if channel.lost is None:
                    return channel
                await channel.close()
            return await self._server.open_channel()
        except BaseException:
            self._free_slot()
            raise

    async def release(self, channel: Channel) -> None:
        try:
            if channel.lost is None:
                self._idle.append(channel)
            else:
                await channel.close()
        finally:
            self._free_slot()

    async def close(self) -> None:
        """Waits for running transactions, and closes the connections."""
        self.closed = True
        for _ in range(self._size):
            await self._take_slot()
        for channel in self._idle:
            await channel.close()
        for _ in range(self._size):
            self._free_slot()

    def _need_open(self) -> None:
        if self.closed:
            raise StoreUnavailable("the store is closed: hermes is shutting down")

    async def _take_slot(self) -> None:
        if self._free:
            self._free -= 1
            return
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                self._free_slot()
            raise

    def _free_slot(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
        self._free += 1
