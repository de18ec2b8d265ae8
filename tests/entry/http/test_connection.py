"""Our subclass of uvicorn's protocol: what it relies on in uvicorn is there."""

import asyncio
import inspect
import socket
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import Server, ServerState

from hermes.entry.http.connection import HttpConnection, connection_of
from hermes.testing.running import until

REQUEST = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"


class Served:
    """A connection over a pair of sockets, and the scopes of the requests that came on it."""

    def __init__(self) -> None:
        self.scopes: list[Scope] = []
        self.near, self.far = socket.socketpair()
        self.near.setblocking(False)
        self.connection: HttpConnection

    async def open(self) -> None:
        config = uvicorn.Config(self, http=HttpConnection, ws="none", lifespan="off")
        config.load()
        loop = asyncio.get_running_loop()
        _, self.connection = await loop.connect_accepted_socket(
            lambda: HttpConnection(config, ServerState(), {}), self.near
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scopes.append(scope)
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})


@pytest.fixture
def served() -> Iterator[Served]:
    made = Served()
    yield made
    made.near.close()
    made.far.close()


def test_uvicorn_has_everything_that_we_override_or_use() -> None:
    for name in ("on_message_begin", "connection_lost"):
        assert inspect.isfunction(vars(HttpToolsProtocol)[name]), name
    parameters = inspect.signature(HttpToolsProtocol.connection_lost).parameters
    assert list(parameters) == ["self", "exc"]
    assert "write_paused" in inspect.getsource(FlowControl.__init__)
    for name in ("capture_signals", "startup", "serve"):
        assert inspect.isfunction(vars(Server)[name]), name
    assert list(inspect.signature(Server.startup).parameters) == ["self", "sockets"]
    server: Any = Server(uvicorn.Config(lambda: None))
    assert server.should_exit is False
    assert server.force_exit is False
    assert server.server_state.connections == set()


async def test_a_request_finds_its_connection_in_its_scope(served: Served) -> None:
    await served.open()
    served.far.sendall(REQUEST)
    await until(lambda: served.scopes)
    assert connection_of(served.scopes[0]) is served.connection
    assert served.connection.flow.write_paused is False
    assert served.scopes[0]["state"] == {}
    assert served.scopes[0]["client"] is None or served.scopes[0]["client"][0] is not None
    served.connection.transport.close()


async def test_a_lost_connection_is_reported_to_the_request_that_waits(served: Served) -> None:
    await served.open()
    lost: list[bool] = []
    served.connection.on_lost = lambda: lost.append(True)
    served.far.close()
    await until(lambda: lost)


async def test_a_cut_closes_at_once_without_what_was_not_read(served: Served) -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    with listening, socket.create_connection(listening.getsockname()) as client:
        served.near.close()
        served.near, _ = listening.accept()
        served.near.setblocking(False)
        await served.open()
        lost: list[bool] = []
        served.connection.on_lost = lambda: lost.append(True)
        served.connection.cut()
        await until(lambda: lost)
        client.settimeout(5)
        with pytest.raises(ConnectionResetError):
            client.recv(1)
