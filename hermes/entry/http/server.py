"""The HTTP server: routes, keys, limits, and uvicorn around them."""

import contextlib
import logging
import socket
from collections.abc import Callable, Iterator

import anyio
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hermes.control.gateway import Gateway
from hermes.entry.http.auth import Auth
from hermes.entry.http.call import Handler
from hermes.entry.http.chat_completions import ChatCompletions
from hermes.entry.http.connection import Connection
from hermes.entry.http.door import Door, Screen
from hermes.entry.http.errors import ApiError
from hermes.entry.http.health import health, readiness
from hermes.entry.http.models import Models
from hermes.entry.http.runs import RunEvents
from hermes.types.errors import ConfigError
from hermes.types.value import Value

log = logging.getLogger(__name__)

ROUTES = (
    ("POST", "/v1/chat/completions", "One turn of the agent, whole or streamed."),
    ("GET", "/v1/models", "The agents that can be asked."),
    ("GET", "/v1/runs/{run_id}/events", "A run's events, from any event id on."),
    ("GET", "/health", "Whether the process answers; needs no key."),
    ("GET", "/v1/health", "The same, for clients that know one base URL."),
    ("GET", "/ready", "Whether messages can be taken in; needs no key."),
)


class ApiOptions(Value):
    """What the HTTP API is told once, at its start."""

    key: str
    host: str = "127.0.0.1"
    port: int = 8642
    aliases: frozenset[str] = frozenset({"hermes-agent"})
    """Names that stand for the default agent besides its own."""
    reachable: Callable[[str], bool] = lambda name: False
    """Whether a `provider/model` can be asked for."""
    cors_origins: tuple[str, ...] = ()
    most_bytes: int = 10_000_000


def build_app(gateway: Gateway, options: ApiOptions) -> Starlette:
    models = Models(("main",), options.aliases, options.reachable)
    chat = ChatCompletions(gateway, models)
    screen = Screen(
        Auth(options.key),
        host=options.host,
        origins=options.cors_origins,
        most_bytes=options.most_bytes,
    )

    def keyed(handler: Handler) -> Door:
        return Door(screen, handler, keyed=True)

    def open_to_all(handler: Handler) -> Door:
        return Door(screen, handler, keyed=False)

    endpoints = {
        "/v1/chat/completions": keyed(chat),
        "/v1/models": keyed(models.listing),
        "/v1/runs/{run_id}/events": keyed(RunEvents(gateway)),
        "/health": open_to_all(health),
        "/v1/health": open_to_all(health),
        "/ready": open_to_all(readiness(gateway)),
    }
    return Starlette(
        routes=[
            Route(path, endpoints[path], methods=[method, "OPTIONS"]) for method, path, _ in ROUTES
        ],
        exception_handlers={HTTPException: _no_such_route},
    )


async def _no_such_route(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    message = f"There is no {request.method} {request.url.path} here."
    return ApiError(status, message, "not_found").response()


async def serve_http(gateway: Gateway, options: ApiOptions, ready: Callable[[str], None]) -> None:
    """Serves until cancelled; tells `ready` the base URL once it listens."""
    listening = bind(options.host, options.port)
    config = uvicorn.Config(
        build_app(gateway, options),
        http=Connection,
        ws="none",
        loop="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=75,
    )
    server = _Server(config)
    port = listening.getsockname()[1]
    shown = f"[{options.host}]" if ":" in options.host else options.host
    async with anyio.create_task_group() as group:
        group.start_soon(server.serve, [listening])
        try:
            await server.listening.wait()
            ready(f"http://{shown}:{port}")
            await anyio.sleep_forever()
        finally:
            server.should_exit = server.force_exit = True
            with anyio.move_on_after(2, shield=True):
                await server.stopped.wait()
            group.cancel_scope.cancel()


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers: the process has its own."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = anyio.Event()
        self.stopped = anyio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await super().serve(sockets)
        finally:
            self.stopped.set()


def bind(host: str, port: int) -> socket.socket:
    """A listening socket, or a ConfigError that says what to do."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise ConfigError(
            f"can't listen on {host}:{port} ({error.strerror}): stop what uses it, or set"
            " another API_SERVER_PORT"
        ) from error
    listening.listen(2048)
    listening.setblocking(False)
    return listening
