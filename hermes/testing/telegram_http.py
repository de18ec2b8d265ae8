"""Reads the calls to the fake Bot API, and makes calls fail."""

import anyio
from aiohttp import web

from hermes.testing.telegram_records import ApiObject, ApiRefusal, ScriptedFailure


async def call_parameters(request: web.Request) -> ApiObject:
    """Returns the parameters of a call, from JSON or a form."""
    if request.content_type == "application/json":
        found = await request.json()
        if not isinstance(found, dict):
            raise ApiRefusal(400, "Bad Request: the body is not an object")
        return found
    return dict(await request.post())


async def fail_call(request: web.Request, failure: ScriptedFailure) -> None:
    """Makes a call fail: raises ApiRefusal, or cuts the connection if the failure has no status."""
    await anyio.sleep(failure.after)
    if failure.status:
        raise ApiRefusal(failure.status, failure.description, retry_after=failure.retry_after)
    if request.transport is not None:
        request.transport.abort()
    raise ApiRefusal(502, "the connection was cut")


def refused_call(refusal: ApiRefusal) -> web.Response:
    """Returns the HTTP response with which the Bot API refuses a call."""
    body: ApiObject = {"ok": False, "error_code": refusal.status, "description": str(refusal)}
    if refusal.parameters:
        body["parameters"] = refusal.parameters
    return web.json_response(body, status=refusal.status)
