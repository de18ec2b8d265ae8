"""An endpoint is an ASGI app that calls a function and sends the response that the function
returns."""

import pytest
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message

from hermes.entry.http.endpoint import Endpoint, body_of
from hermes.entry.http.errors import ApiError
from hermes.testing.asgi import call, http_scope


async def echo(request: Request) -> ASGIApp:
    return PlainTextResponse(await body_of(request))


async def test_the_response_of_the_function_is_sent() -> None:
    response = await call(Endpoint("POST", echo), http_scope("POST"), [b"one ", b"two"])
    assert (response.status, response.body) == (200, b"one two")


async def test_other_methods_are_refused_unless_the_endpoint_accepts_all() -> None:
    with pytest.raises(ApiError) as caught:
        await call(Endpoint("POST", echo), http_scope("GET"))
    assert (caught.value.status, caught.value.code) == (405, "method_not_allowed")
    assert (await call(Endpoint("", echo), http_scope("DELETE"))).status == 200


async def test_a_client_that_disconnects_in_the_middle_of_its_body_is_noticed() -> None:
    messages: list[Message] = [
        {"type": "http.request", "body": b"half", "more_body": True},
        {"type": "http.disconnect"},
    ]

    async def receive() -> Message:
        return messages.pop(0)

    with pytest.raises(ClientDisconnect):
        await body_of(Request(http_scope("POST"), receive))
