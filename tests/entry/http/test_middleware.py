"""Every route and every mounted app is behind the same middleware."""

import logging
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import msgspec
import pytest
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse
from starlette.routing import Mount
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hermes.entry.http.middleware import (
    AccessLogMiddleware,
    BodyLimitMiddleware,
    DisconnectMiddleware,
    ErrorMiddleware,
    HostMiddleware,
    RequestIdMiddleware,
)
from hermes.entry.http.server import ApiOptions, build_app
from hermes.testing.asgi import call, fake_connection, http_scope
from hermes.testing.running import running
from hermes.testing.scripted import ScriptedModel
from hermes.types.errors import HermesError, StoreUnavailable, TooLong

KEY = "secret"
PAGE = "https://chat.example"
BEARER = {"authorization": f"Bearer {KEY}"}
LIMIT = 1000


class Echo:
    """A mounted app that echoes the body, and counts the requests that reach it."""

    def __init__(self) -> None:
        self.reached = 0
        self.error: Exception | None = None
        self.ids: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.reached += 1
        request = Request(scope, receive)
        self.ids.append(request.state.request_id)
        if self.error is not None:
            raise self.error
        await PlainTextResponse(await request.body())(scope, receive, send)


class Guarded:
    def __init__(self, app: ASGIApp, echo: Echo) -> None:
        self.app = app
        self.echo = echo


@pytest.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[Guarded]:
    """Yields the whole API with an app mounted at /extra."""
    options = ApiOptions(key=KEY, most_bytes=LIMIT, cors_origins=(PAGE,))
    echo = Echo()
    async with running(tmp_path, [], ScriptedModel([])) as gateway:
        yield Guarded(build_app(gateway, options, mounts=[Mount("/extra", echo)]), echo)


REFUSED: list[tuple[dict[str, str], list[bytes], int, str]] = [
    ({}, [b"hi"], 401, "invalid_api_key"),
    ({"authorization": "Bearer wrong"}, [b"hi"], 401, "invalid_api_key"),
    ({**BEARER, "host": "evil.example"}, [b"hi"], 403, "foreign_host"),
    ({**BEARER, "origin": "https://evil.example"}, [b"hi"], 403, "foreign_origin"),
    ({**BEARER, "content_length": str(LIMIT + 1)}, [b"hi"], 413, "body_too_large"),
    ({**BEARER, "content_length": "many"}, [b"hi"], 400, "invalid_content_length"),
    ({**BEARER, "content_length": "²"}, [b"hi"], 400, "invalid_content_length"),
]


@pytest.mark.parametrize("path", ["/extra/", "/extra/deep", "/v1/models", "/nothing"])
@pytest.mark.parametrize(("headers", "body", "status", "code"), REFUSED)
async def test_a_request_that_a_middleware_refuses_reaches_neither_routes_nor_mounted_apps(
    guarded: Guarded, path: str, headers: dict[str, str], body: list[bytes], status: int, code: str
) -> None:
    response = await call(guarded.app, http_scope("POST", path, **headers), body)
    assert (response.status, response.code) == (status, code)
    assert response.headers["x-request-id"]
    assert guarded.echo.reached == 0


async def test_a_body_of_unknown_length_is_cut_at_the_limit_in_a_mounted_app(
    guarded: Guarded,
) -> None:
    scope = http_scope("POST", "/extra/", transfer_encoding="chunked", **BEARER)
    response = await call(guarded.app, scope, [b"x" * 600, b"x" * 600])
    assert (response.status, response.code) == (413, "body_too_large")
    assert response.headers["connection"] == "close"


async def test_a_mounted_app_is_reached_with_the_key(guarded: Guarded) -> None:
    scope = http_scope("POST", "/extra/", content_length="2", **BEARER)
    response = await call(guarded.app, scope, [b"hi"])
    assert (response.status, response.body) == (200, b"hi")
    assert [response.headers["x-request-id"]] == guarded.echo.ids
    assert "access-control-allow-origin" not in response.headers


