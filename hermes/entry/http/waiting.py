"""Answers requests while the gateway's store can't be opened."""

from starlette.requests import Request
from starlette.routing import Route, Router
from starlette.types import ASGIApp

from hermes.entry.http.endpoint import Endpoint
from hermes.entry.http.health import Readiness, health
from hermes.entry.http.responses import JsonResponse, json_response
from hermes.entry.http.server import ApiOptions, middleware
from hermes.types.errors import StoreUnavailable


def waiting_app(options: ApiOptions, reason: str) -> ASGIApp:
    """Returns an app that reports to health checks that the gateway is healthy but not ready. The
    app answers all other requests with 503."""

    async def ready(request: Request) -> JsonResponse:
        return json_response(Readiness(status="not ready", reason=reason), 503)

    async def refuse(request: Request) -> ASGIApp:
        raise StoreUnavailable(reason)

    routes = [
        Route("/health", Endpoint("GET", health)),
        Route("/v1/health", Endpoint("GET", health)),
        Route("/ready", Endpoint("GET", ready)),
    ]
    return Router(
        routes,
        redirect_slashes=False,
        default=Endpoint("", refuse),
        middleware=middleware(options),
    )
