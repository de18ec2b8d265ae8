"""One client's connection: uvicorn's protocol, with limits on sent and buffered data."""

import asyncio
import socket
import struct
from collections.abc import Callable
from typing import Any

import httptools
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)
from uvicorn.server import ServerState

from hermes.entry.http.connections import CONNECTION_KEY, ClientState, ConnectionTable
from hermes.entry.http.errors import ApiError, error_response
from hermes.types.errors import HermesError

HEADER_BYTES = 65_536
"""Maximum size in bytes of the request line and the headers together. The same maximum applies to
the trailers of a request."""
WRITE_BUFFER = 16_384
"""Maximum number of bytes that wait in this process for a slow client."""
PIPELINED = 16
"""Maximum number of requests that a client may send on one connection before the first is
answered."""
ACCEPTED = 64
"""Maximum number of connections that are accepted in one round of the event loop."""


class HttpConfig(uvicorn.Config):
    """uvicorn's configuration for our server. It also holds the table of the server's
    connections."""

    def __init__(self, app: ASGIApp, table: ConnectionTable) -> None:
        super().__init__(
            app,
            http=HttpConnection,
            ws="none",
            loop="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            # asyncio accepts this many connections before we can refuse the first of them.
            backlog=ACCEPTED,
        )
        self.table = table


