"""Limits the number of open connections of the HTTP server, and the time that clients may take."""

import logging
import math
import time
from collections.abc import Callable
from typing import Literal, Protocol

import anyio
from starlette.types import Scope

from hermes.types.value import Value

log = logging.getLogger(__name__)

CONNECTION_KEY = "hermes.connection"
"""The key of a request's connection in its ASGI scope."""
SWEEP_SECONDS = 1.0
FULL_SECONDS = 60.0
"""Seconds between two log messages that say that no connection can be accepted."""
ClientState = Literal["idle", "sending", "body", "unread"]
"""The state of a connection: what the server waits for. If room for another connection is needed,
the server closes a connection in one of these states. It prefers the states in this order:

- `idle`: the server waits for the next request;
- `sending`: it waits for the rest of a header, or of a request that has been answered already;
- `body`: it waits for the body of a request that is in progress;
- `unread`: it waits until the client reads the response.
"""


class WriteFlow(Protocol):
    write_paused: bool
    """Whether writing must pause, because too much data already waits for the client."""


class ClientConnection(Protocol):
    """The part of a client's connection that requests and the table of connections use."""

    on_lost: Callable[[], None] | None
    """A function that is called when the client has disconnected. A running request sets
    this function."""

    @property
    def flow(self) -> WriteFlow: ...

    @property
    def body_ready(self) -> bool:
        """Whether a part of the request's body, or its end, can be received without waiting."""
        ...

    def await_body(self, waiting: bool) -> None:
        """Sets whether the request waits for its body."""
        ...

    def close(self) -> None:
        """Closes the connection as soon as the client has received everything."""
        ...

    def cut(self) -> None:
        """Closes the connection at once, without waiting for a client that does not read."""
        ...


def connection_of(scope: Scope) -> ClientConnection:
    """Returns the connection of a request."""
    connection: ClientConnection = scope[CONNECTION_KEY]
    return connection


class ClientLimits(Value):
    """Maximum number of seconds that a client may take for each step."""

    idle: float = 60.0
    """Maximum time between two requests."""
    sending: float = 10.0
    """Maximum time to complete a header."""
    body: float = 10.0
    """Maximum time until the next part of a body arrives, while a request waits for it."""
    unread: float = 30.0
    """Maximum number of seconds for which the client may read nothing while a response waits."""


USUAL_LIMITS = ClientLimits()


class ConnectionTable:
    """All open connections. For each connection whose client the server waits for, the table has
    the time at which this wait began.

    A connection may be closed to make room for another client, but only while the server waits for
    the client of that connection.
    """

    def __init__(
        self,
        most: int,
        limits: ClientLimits = USUAL_LIMITS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._most = most
        self._limits = limits
        self._open: set[ClientConnection] = set()
        self._reported_at = -math.inf
        # Each dict is ordered by the time at which a connection entered the state, so the first
        # connection has waited longest.
        self._waiting: dict[ClientState, dict[ClientConnection, float]] = {
            "idle": {},
            "sending": {},
            "body": {},
            "unread": {},
        }

    def __len__(self) -> int:
        return len(self._open)

    def enter(self, connection: ClientConnection) -> bool:
        """Adds a new connection. Returns False if there is no room for it."""
        if len(self._open) >= self._most and not self._make_room():
            self._report_full()
            return False
        self._open.add(connection)
        return True

    def leave(self, connection: ClientConnection, state: ClientState | None) -> None:
        self._open.discard(connection)
        if state is not None:
            self._waiting[state].pop(connection, None)

    def move(
        self, connection: ClientConnection, before: ClientState | None, after: ClientState | None
    ) -> None:
        """Records that a connection changes its state. The state is None while a request runs."""
        if before is not None:
            self._waiting[before].pop(connection, None)
        if after is not None:
            self._waiting[after][connection] = self._clock()

    async def watch(self) -> None:
        """Closes the connections of clients that take too long, until cancelled."""
        while True:
            await anyio.sleep(SWEEP_SECONDS)
            self.sweep()

    def sweep(self) -> None:
        """Closes the connections whose clients have exceeded a time limit."""
        limits = self._limits
        for connection in self._overdue("idle", limits.idle):
            connection.close()
        for connection in self._overdue("sending", limits.sending):
            connection.close()
        for connection in self._overdue("unread", limits.unread):
            connection.cut()

    def _overdue(self, state: ClientState, seconds: float) -> list[ClientConnection]:
        begun = self._clock() - seconds
        overdue = []
        for connection, since in self._waiting[state].items():
            if since > begun:
                break
            overdue.append(connection)
        return overdue

    def _make_room(self) -> bool:
        """Closes one connection that waits for its client. The states are tried in the order of
        `ClientState`. Within a state, the connection that has waited longest is closed. Returns
        False if no connection waits."""
        for state, waiting in self._waiting.items():
            for connection in waiting:
                self.leave(connection, state)
                connection.cut()
                return True
        return False

    def _report_full(self) -> None:
        now = self._clock()
        if now - self._reported_at >= FULL_SECONDS:
            self._reported_at = now
            log.warning("connections are refused: %d requests are in progress", self._most)
