"""GET /health and GET /ready, for supervisors and load balancers."""

from typing import Literal

from starlette.requests import Request

from hermes import __version__
from hermes.control.gateway import Gateway
from hermes.entry.http.endpoint import EndpointFunction
from hermes.entry.http.responses import JsonResponse, json_response
from hermes.types.accounts import AccountStatus
from hermes.types.value import Value


class Health(Value, omit_defaults=False):
    status: str = "ok"
    """Always `ok`."""
    platform: str = "hermes-agent"
    """Always `hermes-agent`."""
    version: str = __version__
    """The version of Hermes."""


class Readiness(Value):
    status: Literal["ok", "degraded", "not ready"]
    """The status: `ok`, `degraded` if a chat account is down, or `not ready` if no message can be
    accepted."""
    reason: str = ""
    """Why the gateway is not ready; empty if it is ready."""
    down: tuple[AccountStatus, ...] = ()
    """The chat accounts that are down."""


async def health(request: Request) -> JsonResponse:
    return json_response(Health())


def readiness(gateway: Gateway) -> EndpointFunction:
    async def ready(request: Request) -> JsonResponse:
        if trouble := gateway.trouble:
            return json_response(Readiness(status="not ready", reason=trouble), 503)
        down = gateway.accounts.down()
        return json_response(Readiness(status="degraded" if down else "ok", down=down))

    return ready
