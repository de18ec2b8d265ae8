"""`HttpConnection` extends uvicorn's protocol class, and uvicorn has the parts that
`HttpConnection` uses."""

import asyncio
import gc
import inspect
import re
import socket
import weakref
from collections.abc import AsyncIterator
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import Server, ServerState

from hermes.entry.http.connection import (
    HEADER_BYTES,
    PIPELINED,
    HttpConfig,
    HttpConnection,
    ResponseTransport,
)
from hermes.entry.http.connections import ClientState, ConnectionTable, connection_of
from hermes.testing.running import until

REQUEST = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"


class Served:
    """An `HttpConnection` on one end of a socket pair. The test uses the other end as the client.
    The requests that the connection passes on are recorded in `scopes`."""

    def __init__(self) -> None:
        self.scopes: list[Scope] = []
        self.near, self.far = socket.socketpair()
        self.near.setblocking(False)
        self.connection: HttpConnection
        self.let_go = anyio.Event()
        self.table = ConnectionTable(10)

    @property
    def lost(self) -> bool:
        """Returns whether the connection is closed and no request runs."""
        return not self.state.connections and not self.state.tasks

    def answer(self) -> bytes:
        """Returns the next bytes that the client receives; empty if the connection is closed."""
        self.far.settimeout(5)
        return self.far.recv(65_536)

    async def open(self) -> None:
        config = HttpConfig(self, self.table)
        config.load()
        loop = asyncio.get_running_loop()
        self.state = ServerState()
        _, self.connection = await loop.connect_accepted_socket(
            lambda: HttpConnection(config, self.state, {}), self.near
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scopes.append(scope)
        if scope["path"] == "/body":
            while (await receive())["more_body"]:
                pass
        if scope["path"] == "/wait":
            await self.let_go.wait()
        size = int(scope["query_string"] or b"0")
        length = (b"content-length", b"%d" % size)
        await send({"type": "http.response.start", "status": 200, "headers": [length]})
        await send({"type": "http.response.body", "body": b"x" * size})


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    made = Served()
    yield made
    made.let_go.set()
    made.far.close()
    made.connection.transport.abort()
    await until(lambda: made.lost)


def test_uvicorn_has_everything_that_we_override_or_use() -> None:
    for name in (
        "connection_made",
        "connection_lost",
        "data_received",
        "on_message_begin",
        "on_headers_complete",
        "on_body",
        "on_message_complete",
        "on_response_complete",
        "pause_writing",
        "resume_writing",
        "_start_asgi_task",
    ):
        assert inspect.isfunction(vars(HttpToolsProtocol)[name]), name
    used = {"message_event", "response_complete", "keep_alive", "scope", "transport"}
    assert used <= set(
        re.findall(r"self\.(\w+) ", inspect.getsource(RequestResponseCycle.__init__))
    )
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


class Written:
    """Stands for a connection and its transport. Records what is written."""

    def __init__(self) -> None:
        self.transport = self
        self.loop = asyncio.get_running_loop()
        self.texts: list[bytes] = []
        self.closed = False

    def write(self, data: bytes) -> None:
        self.texts.append(data)

    def close(self) -> None:
        self.closed = True

    linger = close

    def is_closing(self) -> bool:
        return self.closed


def transport_to(connection: Any, *, has_body: bool = True) -> ResponseTransport:
    return ResponseTransport(connection, has_body=has_body)


async def test_the_head_of_a_response_is_written_together_with_the_first_part_of_the_body() -> None:
    written = Written()
    response = transport_to(written)
    for part in (b"head ", b"one ", b"two"):
        response.write(part)
    await anyio.lowlevel.checkpoint()
    assert written.texts == [b"head one ", b"two"]


async def test_a_head_whose_body_does_not_follow_at_once_is_written_without_it() -> None:
    written = Written()
    response = transport_to(written)
    response.write(b"head")
    await anyio.lowlevel.checkpoint()
    assert written.texts == [b"head"]
    response.write(b"body")
    assert written.texts == [b"head", b"body"]
    without_body = transport_to(written, has_body=False)
    without_body.write(b"head")
    assert written.texts == [b"head", b"body", b"head"]


@pytest.mark.parametrize("complete", [True, False])
async def test_a_head_is_written_before_its_connection_is_closed(complete: bool) -> None:
    written = Written()
    response = transport_to(written)
    response.request_complete = complete
    response.write(b"head")
    response.close()
    await anyio.lowlevel.checkpoint()
    assert (written.texts, written.closed) == ([b"head"], True)


async def test_a_request_finds_its_connection_in_its_scope(served: Served) -> None:
    await served.open()
    served.far.sendall(REQUEST)
    await until(lambda: served.scopes)
    assert connection_of(served.scopes[0]) is served.connection
    assert served.connection.flow.write_paused is False
    assert served.scopes[0]["state"] == {}
    assert served.scopes[0]["client"] is None or served.scopes[0]["client"][0] is not None


async def test_a_lost_connection_is_reported_to_the_request_that_waits(served: Served) -> None:
    await served.open()
    lost: list[bool] = []
    served.connection.on_lost = lambda: lost.append(True)
    served.far.close()
    await until(lambda: lost)


async def test_a_cut_closes_the_connection_at_once_and_drops_unread_data(served: Served) -> None:
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


def state_of(served: Served) -> ClientState | None:
    """Returns the state that the connection table has for the connection; None while a request
    runs, because the client then waits for the server."""
    states = [
        state for state, waiting in served.table._waiting.items() if served.connection in waiting
    ]
    assert len(states) <= 1
    assert len(served.table) == 1
    return states[0] if states else None


async def test_the_table_records_what_a_connection_waits_for(served: Served) -> None:
    await served.open()
    assert state_of(served) == "idle"
    served.far.sendall(b"\r\n")
    await anyio.sleep(0.01)
    assert state_of(served) == "idle"
    served.far.sendall(b"GET /wait HT")
    await until(lambda: state_of(served) == "sending")
    served.far.sendall(b"TP/1.1\r\nhost: x\r\n\r\n")
    await until(lambda: served.scopes)
    assert state_of(served) is None
    served.let_go.set()
    await until(lambda: state_of(served) == "idle")
    served.far.close()
    await until(lambda: len(served.table) == 0)
    assert not any(served.table._waiting.values())


async def test_the_table_records_that_a_client_still_sends_an_answered_request(
    served: Served,
) -> None:
    await served.open()
    served.far.sendall(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\nab")
    await until(lambda: state_of(served) == "sending")
    served.far.sendall(b"c")
    await until(lambda: state_of(served) == "idle")
    served.far.sendall(REQUEST)
    await until(lambda: len(served.scopes) == 2)


async def test_the_table_records_a_client_that_does_not_read(served: Served) -> None:
    await served.open()
    served.far.sendall(b"GET /?10000000 HTTP/1.1\r\nhost: x\r\n\r\n")
    await until(lambda: state_of(served) == "unread")
    left = 10_000_000
    while left > 0:
        left -= len(await anyio.to_thread.run_sync(served.answer))
    await until(lambda: state_of(served) == "idle")


async def test_a_connection_that_closes_waits_for_its_client_to_read(served: Served) -> None:
    await served.open()
    served.far.sendall(b"GET /?10000000 HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
    await until(served.connection.transport.is_closing)
    assert state_of(served) == "unread"
    served.connection.cut()
    await until(lambda: len(served.table) == 0)


def padded(size: int) -> bytes:
    return b"GET / HTTP/1.1\r\nhost: x\r\nx-padding: " + b"x" * size


@pytest.mark.parametrize(
    "request_data",
    [
        padded(HEADER_BYTES + 1),
        padded(HEADER_BYTES + 1) + b"\r\n\r\n",
        b"GET /" + b"x" * (HEADER_BYTES + 1),
        b"GET /" + b"x" * (HEADER_BYTES + 1) + b" HTTP/1.1\r\nhost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * 11_000,
        b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * 11_000 + b"\r\n",
    ],
    ids=["value", "whole value", "line", "whole line", "many", "whole many"],
)
@pytest.mark.parametrize("piece", [1 << 20, 5_000])
async def test_a_header_that_is_too_large_is_refused_and_no_later_data_is_read(
    served: Served, request_data: bytes, piece: int
) -> None:
    await served.open()

    def send_all() -> bytes:
        served.far.settimeout(5)
        for start in range(0, len(request_data), piece):
            served.far.sendall(request_data[start : start + piece])
        found = served.answer()
        assert served.answer() == b""
        # The server no longer reads, but it must not reset the connection: otherwise the client
        # could lose the answer.
        served.far.sendall(b"x" * 3_000_000)
        return found

    answer = await anyio.to_thread.run_sync(send_all)
    assert answer.startswith(b"HTTP/1.1 431 ")
    assert b'"code":"header_too_large"' in answer
    assert served.scopes == []
    assert state_of(served) == "sending"
    served.far.close()
    await until(lambda: len(served.table) == 0)


@pytest.mark.parametrize("piece", [1 << 20, 5_000])
async def test_a_header_below_the_limit_is_served_with_any_data_before_and_after_it(
    served: Served, piece: int
) -> None:
    await served.open()
    body = b"y" * 300_000
    one = padded(HEADER_BYTES - 100) + b"\r\ncontent-length: %d\r\n\r\n" % len(body) + body
    data = one * 3

    def send_all() -> None:
        served.far.settimeout(5)
        for start in range(0, len(data), piece):
            served.far.sendall(data[start : start + piece])

    await anyio.to_thread.run_sync(send_all)
    await until(lambda: len(served.scopes) == 3)
    await until(lambda: state_of(served) == "idle")


async def test_trailers_that_are_too_large_are_also_refused(served: Served) -> None:
    await served.open()
    head = b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\n"
    served.far.sendall(head)
    await until(lambda: served.scopes)
    assert b"200" in await anyio.to_thread.run_sync(served.answer)

    def send_trailer() -> None:
        for _ in range(100):
            served.far.sendall(b"x" * 10_000)

    await anyio.to_thread.run_sync(send_trailer)
    assert b"431" in await anyio.to_thread.run_sync(served.answer)


async def test_data_that_is_not_http_is_refused_in_the_usual_format(served: Served) -> None:
    await served.open()
    served.far.sendall(b"HELLO\r\n\r\n")
    answer = await anyio.to_thread.run_sync(served.answer)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b'"code":"invalid_http"' in answer


async def test_an_error_is_not_written_into_the_middle_of_another_response(
    served: Served,
) -> None:
    await served.open()
    served.far.sendall(b"GET /wait HTTP/1.1\r\nhost: x\r\n\r\n")
    await until(lambda: served.scopes)
    served.far.sendall(b"HELLO\r\n\r\n")
    await until(lambda: len(served.table) == 0)
    assert await anyio.to_thread.run_sync(served.answer) == b""


async def test_the_number_of_pipelined_requests_is_limited(served: Served) -> None:
    await served.open()
    waiting = b"GET /wait HTTP/1.1\r\nhost: x\r\n\r\n"
    served.far.sendall(waiting + REQUEST * PIPELINED)
    await until(lambda: served.scopes)
    served.let_go.set()
    await until(lambda: len(served.scopes) == PIPELINED + 1)
    await until(lambda: state_of(served) == "idle")
    served.let_go = anyio.Event()
    served.far.sendall(waiting + REQUEST * (PIPELINED + 1))
    await until(lambda: len(served.table) == 0)


async def test_a_request_for_another_protocol_is_answered_and_then_the_connection_closes(
    served: Served,
) -> None:
    await served.open()
    upgrade = b"connection: upgrade\r\nupgrade: websocket\r\n\r\n"
    served.far.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n" + upgrade)
    answer = await anyio.to_thread.run_sync(served.answer)
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b"connection: close" in answer


async def test_the_table_records_that_a_request_waits_for_its_body(served: Served) -> None:
    await served.open()
    served.far.sendall(b"POST /wait HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n")
    await until(lambda: served.scopes)
    connection = connection_of(served.scopes[0])
    assert not connection.body_ready
    connection.await_body(True)
    assert state_of(served) == "body"
    connection.await_body(False)
    assert state_of(served) is None
    served.far.sendall(b"ab")
    await until(lambda: connection.body_ready)


async def test_a_client_gets_an_error_if_there_is_no_room_for_its_connection(
    served: Served,
) -> None:
    served.table = ConnectionTable(0)
    await served.open()
    answer = await anyio.to_thread.run_sync(served.answer)
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert await anyio.to_thread.run_sync(served.answer) == b""
    assert len(served.table) == 0


async def test_a_lost_connection_is_freed_without_the_garbage_collector() -> None:
    served = Served()
    await served.open()
    waiting = REQUEST.replace(b"/ ", b"/wait ")
    served.far.sendall(waiting * 2)
    await until(lambda: bool(served.scopes))
    freed = weakref.ref(served.connection)
    del served.connection
    gc.disable()
    try:
        served.far.close()
        served.let_go.set()
        await until(lambda: served.lost)
        served.scopes.clear()
        await until(lambda: freed() is None)
    finally:
        gc.enable()
