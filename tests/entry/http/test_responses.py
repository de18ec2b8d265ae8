"""A JSON response has a length and security headers."""

from hermes.entry.http.health import Readiness
from hermes.entry.http.responses import JsonResponse, json_response, raw
from hermes.testing.asgi import call, http_scope


async def test_a_body_is_sent_unchanged_with_its_length_and_security_headers() -> None:
    response = await call(JsonResponse(b'{"a":1}', 201, {"x-more": "yes"}), http_scope())
    assert (response.status, response.body) == (201, b'{"a":1}')
    assert response.headers == {
        "content-type": "application/json",
        "content-length": "7",
        "x-content-type-options": "nosniff",
        "cache-control": "no-store",
        "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
        "x-more": "yes",
    }


async def test_a_value_is_encoded_as_json() -> None:
    response = await call(json_response(Readiness(status="ok"), 202), http_scope())
    assert (response.status, response.body) == (202, b'{"status":"ok"}')


def test_characters_that_a_header_can_not_contain_are_replaced() -> None:
    assert raw({"x-name": "caf\u00e9 \u2713"}) == [(b"x-name", b"caf\xe9 ?")]
