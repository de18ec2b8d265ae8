"""Error responses of a homeserver become Hermes errors, and paths are percent-encoded."""

import json

import pytest

from hermes.entry.platforms.http import PlatformResponse
from hermes.entry.platforms.matrix.api import MatrixApi, api_path, error_for
from hermes.entry.platforms.matrix.manifest import MatrixAccount
from hermes.testing.matrix import matrix_platform
from hermes.testing.sites import answer, serving
from hermes.types.errors import (
    AuthFailed,
    Disconnected,
    HermesError,
    RateLimited,
    Rejected,
    TargetGone,
)


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (401, {"errcode": "M_UNKNOWN_TOKEN", "error": "?"}, AuthFailed),
        (403, {"errcode": "M_FORBIDDEN"}, TargetGone),
        (413, {"errcode": "M_TOO_LARGE"}, Rejected),
        (404, {"errcode": "M_NOT_FOUND"}, Rejected),
        (404, "<html>", Disconnected),
        (500, {"errcode": "M_UNKNOWN"}, Disconnected),
        (502, "<html>", Disconnected),
    ],
)
def test_each_problem_has_its_error(status: int, body: object, kind: type[HermesError]) -> None:
    text = body if isinstance(body, str) else json.dumps(body)
    error = error_for(PlatformResponse(status=status, headers={}, body=text.encode()))
    assert type(error) is kind


def test_a_rate_limit_says_how_long_to_wait() -> None:
    problem = {"errcode": "M_LIMIT_EXCEEDED", "retry_after_ms": 1500}
    body = json.dumps(problem).encode()
    error = error_for(PlatformResponse(status=429, headers={"Retry-After": "9"}, body=body))
    assert isinstance(error, RateLimited)
    assert error.retry_after == 1.5


def test_the_parts_of_a_path_are_quoted() -> None:
    assert api_path("rooms", "!a/b:x.org", "$c+d") == (
        "_matrix/client/v3/rooms/%21a%2Fb%3Ax.org/%24c%2Bd"
    )


async def test_a_path_arrives_as_it_is_quoted() -> None:
    async with matrix_platform() as platform:
        api = MatrixApi(
            MatrixAccount(homeserver=platform.server.url, access_token=platform.bot.token), "d"
        )
        path = api_path("user", platform.bot.id, "account_data", "org.x/y+z$?")
        await api.call("PUT", path, object, {"a": 1})
        assert await api.find(path, dict[str, int]) == {"a": 1}
        assert await api.find(f"{path}2", dict[str, int]) is None
        stored = ("user", platform.bot.id, "account_data", "org.x/y+z$?")
        assert platform.bot.call("GET", *stored) == {"a": 1}


async def test_an_access_token_is_verified() -> None:
    reply = answer(json.dumps({"user_id": "@hermes:x.org"}), media_type="application/json")
    async with serving({"/_matrix/client/v3/account/whoami": reply}) as site:
        url = f"http://127.0.0.1:{site.port}"
        api = MatrixApi(MatrixAccount(homeserver=url, access_token="secret"), "d")
        assert await api.verify() == "@hermes:x.org"
        assert b"Bearer secret" in site.heard[0]


async def test_a_refused_access_token_is_not_verified() -> None:
    problem = json.dumps({"errcode": "M_UNKNOWN_TOKEN", "error": "?"})
    reply = answer(problem, status=401, media_type="application/json")
    async with serving({"/_matrix/client/v3/account/whoami": reply}) as site:
        url = f"http://127.0.0.1:{site.port}"
        with pytest.raises(AuthFailed):
            await MatrixApi(MatrixAccount(homeserver=url, access_token="x"), "d").verify()


async def test_a_password_is_not_sent_to_verify_an_account() -> None:
    """A second login of the device would end the login of a running gateway."""
    async with serving({"/_matrix/client/v3/login": answer("{}")}) as site:
        url = f"http://127.0.0.1:{site.port}"
        account = MatrixAccount(homeserver=url, user="@hermes:x.org", password="secret")
        assert "was not tried" in await MatrixApi(account, "d").verify()
    (request,) = site.heard
    assert request.startswith(b"GET ")
    assert b"secret" not in request
