"""A client's connection: tells a request that its client has left, and can be cut off."""

import socket
import struct
from collections.abc import Callable
from typing import Any

from starlette.types import Scope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_KEY = "hermes.connection"


class HttpConnection(HttpToolsProtocol):
    """uvicorn's protocol, which the requests that it serves find in their scope."""

    on_lost: Callable[[], None] | None = None
    """Called when the client has gone; a request sets it while it waits."""

    def on_message_begin(self) -> None:
        super().on_message_begin()
        scope: dict[str, Any] = self.scope  # type: ignore[assignment]  # ASGI lets servers add
        scope[_KEY] = self

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self.on_lost is not None:
            self.on_lost()

    def cut(self) -> None:
        """Closes at once, without waiting for a client that does not read."""
        client: socket.socket = self.transport.get_extra_info("socket")
        # Otherwise the kernel keeps what was not read, for as long as the client likes.
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()


def connection_of(scope: Scope) -> HttpConnection:
    connection: HttpConnection = scope[_KEY]
    return connection
