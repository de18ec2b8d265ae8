"""The HTTP server: the routes, the middleware around them, and uvicorn."""

import contextlib
import logging
import socket
from collections.abc import Callable, Iterator, Sequence

import anyio
import uvicorn
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.routing import BaseRoute, Match, Route, Router
from starlette.types import ASGIApp

from hermes.control.gateway import Gateway
from hermes.entry.http.auth import Auth
from hermes.entry.http.chat_completions import ChatCompletions
from hermes.entry.http.connection import HttpConfig
from hermes.entry.http.connections import ClientLimits, ConnectionTable
from hermes.entry.http.descriptors import most_connections
from hermes.entry.http.endpoint import Endpoint, EndpointFunction
from hermes.entry.http.errors import ApiError
from hermes.entry.http.health import health, readiness
from hermes.entry.http.ignored import IgnoredOptions
from hermes.entry.http.middleware import (
    AccessLogMiddleware,
    BodyLimitMiddleware,
    DisconnectMiddleware,
    ErrorMiddleware,
    HostMiddleware,
    KeyMiddleware,
    OriginMiddleware,
    RequestIdMiddleware,
)
from hermes.entry.http.models import Models
from hermes.entry.http.run_approvals import RunApproval
from hermes.entry.http.runs import RunEvents
from hermes.entry.http.turnstile import TurnstileMiddleware
from hermes.entry.http.webhooks import check_paths, webhook_routes
from hermes.types.errors import ConfigError
from hermes.types.platforms import WebhookRoute
from hermes.types.value import Value

log = logging.getLogger(__name__)

ROUTES = (
    (
        "POST",
        "/v1/chat/completions",
        "Runs one turn of the agent and returns its answer, whole or streamed.",
    ),
    ("GET", "/v1/models", "Lists the agents, as models."),
    (
        "GET",
        "/v1/models/{model_id}",
        "Describes one agent, or a `provider/model` that can be used.",
    ),
    ("GET", "/v1/runs/{run_id}/events", "Streams the events of a run, from any event on."),
    (
        "POST",
        "/v1/runs/{run_id}/approval",
        "Approves or denies an action that a run waits to do.",
    ),
    ("GET", "/health", "Says that the process answers."),
    ("GET", "/v1/health", "The same, for clients that know only the base URL."),
    ("GET", "/ready", "Says whether messages can be accepted."),
)
PATTERNS = {"/v1/models/{model_id}": "/v1/models/{model_id:path}"}
"""Maps a path to the pattern of its route, if a parameter of the path may contain slashes."""
BACKLOG = 2048
"""Number of connections that the kernel holds until we accept them."""
OPEN = frozenset({"/health", "/v1/health", "/ready"})
"""Routes that need no key."""


class ApiOptions(Value):
    """The options of the HTTP API. They do not change while the API runs."""

    key: str
    host: str = "127.0.0.1"
    port: int = 8642
    model_name: str = "hermes-agent"
    """The name under which the default agent is listed, in addition to its own name."""
    aliases: frozenset[str] = frozenset({"hermes-agent"})
    """Further names of the default agent."""
    model_problem: Callable[[str], str | None] = lambda name: ""
    """A function that returns why a `provider/model` can't be called; "" if no reason is known, and
    None if the model can be called."""
    ignored_options: IgnoredOptions = lambda model, sampling: ()
    """A function that returns the names of the sampling options that a model does not support. The
    model is a `provider/model`, or None for the agent's own model."""
    cors_origins: tuple[str, ...] = ()
    most_bytes: int = 10_000_000
    limits: ClientLimits = ClientLimits()
    """Time limits for clients. If a limit ends a stream, the client can resume the stream after the
    last event that it has received."""
    most_connections: int | None = None
    """Maximum number of connections; None for as many as the file descriptors of the process
    allow."""


def build_app(
    gateway: Gateway,
    options: ApiOptions,
    webhooks: Sequence[WebhookRoute] = (),
    mounts: Sequence[BaseRoute] = (),
) -> ASGIApp:
    """Builds the API as an ASGI app. Raises ConfigError if a webhook has a path that can't be
    served.

    `webhooks` are the routes at which chat platforms deliver messages. `mounts` are further apps
    behind the same middleware.
    """
    patterns = {path: PATTERNS.get(path, path) for _, path, _ in ROUTES}
    check_paths(webhooks, list(patterns.values()))
    listed = tuple(dict.fromkeys((options.model_name, "main")))
    sole = len(gateway.agents) == 1
    models = Models(listed, options.aliases, options.model_problem, sole=sole)
    functions: dict[str, EndpointFunction] = {
        "/v1/chat/completions": ChatCompletions(gateway, models, options.ignored_options),
        "/v1/models": models.listing,
        "/v1/models/{model_id}": models.one,
        "/v1/runs/{run_id}/events": RunEvents(gateway),
        "/v1/runs/{run_id}/approval": RunApproval(gateway),
        "/health": health,
        "/v1/health": health,
        "/ready": readiness(gateway),
    }
    own = [Route(patterns[path], Endpoint(method, functions[path])) for method, path, _ in ROUTES]
    routes = [*own, *webhook_routes(gateway, webhooks), *mounts]
    return Router(
        routes,
        redirect_slashes=False,
        default=Endpoint("", NoSuchRoute(routes)),
        middleware=middleware(options, [route.path for route in webhooks]),
    )