async def test_an_allowed_page_can_read_answers_and_errors(guarded: Guarded) -> None:
    scope = http_scope("OPTIONS", "/extra/", origin=PAGE)
    preflight = await call(guarded.app, scope)
    assert preflight.status == 204
    assert preflight.headers["access-control-allow-origin"] == PAGE
    assert "X-Request-Id" in preflight.headers["access-control-allow-headers"]
    for headers in (BEARER, {}):
        response = await call(guarded.app, http_scope("GET", "/extra/", origin=PAGE, **headers))
        assert response.status == (200 if headers else 401)
        assert response.headers["access-control-allow-origin"] == PAGE
        assert "x-request-id" in response.headers["access-control-expose-headers"]
        assert response.headers["vary"] == "Origin"


async def test_a_preflight_allows_the_headers_of_the_openai_sdk(guarded: Guarded) -> None:
    wanted = "authorization,X-Stainless-OS, x-stainless-retry-count,x-evil,x-stainless-a b"
    scope = http_scope("OPTIONS", "/extra/", origin=PAGE)
    scope["headers"].append((b"access-control-request-headers", wanted.encode()))
    preflight = await call(guarded.app, scope)
    allowed = preflight.headers["access-control-allow-headers"].split(", ")
    assert allowed[-2:] == ["x-stainless-os", "x-stainless-retry-count"]
    assert "x-evil" not in allowed
    assert "Authorization" in allowed


async def test_without_an_origin_there_is_no_preflight(guarded: Guarded) -> None:
    assert (await call(guarded.app, http_scope("OPTIONS", "/extra"))).status == 401


@pytest.mark.parametrize("given", ["7", "a-b_c.d:e/f+g=", "x" * 128])
async def test_a_response_has_the_request_id_that_its_client_sent(
    guarded: Guarded, given: str
) -> None:
    for path, headers in (("/health", {}), ("/extra/", BEARER), ("/extra/", {})):
        response = await call(guarded.app, http_scope("GET", path, x_request_id=given, **headers))
        assert response.headers["x-request-id"] == given
    assert guarded.echo.ids == [given]


@pytest.mark.parametrize("given", ["", " ", "x" * 129, "a b", 'a"b', "a\nb", "é"])
async def test_a_strange_request_id_is_replaced(guarded: Guarded, given: str) -> None:
    scope = http_scope("GET", "/health", x_request_id=given)
    assert (await call(guarded.app, scope)).headers["x-request-id"] not in ("", given)


async def test_ids_are_unique(guarded: Guarded) -> None:
    made = [await call(guarded.app, http_scope("GET", "/health")) for _ in range(3)]
    assert len({response.headers["x-request-id"] for response in made}) == 3


@pytest.mark.parametrize(
    ("error", "status", "code", "pause"),
    [
        (TooLong("long"), 400, "context_length_exceeded", None),
        (StoreUnavailable("the disk at /secret/path is full"), 503, "store_unavailable", "5"),
        (HermesError("odd"), 500, "internal_error", None),
    ],
)
async def test_one_of_our_errors_is_answered_with_its_status_and_code(
    guarded: Guarded, error: HermesError, status: int, code: str, pause: str | None
) -> None:
    guarded.echo.error = error
    response = await call(guarded.app, http_scope("GET", "/extra/", **BEARER))
    assert (response.status, response.code) == (status, code)
    assert response.headers.get("retry-after") == pause
    assert b"/secret/path" not in response.body


async def test_a_bug_is_logged_with_the_request_and_the_client_gets_no_details(
    guarded: Guarded, caplog: pytest.LogCaptureFixture
) -> None:
    guarded.echo.error = ValueError("details")
    response = await call(guarded.app, http_scope("GET", "/extra/", x_request_id="r1", **BEARER))
    assert (response.status, response.code) == (500, "internal_error")
    assert b"details" not in response.body
    assert b"r1" in response.body
    (record,) = [one for one in caplog.records if one.levelno == logging.ERROR]
    assert "GET '/extra/' failed (request r1)" in record.getMessage()
    assert record.exc_info is not None
    assert record.exc_info[1] is guarded.echo.error