class HttpConnection(HttpToolsProtocol):
    """A client's connection. A request finds its connection in its ASGI scope."""

    on_lost: Callable[[], None] | None = None

    def __init__(
        self,
        config: HttpConfig,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._table = config.table
        self._state: ClientState | None = None
        self._lost = False
        self._refused = False
        self._awaits_body = False
        self._receiving = False
        """Whether the beginning of a request has arrived, but not yet its end."""
        self._in_header = False
        self._begun = 0
        """Number of requests that began in the data that is being parsed."""
        self._progress = False
        """Whether the data that is being parsed has completed a header, or contained a part of a
        body."""
        self._size = 0
        """Size in bytes of the data that is being parsed."""
        self._unparsed = 0
        """Number of bytes that the parser may hold in memory, because they belong to an incomplete
        header."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=WRITE_BUFFER)
        if self._table.enter(self):
            self._settle()
        else:
            self._refuse(ApiError(503, "Too many connections; try again.", "too_many_connections"))
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._lost = True
        self._table.leave(self, self._state)
        if self.on_lost is not None:
            self.on_lost()
        # References to these objects would keep this connection in memory until the next garbage
        # collection.
        self.scope = self.cycle = None  # type: ignore[assignment]
        self.on_lost = None
        self.pipeline.clear()

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        first = not self._receiving
        self._begun, self._progress, self._size = 0, False, len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # We offer no other protocol, and the parser can't continue after an upgrade request, so
            # the connection is closed after the response.
            self.cycle.keep_alive = False
        except httptools.HttpParserError as error:
            refused = error.__context__
            if not isinstance(refused, ApiError):
                refused = ApiError(400, "This is not a valid HTTP request.", "invalid_http")
            self._refuse(refused)
            return
        if not self._progress:
            self._unparsed += len(data)
        else:
            whole = first and self._in_header and self._begun == 1
            self._unparsed = len(data) if whole else 0
        if self._unparsed > HEADER_BYTES:
            self._refuse(header_too_large())
        self._settle()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._receiving = self._in_header = self._progress = True
        self._begun += 1
        scope: dict[str, Any] = self.scope  # type: ignore[assignment]  # ASGI lets servers add
        scope[CONNECTION_KEY] = self

    def on_headers_complete(self) -> None:
        self._in_header, self._progress = False, True
        if self._unparsed + self._size > HEADER_BYTES:
            size = sum(len(name) + len(value) + 4 for name, value in self.headers)
            if len(self.url) + size > HEADER_BYTES:
                raise header_too_large()
        super().on_headers_complete()
        cycle: Any = self.cycle
        cycle.transport = ResponseTransport(self, has_body=cycle.scope["method"] != "HEAD")
        if len(self.pipeline) > PIPELINED:
            text = "Too many requests on one connection: wait for a response first."
            raise ApiError(429, text, "too_many_requests")

    def on_body(self, body: bytes) -> None:
        self._progress = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._receiving, self._progress = False, True
        cycle: Any = self.cycle
        cycle.transport.request_complete = True
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Does the same as uvicorn's method, but without a timer for each response. The table has
        one timer for all connections."""
        self.server_state.total_requests += 1
        if not self.transport.is_closing():
            self.flow.resume_reading()
            if self.pipeline:
                self._start_asgi_task(*self.pipeline.pop())
        self._settle()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._settle()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._settle()

    @property
    def body_ready(self) -> bool:
        """Whether a part of the request's body, or its end, can be received without waiting.

        If a later request has arrived on the same connection, the body of this request is complete.
        """
        return self._lost or self.cycle.message_event.is_set()

    def await_body(self, waiting: bool) -> None:
        self._awaits_body = waiting
        self._settle()

    def close(self) -> None:
        """Closes the connection as soon as the client has received everything."""
        self.transport.close()
        self._settle()

    def linger(self) -> None:
        """Closes the connection as soon as the client has stopped sending, or after a time limit.

        Closing at once would reset the connection while the client sends, and the client might
        never see the answer.
        """
        self._refused = True
        self.transport.write_eof()
        self._settle()

    def cut(self) -> None:
        """Closes the connection at once, without waiting for a client that does not read."""
        client: socket.socket = self.transport.get_extra_info("socket")
        # Without this option, the kernel would keep unread data until the client reads it.
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    def _refuse(self, error: HermesError) -> None:
        """Answers with an error and reads nothing more. The client gets time to receive the
        answer."""
        if self._busy:
            # A response is being sent, and the client would take an error for a part of that
            # response. So the connection is closed without an answer.
            self._refused = True
            self.cut()
            return
        response = error_response(error)
        head = [b"%b: %b\r\n" % pair for pair in (*response.raw_headers, (b"connection", b"close"))]
        self.transport.write(b"".join((STATUS_LINE[error.status], *head, b"\r\n", response.body)))
        self.linger()

    @property
    def _busy(self) -> bool:
        """Whether a response is being made or sent. Requests are answered in order, so it is enough
        to check the newest request."""
        newest: RequestResponseCycle | None = self.cycle
        return newest is not None and not newest.response_complete

    def _settle(self) -> None:
        """Tells the connection table what the server waits for on this connection now."""
        state = self._client_state()
        if state != self._state and not self._lost:
            self._table.move(self, self._state, state)
            self._state = state

    def _client_state(self) -> ClientState | None:
        if self.flow.write_paused or self.transport.is_closing():
            return "unread"
        if self._refused:
            return "sending"
        if self._busy:
            return "body" if self._awaits_body else None
        return "sending" if self._receiving else "idle"


class ResponseTransport:
    """The transport of one response. It sends the head of the response together with the first part
    of the body, because each write costs a system call and a packet.

    If the response ends before the request has been received completely, the transport closes the
    connection only after the client has stopped sending.
    """

    def __init__(self, connection: HttpConnection, *, has_body: bool) -> None:
        self.request_complete = False
        self._connection = connection
        self._waits = has_body
        """Whether the next data is the head of a response with a body. Such a head is held back, to
        be written together with the first part of the body."""
        self._head = b""

    def write(self, data: bytes) -> None:
        if not self._waits:
            head, self._head = self._head, b""
            self._connection.transport.write(head + data)
        else:
            self._waits, self._head = False, data
            # The body may begin much later, so the head waits only for this round of the loop.
            self._connection.loop.call_soon(self._send_head)

    def is_closing(self) -> bool:
        return self._connection.transport.is_closing()

    def close(self) -> None:
        self._send_head()
        if self.request_complete:
            self._connection.transport.close()
        elif not self.is_closing():
            self._connection.linger()

    def _send_head(self) -> None:
        if self._head and not self.is_closing():
            self.write(b"")


def header_too_large() -> ApiError:
    message = f"The request line and headers are larger than {HEADER_BYTES} bytes."
    return ApiError(431, message, "header_too_large")
