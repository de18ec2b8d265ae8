"""GET /health and GET /ready, for those who watch over us."""

import msgspec
from starlette.responses import Response

from hermes import __version__
from hermes.control.gateway import Gateway
from hermes.entry.http.call import Call, Handler
from hermes.types.value import Value


class Health(Value, omit_defaults=False):
    status: str = "ok"
    platform: str = "hermes-agent"
    version: str = __version__


class Readiness(Value):
    status: str
    reason: str = ""


async def health(call: Call) -> Response:
    return _json(Health())


def readiness(gateway: Gateway) -> Handler:
    async def ready(call: Call) -> Response:
        if trouble := gateway.trouble:
            return _json(Readiness(status="not ready", reason=trouble), 503)
        return _json(Readiness(status="ready"))

    return ready


def _json(value: Value, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")