async def test_an_error_after_the_start_of_a_response_sends_no_second_response() -> None:
    async def breaks(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise ValueError("late")

    with pytest.raises(ValueError, match="late"):
        await call(RequestIdMiddleware(ErrorMiddleware(breaks)), http_scope())


async def test_at_level_debug_the_log_has_one_line_per_request(
    guarded: Guarded, caplog: pytest.LogCaptureFixture
) -> None:
    await call(guarded.app, http_scope("GET", "/health"))
    assert caplog.records == []
    with caplog.at_level(logging.DEBUG, logger="hermes.entry.http.middleware"):
        await call(guarded.app, http_scope("GET", "/extra\nforged", x_request_id="r2"))
    (line,) = (record.getMessage() for record in caplog.records if record.levelname == "DEBUG")
    assert line.startswith(r"GET '/extra\nforged': 401 in ")
    assert line.endswith(" ms (request r2)")


async def test_a_request_without_a_response_is_also_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def silent(scope: Scope, receive: Receive, send: Send) -> None:
        pass

    app = RequestIdMiddleware(AccessLogMiddleware(silent))
    with caplog.at_level(logging.DEBUG, logger="hermes.entry.http.middleware"):
        with pytest.raises(ValueError, match="not enough values"):
            await call(app, http_scope())
    assert "GET '/': no response in " in caplog.text


async def test_a_request_is_cancelled_when_its_client_disconnects() -> None:
    scope, started, ended = http_scope(), anyio.Event(), anyio.Event()
    connection = fake_connection(scope)

    async def waits(scope: Scope, receive: Receive, send: Send) -> None:
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(DisconnectMiddleware(waits), scope, _silence, _nowhere)
            await started.wait()
            (connection.on_lost or pytest.fail)()
    assert ended.is_set()
    assert connection.on_lost is None


async def test_a_disconnected_client_ends_the_request_without_an_error() -> None:
    async def notices(scope: Scope, receive: Receive, send: Send) -> None:
        raise ClientDisconnect

    app = RequestIdMiddleware(DisconnectMiddleware(ErrorMiddleware(notices)))
    await app(http_scope(), _silence, _nowhere)


async def _silence() -> Message:
    await anyio.sleep_forever()
    raise AssertionError("it sleeps forever")


async def _nowhere(message: Message) -> None:
    raise AssertionError("nothing is sent")


async def test_a_body_that_makes_no_progress_is_answered_with_408() -> None:
    scope = http_scope("POST", "/", content_length="5")
    connection = fake_connection(scope)
    waited: list[bool] = []

    async def receive() -> Message:
        waited.append(connection.awaits_body)
        return await _silence()

    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    body_limit = BodyLimitMiddleware(ErrorMiddleware(Echo()), most_bytes=LIMIT, seconds=0.05)
    with anyio.fail_after(5):
        await RequestIdMiddleware(body_limit)(scope, receive, send)
    assert sent[0]["status"] == 408
    assert (b"connection", b"close") in sent[0]["headers"]
    assert msgspec.json.decode(sent[1]["body"])["error"]["code"] == "body_timeout"
    assert waited == [True]
    assert not connection.awaits_body


async def test_a_slow_body_is_read_as_long_as_it_makes_progress() -> None:
    parts = [b"a", b"b", b"c", b"d"]

    async def receive() -> Message:
        await anyio.sleep(0.05)
        return {"type": "http.request", "body": parts.pop(0), "more_body": bool(parts)}

    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    scope = http_scope("POST", "/", content_length="4")
    app = BodyLimitMiddleware(ErrorMiddleware(Echo()), most_bytes=LIMIT, seconds=0.15)
    await RequestIdMiddleware(app)(scope, receive, send)
    assert (sent[0]["status"], sent[1]["body"]) == (200, b"abcd")


async def test_a_complete_body_has_no_time_limit() -> None:
    async def lingers(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        with anyio.move_on_after(0.1):
            await receive()
        await PlainTextResponse("late")(scope, receive, send)

    scope = http_scope("POST", "/", content_length="2")
    app = BodyLimitMiddleware(lingers, most_bytes=LIMIT, seconds=0.05)
    assert (await call(app, scope, [b"hi"])).body == b"late"
    assert not fake_connection(scope).was_cut.is_set()


@pytest.mark.parametrize(
    ("bound", "asked", "status"),
    [
        ("127.0.0.1", "localhost", 200),
        ("localhost", "LOCALHOST:1", 200),
        ("::1", "[::1]:8642", 200),
        ("::1", "[::1]", 200),
        ("127.0.0.1", "", 403),
        ("127.0.0.1", "127.0.0.1.evil.example", 403),
        ("::1", "[::2]:8642", 403),
        ("0.0.0.0", "gateway.example", 200),
        ("127.0.0.2", "127.0.0.2:8642", 200),
        ("127.0.0.2", "127.0.0.1", 200),
        ("127.0.0.2", "evil.example", 403),
        ("127.1.2.3", "evil.example", 403),
        ("LOCALHOST", "evil.example", 403),
        ("0:0:0:0:0:0:0:1", "evil.example", 403),
        ("::ffff:127.0.0.1", "evil.example", 403),
        ("no-such-host.invalid", "gateway.example", 200),
        ("not..a..name", "gateway.example", 200),
    ],
)
async def test_a_local_server_accepts_only_local_host_names(
    bound: str, asked: str, status: int
) -> None:
    app = HostMiddleware(PlainTextResponse("ok"), host=bound)
    assert (await call(app, http_scope(host=asked))).status == status


@pytest.mark.parametrize("bound", ["127.0.0.1", "0.0.0.0"])
@pytest.mark.parametrize("path", ["/", "/hook"])
async def test_a_request_has_exactly_one_host_header(bound: str, path: str) -> None:
    public = frozenset({"/hook"})
    app = HostMiddleware(PlainTextResponse("ok"), host=bound, public_paths=public)
    scope = http_scope(path=path)
    scope["headers"] *= 2
    assert (await call(app, scope)).code == "invalid_host"
    scope = http_scope(path=path)
    scope["headers"] = []
    assert (await call(app, scope)).status == 400


async def test_an_http_1_0_client_may_omit_the_host_on_a_public_server() -> None:
    scope = http_scope()
    scope.update(headers=[], http_version="1.0")
    assert (
        await call(HostMiddleware(PlainTextResponse("ok"), host="0.0.0.0"), scope)
    ).status == 200
    assert (await call(HostMiddleware(PlainTextResponse("ok"), host="::1"), scope)).status == 403


async def test_a_wrong_method_and_an_unknown_path_have_different_errors(guarded: Guarded) -> None:
    wrong = await call(guarded.app, http_scope("DELETE", "/v1/models", **BEARER))
    assert (wrong.status, wrong.code) == (405, "method_not_allowed")
    unknown = await call(guarded.app, http_scope("GET", "/v1/nothing", **BEARER))
    assert (unknown.status, unknown.code) == (404, "not_found")


async def test_only_the_exact_open_paths_need_no_key(guarded: Guarded) -> None:
    for path in ("/health", "/v1/health", "/ready"):
        response = await call(guarded.app, http_scope("GET", path))
        assert response.status == 200
        assert msgspec.json.decode(response.body)["status"] == "ok"
        for other in (f"{path}/", f"/{path}", f"{path}/../v1/models", path.upper()):
            assert (await call(guarded.app, http_scope("GET", other))).status == 401


async def test_a_request_without_a_valid_key_has_a_line_in_the_log(
    guarded: Guarded, caplog: pytest.LogCaptureFixture
) -> None:
    scope = http_scope("GET", "/extra", authorization="Bearer guessed")
    assert (await call(guarded.app, scope)).status == 401
    (line,) = (one for one in caplog.messages if "no valid key" in one)
    assert line.startswith("401 for ")
    assert "guessed" not in caplog.text
