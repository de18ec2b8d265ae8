"""GET /health and GET /ready, for those who watch over us."""

from hermes import __version__
from hermes.control.gateway import Gateway
from hermes.entry.http.call import Call, Handler
from hermes.entry.http.reply import Reply, json_reply
from hermes.types.value import Value


class Health(Value, omit_defaults=False):
    status: str = "ok"
    platform: str = "hermes-agent"
    version: str = __version__


class Readiness(Value):
    status: str
    reason: str = ""


async def health(call: Call) -> Reply:
    return json_reply(Health())


def readiness(gateway: Gateway) -> Handler:
    async def ready(call: Call) -> Reply:
        if trouble := gateway.trouble:
            return json_reply(Readiness(status="not ready", reason=trouble), 503)
        return json_reply(Readiness(status="ready"))

    return ready