def middleware(options: ApiOptions, webhooks: Sequence[str] = ()) -> list[Middleware]:
    """Returns all middleware, from the outermost to the innermost.

    `webhooks` are paths that need no key and are served under every host name, because their
    handlers verify the requests.
    """
    public = frozenset(webhooks)
    return [
        Middleware(RequestIdMiddleware),
        Middleware(AccessLogMiddleware),
        Middleware(DisconnectMiddleware),
        Middleware(TurnstileMiddleware),
        Middleware(HostMiddleware, host=options.host, public_paths=public),
        Middleware(OriginMiddleware, origins=options.cors_origins),
        Middleware(KeyMiddleware, auth=Auth(options.key), open_paths=OPEN | public),
        Middleware(BodyLimitMiddleware, most_bytes=options.most_bytes, seconds=options.limits.body),
        Middleware(ErrorMiddleware),
    ]


class NoSuchRoute:
    """Answers requests for unknown paths. If a route has the same path after `/v1`, the error
    suggests it, because the base URL of the client probably lacks `/v1`."""

    def __init__(self, routes: Sequence[BaseRoute]) -> None:
        self._routes = routes

    async def __call__(self, request: Request) -> ASGIApp:
        message = f"There is no {request.method} {request.url.path} here."
        versioned = {**request.scope, "path": f"/v1{request.scope['path']}"}
        if any(route.matches(versioned)[0] is Match.FULL for route in self._routes):
            message += f" Did you mean /v1{request.url.path}?"
        raise ApiError(404, message, "not_found")


async def serve_http(
    gateway: Gateway,
    options: ApiOptions,
    ready: Callable[[str], None],
    webhooks: Sequence[WebhookRoute] = (),
) -> None:
    """Serves the API until cancelled. Calls `ready` with the base URL when the server listens."""
    await serve_app(build_app(gateway, options, webhooks), options, ready)


async def serve_app(app: ASGIApp, options: ApiOptions, ready: Callable[[str], None]) -> None:
    """Serves the app until cancelled, at the address that the options contain. Calls `ready` with
    the base URL when the server listens."""
    listening = bind(options.host, options.port)
    most = options.most_connections or most_connections()
    table = ConnectionTable(most, options.limits)
    server = _Server(HttpConfig(app, table))
    port = listening.getsockname()[1]
    shown = f"[{options.host}]" if ":" in options.host else options.host
    with listening:
        async with anyio.create_task_group() as group:
            group.start_soon(server.run_to_the_end, listening)
            group.start_soon(table.watch)
            try:
                await server.listening.wait()
                # asyncio has set the length of the kernel's queue to ACCEPTED (the option
                # `backlog`). This call makes the queue longer.
                listening.listen(BACKLOG)
                ready(f"http://{shown}:{port}")
                await anyio.sleep_forever()
            finally:
                server.should_exit = server.force_exit = True
                for connection in list(server.server_state.connections):
                    connection.transport.close()


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers, because the process has its own."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = anyio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()

    async def run_to_the_end(self, listening: socket.socket) -> None:
        """Serves until `should_exit` is set. Cancelling the server instead would leave connections
        open."""
        with anyio.CancelScope(shield=True):
            await self.serve([listening])


def bind(host: str, port: int) -> socket.socket:
    """Returns a listening socket. If the address can't be used, raises a ConfigError that says what
    to do."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except (
        socket.gaierror,
        TypeError,
    ) as error:  # a TypeError means that the host name can't be encoded
        listening.close()
        raise ConfigError(
            f"{host!r} is not a known host name: set API_SERVER_HOST to an address of this machine"
        ) from error
    except OSError as error:
        listening.close()
        raise ConfigError(
            f"can't listen on {host}:{port} ({error.strerror}): stop the program that uses"
            " the port, or set another API_SERVER_PORT"
        ) from error
    listening.listen(BACKLOG)
    listening.setblocking(False)
    return listening
