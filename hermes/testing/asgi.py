"""Calls an ASGI app without a server, for tests of middleware and endpoints."""

from collections.abc import Callable, Sequence

import anyio
import msgspec
from starlette.types import ASGIApp, Message, Scope

from hermes.types.value import Value


class FakeFlow:
    """A stand-in for uvicorn's flow control: `write_paused` means that the client reads too
    slowly."""

    def __init__(self) -> None:
        self.write_paused = False


class FakeConnection:
    """A fake of `HttpConnection`, the connection of a client."""

    def __init__(self) -> None:
        self.flow = FakeFlow()
        self.on_lost: Callable[[], None] | None = None
        self.was_cut = anyio.Event()
        self.body_ready = False
        self.awaits_body = False

    def await_body(self, waiting: bool) -> None:
        self.awaits_body = waiting

    def close(self) -> None:
        self.was_cut.set()

    def cut(self) -> None:
        self.was_cut.set()


class AsgiResponse(Value):
    """The response of an ASGI app, with the status, headers and body."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def code(self) -> str:
        """The field `code` of the error in the body."""
        code: str = msgspec.json.decode(self.body)["error"]["code"]
        return code


def http_scope(method: str = "GET", path: str = "/", **headers: str) -> Scope:
    """Returns the scope of a request to a local server. Underscores in header names become
    dashes."""
    given = {"host": "127.0.0.1:8642", **headers}
    return {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "path": path,
        "root_path": "",
        "query_string": b"",
        "scheme": "http",
        "server": ("127.0.0.1", 8642),
        "client": ("127.0.0.1", 5000),
        "headers": [
            (name.replace("_", "-").encode(), value.encode("latin-1"))
            for name, value in given.items()
        ],
        "state": {},
        "hermes.connection": FakeConnection(),
    }


def fake_connection(scope: Scope) -> FakeConnection:
    connection: FakeConnection = scope["hermes.connection"]
    return connection


async def call(app: ASGIApp, scope: Scope, body: Sequence[bytes] = ()) -> AsgiResponse:
    """Calls the app with a request and returns the response. Each item of `body` is sent as one
    part of the request body. After the body, the client sends nothing more."""
    parts = list(body) or [b""]
    sent: list[Message] = []

    async def receive() -> Message:
        if not parts:
            await anyio.sleep_forever()
        return {"type": "http.request", "body": parts.pop(0), "more_body": bool(parts)}

    async def send(message: Message) -> None:
        sent.append(message)

    await app(scope, receive, send)
    start, *rest = sent
    assert start["type"] == "http.response.start"
    return AsgiResponse(
        status=start["status"],
        headers={name.decode(): value.decode("latin-1") for name, value in start["headers"]},
        body=b"".join(message["body"] for message in rest),
    )
