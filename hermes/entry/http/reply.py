"""A whole response, ready to be sent."""

import msgspec
from starlette.types import Send

SECURITY = (
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)
_JSON = (b"content-type", b"application/json")


class Reply:
    """Starlette's Response does the same with more machinery; this is on every request's path."""

    __slots__ = ("body", "headers", "status")

    def __init__(
        self, body: bytes, status: int = 200, headers: dict[str, str] | None = None
    ) -> None:
        self.body = body
        self.status = status
        self.headers = headers or {}

    async def send(self, send: Send, extra: dict[str, str]) -> None:
        headers = [_JSON, (b"content-length", b"%d" % len(self.body)), *SECURITY]
        headers += raw(self.headers)
        headers += raw(extra)
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})


def raw(headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
    """Headers as ASGI wants them."""
    return [(name.encode(), value.encode("latin-1", "replace")) for name, value in headers.items()]


def json_reply(value: msgspec.Struct, status: int = 200) -> Reply:
    return Reply(msgspec.json.encode(value), status)
