"""What every request passes: host, origin, key, size; and how it ends."""

import logging
import math

import anyio
import anyio.lowlevel
from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive, Scope, Send

from hermes.entry.http.auth import Auth
from hermes.entry.http.call import Call, Handler
from hermes.entry.http.connection import connection_of
from hermes.entry.http.errors import ApiError, api_error
from hermes.entry.http.reply import Reply
from hermes.entry.http.sse import Stalled
from hermes.entry.http.turnstile import Turnstile
from hermes.types.errors import HermesError
from hermes.types.identity import Principal

log = logging.getLogger(__name__)

BODY_SECONDS = 30.0
"""How long a client may take to send its request."""
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
ANONYMOUS = Principal(name="")


class Screen:
    """Decides whether a request is let in."""

    def __init__(
        self,
        auth: Auth,
        *,
        host: str,
        origins: tuple[str, ...],
        most_bytes: int,
        patience: float,
    ) -> None:
        self.patience = patience
        self.turnstile = Turnstile()
        self._auth = auth
        # Behind another name there may be a web page's: only a local server knows its own.
        self._hosts = LOOPBACK if host in LOOPBACK else None
        self._origins = origins
        self._most_bytes = most_bytes

    def check(self, request: Request) -> dict[str, str]:
        """The headers that let a browser's page read the answer; ApiError for a foreign page."""
        headers = request.headers
        if self._hosts is not None:
            name = headers.get("host", "").rsplit(":", 1)[0].strip("[]").lower()
            if name not in self._hosts:
                raise ApiError(403, f"This server is not {name!r}.", "foreign_host")
        origin = headers.get("origin")
        if origin is None:
            return {}
        if "*" not in self._origins and origin not in self._origins:
            message = f"Pages of {origin!r} may not call this API; see API_SERVER_CORS_ORIGINS."
            raise ApiError(403, message, "foreign_origin")
        return {
            "access-control-allow-origin": origin,
            "access-control-expose-headers": "x-hermes-run-id, x-hermes-session-id, retry-after",
            "vary": "Origin",
        }

    def principal(self, request: Request) -> Principal:
        address = request.client.host if request.client else ""
        return self._auth.principal(request.headers.get("authorization", ""), address)

    async def body(self, request: Request, here: anyio.CancelScope) -> bytes:
        """The whole body, as long as it is not too large; a client that dawdles is let go."""
        declared = request.headers.get("content-length", "0")
        if not declared.isdigit():
            raise ApiError(400, "Content-Length is not a number.", "invalid_content_length")
        if int(declared) > self._most_bytes:
            raise self._too_large()
        here.deadline = anyio.current_time() + BODY_SECONDS
        parts, size, more = [], 0, True
        while more:
            message = await request.receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            part = message.get("body", b"")
            more = message.get("more_body", False)
            parts.append(part)
            size += len(part)
            if size > self._most_bytes:
                raise self._too_large()
        here.deadline = math.inf
        return b"".join(parts)

    def _too_large(self) -> ApiError:
        message = f"The body is larger than {self._most_bytes} bytes."
        return ApiError(413, message, "body_too_large", close=True)


PREFLIGHT = {
    "access-control-allow-methods": "GET, POST, OPTIONS",
    "access-control-allow-headers": "Authorization, Content-Type, Idempotency-Key, Last-Event-ID,"
    " X-Hermes-Session-Id, X-Hermes-Chat-Id, X-Hermes-User-Id, X-Hermes-Thread-Id",
    "access-control-max-age": "600",
}


class Door:
    """One route as an ASGI app, for one method or, if that is empty, for every one.

    A request whose client goes away is cancelled.
    """

    def __init__(self, screen: Screen, method: str, handler: Handler, *, keyed: bool) -> None:
        self._screen = screen
        self._method = method
        self._handler = handler
        self._keyed = keyed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection = connection_of(scope)
        request = Request(scope, receive)
        with anyio.CancelScope() as here:
            connection.on_lost = here.cancel
            try:
                await self._serve(request, here, send)
            except (Stalled, ClientDisconnect):
                # uvicorn complains of a response without an end unless it knows why by then.
                await anyio.lowlevel.cancel_shielded_checkpoint()
            finally:
                connection.on_lost = None

    async def _serve(self, request: Request, here: anyio.CancelScope, send: Send) -> None:
        allowed: dict[str, str] = {}
        reply: Reply | None
        await self._screen.turnstile.enter()
        try:
            allowed = self._screen.check(request)
            reply = await self._handled(request, here, send, allowed)
        except HermesError as error:
            reply = api_error(error).reply()
        except (Stalled, ClientDisconnect):
            raise
        except Exception:
            log.exception("%s %s failed", request.method, request.url.path)
            message = "Something went wrong inside; the gateway's log says what."
            reply = ApiError(500, message, "internal_error").reply()
        if reply is not None:
            await reply.send(send, allowed)

    async def _handled(
        self, request: Request, here: anyio.CancelScope, send: Send, allowed: dict[str, str]
    ) -> Reply | None:
        if request.method == "OPTIONS":
            return Reply(b"", 204, PREFLIGHT)
        if self._method and request.method != self._method:
            raise ApiError(405, f"This is for {self._method}.", "method_not_allowed")
        principal = self._screen.principal(request) if self._keyed else ANONYMOUS
        body = b""
        if request.method == "POST":
            body = await self._screen.body(request, here)
        return await self._handler(
            Call(request, body, principal, send, allowed, self._screen.patience)
        )
