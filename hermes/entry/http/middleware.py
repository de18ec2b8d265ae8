"""The middleware around every route and mounted app. It sets the request id, writes the access log,
and checks the host, the origin, the key and the size of a request.

A middleware that refuses a request sends the response itself. `ErrorMiddleware` is the innermost
middleware: it turns the errors of endpoints and mounted apps into responses. A middleware that has
nothing to do after the response does not await the next app. It returns the awaitable of that app
instead, which is faster.
"""

import ipaddress
import logging
import re
import socket
import time
from collections.abc import Awaitable

import anyio
import anyio.lowlevel
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hermes.entry.http.auth import Auth
from hermes.entry.http.connections import ClientConnection, connection_of
from hermes.entry.http.errors import ApiError, error_response
from hermes.entry.http.responses import raw
from hermes.types.errors import HermesError
from hermes.types.identity import new_id

log = logging.getLogger(__name__)

WHOLE_BODY_SECONDS = 300.0
"""Maximum time in seconds that a client may take to send a whole body."""
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
"""Usual names of a local server."""
_REQUEST_ID = re.compile(r"[A-Za-z0-9._:/+=-]{1,128}")


def header(scope: Scope, name: bytes) -> str | None:
    """Returns the value of the first header with this name, or None if there is no such header."""
    for found, value in scope["headers"]:
        if found == name:
            return str(value, "latin-1")
    return None


class RequestIdMiddleware:
    """Gives every request an id. The id is the client's own id if that is well-formed, and
    otherwise a new id.

    It is available as `request.state.request_id`, and is sent in the response header
    `x-request-id`.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        given = header(scope, b"x-request-id")
        id = given if given and _REQUEST_ID.fullmatch(given) else new_id()
        state = scope["state"]
        state["request_id"] = id
        named = (b"x-request-id", id.encode())

        def send_named(message: Message) -> Awaitable[None]:
            if message["type"] == "http.response.start":
                state["response_status"] = message["status"]
                message = {**message, "headers": [*message["headers"], named]}
            return send(message)

        return self._app(scope, receive, send_named)


class AccessLogMiddleware:
    """Logs every request in one line, at level DEBUG. Must be inside of `RequestIdMiddleware`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        shown = log.isEnabledFor(logging.DEBUG)
        return (self._logged if shown else self._app)(scope, receive, send)

    async def _logged(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = time.perf_counter()
        try:
            await self._app(scope, receive, send)
        finally:
            state, took = scope["state"], 1000 * (time.perf_counter() - begun)
            status = state.get("response_status", "no response")
            what = f"{scope['method']} {scope['path']!r}"
            log.debug("%s: %s in %.1f ms (request %s)", what, status, took, state["request_id"])


class DisconnectMiddleware:
    """Cancels a request whose client has disconnected."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection = connection_of(scope)
        with anyio.CancelScope() as request:
            connection.on_lost = request.cancel
            try:
                await self._app(scope, receive, send)
            except ClientDisconnect:
                # uvicorn gets time to notice the disconnection. Otherwise uvicorn would log an
                # error.
                await anyio.lowlevel.cancel_shielded_checkpoint()
            finally:
                connection.on_lost = None


class HostMiddleware:
    """If the server is local, refuses requests whose Host header names another host. Such requests
    come from a web page whose host name was made to resolve to this machine (DNS rebinding).

    `public_paths` are served under every host name, because platforms reach their webhooks through
    a tunnel.
    """

    def __init__(self, app: ASGIApp, host: str, public_paths: frozenset[str] = frozenset()) -> None:
        self._app = app
        self._public_paths = public_paths
        # The Host header is checked only on a local server, because people can reach a public
        # server under any name.
        self._local = is_loopback(host)
        self._names = LOOPBACK | {host.lower()}

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        refused = self._refusal(scope)
        answer = self._app if refused is None else error_response(refused)
        return answer(scope, receive, send)

    def _refusal(self, scope: Scope) -> ApiError | None:
        given = [value for found, value in scope["headers"] if found == b"host"]
        if len(given) > 1 or (not given and scope["http_version"] == "1.1"):
            return ApiError(400, "Send one Host header.", "invalid_host")
        if not self._local or scope["path"] in self._public_paths:
            return None
        name = _host_name(str(given[0], "latin-1")) if given else ""
        if name in self._names or is_loopback_address(name):
            return None
        return ApiError(403, f"This server is not {name!r}.", "foreign_host")


def _host_name(host: str) -> str:
    """Returns the name or address in a Host header, without the port: `::1` for `[::1]:8642`."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.rsplit(":", 1)[0].lower()


def is_loopback(host: str) -> bool:
    """Returns whether a server that binds to this address or name is reachable from this machine
    only."""
    if is_loopback_address(host):
        return True
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return host.lower() == "localhost"
    return all(is_loopback_address(str(address[0])) for *_, address in found)


def is_loopback_address(text: str) -> bool:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


EXPOSED = {
    "access-control-expose-headers": "x-hermes-ignored, x-hermes-run-id,"
    " x-hermes-session-id, x-request-id, retry-after",
    "vary": "Origin",
}
PREFLIGHT = {
    "access-control-allow-methods": "GET, POST, OPTIONS",
    "access-control-allow-headers": "Authorization, Content-Type, Idempotency-Key, Last-Event-ID,"
    " X-Hermes-Session-Id, X-Hermes-Chat-Id, X-Hermes-User-Id, X-Hermes-Thread-Id, X-Request-Id",
    "access-control-max-age": "600",
}


SDK_HEADER = re.compile(r"x-stainless-[a-z0-9-]{1,40}")
"""Matches the headers in which OpenAI's SDKs describe themselves. They are not listed by name,
because new versions add more headers."""


def preflight_headers(requested: str) -> dict[str, str]:
    """Returns the headers of the answer to a CORS preflight request. `requested` lists the headers
    that the web page wants to send.

    A list of allowed headers can't contain patterns, so the headers of the SDKs are listed one by
    one.
    """
    names = (name.strip().lower() for name in requested.split(","))
    extra = [name for name in names if SDK_HEADER.fullmatch(name)]
    allowed = ", ".join([PREFLIGHT["access-control-allow-headers"], *extra])
    return {**PREFLIGHT, "access-control-allow-headers": allowed}


class OriginMiddleware:
    """Lets web pages of the configured origins call the API, and refuses requests of all other web
    pages."""

    def __init__(self, app: ASGIApp, origins: tuple[str, ...]) -> None:
        self._app = app
        self._origins = origins

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        origin = header(scope, b"origin")
        if origin is None:
            return self._app(scope, receive, send)
        if "*" not in self._origins and origin not in self._origins:
            message = f"Pages of {origin!r} may not call this API; see API_SERVER_CORS_ORIGINS."
            refused = ApiError(403, message, "foreign_origin")
            return error_response(refused)(scope, receive, send)
        allowed = raw({"access-control-allow-origin": origin, **EXPOSED})

        def send_allowed(message: Message) -> Awaitable[None]:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *allowed]}
            return send(message)

        if scope["method"] == "OPTIONS":
            headers = preflight_headers(header(scope, b"access-control-request-headers") or "")
            return Response(status_code=204, headers=headers)(scope, receive, send_allowed)
        return self._app(scope, receive, send_allowed)


