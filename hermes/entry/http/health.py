"""GET /health and GET /ready, for supervisors and load balancers."""

from starlette.requests import Request

from hermes import __version__
from hermes.control.gateway import Gateway
from hermes.entry.http.endpoint import EndpointFunction
from hermes.entry.http.responses import JsonResponse, json_response
from hermes.types.value import Value


class Health(Value, omit_defaults=False):
    status: str = "ok"
    """Always `ok`."""
    platform: str = "hermes-agent"
    """Always `hermes-agent`."""
    version: str = __version__
    """The version of Hermes."""


class Readiness(Value):
    status: str
    """The status: `ready` or `not ready`."""
    reason: str = ""
    """Why the gateway is not ready; empty if it is ready."""


async def health(request: Request) -> JsonResponse:
    return json_response(Health())


def readiness(gateway: Gateway) -> EndpointFunction:
    async def ready(request: Request) -> JsonResponse:
        if trouble := gateway.trouble:
            return json_response(Readiness(status="not ready", reason=trouble), 503)
        return json_response(Readiness(status="ready"))

    return ready
