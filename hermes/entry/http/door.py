"""What every request passes: host, origin, key, size; and how it ends."""

import logging

import anyio
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from hermes.entry.http.auth import Auth, Principal
from hermes.entry.http.call import Call, Handler
from hermes.entry.http.connection import connection_of
from hermes.entry.http.errors import ApiError
from hermes.entry.http.sse import Stalled

log = logging.getLogger(__name__)

BODY_SECONDS = 30.0
"""How long a client may take to send its request."""
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
ANONYMOUS = Principal(name="")
SECURITY = {
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
}


class Screen:
    """Decides whether a request is let in."""

    def __init__(self, auth: Auth, *, host: str, origins: tuple[str, ...], most_bytes: int) -> None:
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

    async def body(self, request: Request) -> bytes:
        """The whole body, as long as it is not too large and not too slow."""
        declared = request.headers.get("content-length", "0")
        if not declared.isdigit():
            raise ApiError(400, "Content-Length is not a number.", "invalid_content_length")
        if int(declared) > self._most_bytes:
            raise self._too_large()
        parts, size = [], 0
        with anyio.move_on_after(BODY_SECONDS):
            async for part in request.stream():
                parts.append(part)
                size += len(part)
                if size > self._most_bytes:
                    raise self._too_large()
            return b"".join(parts)
        raise ApiError(408, "The request took too long to arrive.", "request_timeout")

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
    """One route as an ASGI app. A request whose client goes away is cancelled."""

    def __init__(self, screen: Screen, handler: Handler, *, keyed: bool) -> None:
        self._screen = screen
        self._handler = handler
        self._keyed = keyed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection = connection_of(scope)
        with anyio.CancelScope() as here:
            connection.on_lost = here.cancel
            try:
                response = await self._response(Request(scope, receive), send)
            except (Stalled, ClientDisconnect):
                return
            finally:
                connection.on_lost = None
            if response is not None:
                await response(scope, receive, send)

    async def _response(self, request: Request, send: Send) -> Response | None:
        allowed: dict[str, str] = {}
        try:
            allowed = self._screen.check(request)
            response = await self._handled(request, send, allowed)
        except ApiError as error:
            response = error.response()
        except (Stalled, ClientDisconnect):
            raise
        except Exception:
            log.exception("%s %s failed", request.method, request.url.path)
            message = "Something went wrong inside; the gateway's log says what."
            response = ApiError(500, message, "internal_error").response()
        if response is not None:
            response.headers.update(SECURITY)
            response.headers.update(allowed)
        return response

    async def _handled(
        self, request: Request, send: Send, allowed: dict[str, str]
    ) -> Response | None:
        if request.method == "OPTIONS":
            return Response(status_code=204, headers=PREFLIGHT)
        principal = self._screen.principal(request) if self._keyed else ANONYMOUS
        body = await self._screen.body(request) if request.method == "POST" else b""
        return await self._handler(Call(request, body, principal, send, allowed))