class KeyMiddleware:
    """Refuses requests without a valid key. The key's principal becomes `request.user`."""

    def __init__(self, app: ASGIApp, auth: Auth, open_paths: frozenset[str]) -> None:
        self._app = app
        self._auth = auth
        self._open_paths = open_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] not in self._open_paths:
            client = scope["client"]
            authorization = header(scope, b"authorization") or ""
            try:
                address = client[0] if client else ""
                scope["user"] = await self._auth.principal(authorization, address)
            except ApiError as refused:
                log.warning("%d for %s: no valid key", refused.status, client[0] if client else "")
                await error_response(refused)(scope, receive, send)
                return
        await self._app(scope, receive, send)


class BodyLimitMiddleware:
    """Refuses bodies that are too large or arrive too slowly."""

    def __init__(self, app: ASGIApp, most_bytes: int, seconds: float) -> None:
        self._app = app
        self._most_bytes = most_bytes
        self._seconds = seconds

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        length = header(scope, b"content-length")
        if length is None and header(scope, b"transfer-encoding") is None:
            return self._app(scope, receive, send)
        if length is not None and not (length.isascii() and length.isdigit()):
            refused = ApiError(400, "Content-Length is not a number.", "invalid_content_length")
            return error_response(refused)(scope, receive, send)
        if length is not None and int(length) > self._most_bytes:
            return error_response(too_large(self._most_bytes))(scope, receive, send)
        body = _Body(connection_of(scope), receive, self._most_bytes, self._seconds)
        return self._app(scope, body.receive, send)


class _Body:
    """Reads a request's body, within the limits of size and time."""

    def __init__(
        self, connection: ClientConnection, receive: Receive, most_bytes: int, seconds: float
    ) -> None:
        self._connection = connection
        self._receive = receive
        self._most_bytes = most_bytes
        self._seconds = seconds
        self._begun = time.monotonic()
        self._size = 0
        self._whole = False

    async def receive(self) -> Message:
        if self._whole:
            return await self._receive()
        if self._connection.body_ready:
            message = await self._receive()
        else:
            message = await self._wait()
        self._whole = not message.get("more_body", False)
        self._size += len(message.get("body", b""))
        if self._size > self._most_bytes:
            raise too_large(self._most_bytes)
        return message

    async def _wait(self) -> Message:
        left = WHOLE_BODY_SECONDS - (time.monotonic() - self._begun)
        self._connection.await_body(True)
        try:
            with anyio.move_on_after(min(self._seconds, left)):
                return await self._receive()
        finally:
            self._connection.await_body(False)
        message = "The rest of the body did not arrive in time: send the request again."
        raise ApiError(408, message, "body_timeout", close=True)


def too_large(most_bytes: int) -> ApiError:
    message = f"The body is larger than {most_bytes} bytes."
    return ApiError(413, message, "body_too_large", close=True)


class ErrorMiddleware:
    """Turns an error of an endpoint or a mounted app into a response."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._app(scope, receive, send)
        except ClientDisconnect:
            raise
        except Exception as error:
            if "response_status" in scope["state"]:
                # A part of the response was sent already. uvicorn logs the error and closes the
                # connection.
                raise
            await _told(error, scope)(scope, receive, send)


def _told(error: Exception, scope: Scope) -> Response:
    if isinstance(error, HermesError):
        return error_response(error)
    id = scope["state"]["request_id"]
    log.error("%s %r failed (request %s)", scope["method"], scope["path"], id, exc_info=error)
    message = f"Internal error: see the gateway's log (request {id})."
    return error_response(ApiError(500, message, "internal_error"))
