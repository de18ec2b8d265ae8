"""While the store can't be opened, the service is healthy but accepts no messages."""

import msgspec
import pytest

from hermes.entry.http.server import ApiOptions
from hermes.entry.http.waiting import waiting_app
from hermes.testing.asgi import call, http_scope

KEY = "a-key-for-tests-only"
APP = waiting_app(ApiOptions(key=KEY), "the disk is full")
BEARER = f"Bearer {KEY}"


@pytest.mark.parametrize("path", ["/health", "/v1/health"])
async def test_health_works_while_the_gateway_waits(path: str) -> None:
    assert (await call(APP, http_scope(path=path))).status == 200


async def test_a_waiting_gateway_is_not_ready_and_says_why() -> None:
    response = await call(APP, http_scope(path="/ready"))
    assert response.status == 503
    assert msgspec.json.decode(response.body)["reason"] == "the disk is full"


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/v1/chat/completions"), ("GET", "/v1/models"), ("GET", "/v1/runs/1/events")],
)
async def test_other_requests_get_503_with_a_time_to_retry(method: str, path: str) -> None:
    response = await call(APP, http_scope(method, path, authorization=BEARER))
    assert (response.status, response.code) == (503, "store_unavailable")
    assert response.headers["retry-after"] == "5"


async def test_a_request_without_the_key_gets_401() -> None:
    response = await call(APP, http_scope("POST", "/v1/chat/completions"))
    assert response.status == 401
