"""Serves the addresses at which chat platforms deliver messages over HTTP."""

import time
from collections.abc import Sequence

import anyio.lowlevel
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, compile_path
from starlette.types import ASGIApp

from hermes.control.access import accept_from_chat
from hermes.control.chat_files import accept_with_files
from hermes.control.gateway import Gateway
from hermes.entry.http.endpoint import Endpoint, EndpointFunction, body_of
from hermes.entry.http.errors import ApiError
from hermes.types.errors import ConfigError
from hermes.types.platforms import WebhookRequest, WebhookRoute
from hermes.types.protocols import Accept

MOST_DELIVERIES = 16
"""Maximum number of requests of one route that wait until their messages are stored. Further
requests are refused, so that the time to accept a message stays short."""
FEW_DELIVERIES, LATE_SECONDS = 4, 0.02
"""A request is also refused if more than FEW_DELIVERIES requests of its route wait and the event
loop needs more than LATE_SECONDS to resume a task. The event loop is that late only if the running
turns use all of the processor."""
REDELIVERY_SECONDS = 1.0


def check_paths(routes: Sequence[WebhookRoute], ours: Sequence[str]) -> None:
    """Raises ConfigError if a path has parameters, does not begin with a slash, or is already
    served by another route.

    The key and the host name are not checked for these paths, so the paths must not match any
    other route.
    """
    patterns = [compile_path(path)[0] for path in ours]
    paths = [route.path for route in routes]
    for path in paths:
        if not path.startswith("/") or "{" in path:
            raise ConfigError(f"the webhook path {path!r} must begin with / and have no parameters")
        if paths.count(path) > 1 or any(pattern.match(path) for pattern in patterns):
            raise ConfigError(f"the webhook path {path!r} is in use already: choose another one")


def webhook_routes(gateway: Gateway, routes: Sequence[WebhookRoute]) -> list[Route]:
    """Returns the HTTP routes at which chat platforms deliver messages. These routes need no API
    key, because each handler verifies its requests."""
    return [
        Route(route.path, Endpoint(route.method, _endpoint(gateway, route))) for route in routes
    ]


def _endpoint(gateway: Gateway, route: WebhookRoute) -> EndpointFunction:
    accept: Accept = gateway.accept
    if route.fetch is not None:
        accept = accept_with_files(accept, gateway.admits, gateway.media, route.fetch)
    accept = accept_from_chat(accept)
    waiting = 0

    async def answer(request: Request) -> ASGIApp:
        nonlocal waiting
        received = WebhookRequest(
            headers=dict(request.headers),
            query=dict(request.query_params),
            body=await body_of(request),
        )
        if waiting >= MOST_DELIVERIES or (waiting > FEW_DELIVERIES and await _is_late()):
            # The request is refused, and the platform delivers the message again later.
            message = "Too many messages at once; deliver this one again."
            raise ApiError(503, message, "webhook_busy", retry_after=REDELIVERY_SECONDS)
        waiting += 1
        try:
            response = await route.handler(received, accept)
        finally:
            waiting -= 1
        return Response(response.body, response.status, media_type=response.media_type)

    return answer


async def _is_late() -> bool:
    began = time.perf_counter()
    await anyio.lowlevel.checkpoint()
    return time.perf_counter() - began > LATE_SECONDS
