"""The HTTP server against clients that misbehave."""

from pathlib import Path

import anyio
import anyio.abc
import msgspec
import pytest

from hermes.entry.http.server import ROUTES, ApiOptions, bind
from hermes.testing.bare import request
from hermes.testing.running import TroubledStore
from hermes.testing.service import PARTS, SERVICE_KEY, serving
from hermes.types.errors import ConfigError, StoreUnavailable
from hermes.types.store import Store

CHAT = "/v1/chat/completions"
HELLO = b'{"model":"main","messages":[{"role":"user","content":"hello"}]}'


async def test_health_and_readiness_need_no_key(tmp_path: Path) -> None:
    async with serving(tmp_path) as service:
        for path in ("/health", "/v1/health", "/ready"):
            status, _, body = await request(service.port, "GET", path, authorization="")
            assert status == 200, path
            assert msgspec.json.decode(body)["status"] in ("ok", "ready")


async def test_every_other_route_needs_the_key(tmp_path: Path) -> None:
    async with serving(tmp_path) as service:
        for method, path, _ in ROUTES:
            if path in ("/health", "/v1/health", "/ready"):
                continue
            for key in (
                "",
                "Bearer wrong",
                f"Basic {SERVICE_KEY}",
                "Bearer schl\xfcssel",
                f"bearer{SERVICE_KEY}",
            ):
                status, headers, body = await request(
                    service.port,
                    method,
                    path.format(run_id="run_x", model_id="main"),
                    authorization=key,
                )
                assert status in (401, 429), (path, key)
                assert "error" in msgspec.json.decode(body)
                assert headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/"), ("GET", "/v1/nothing"), ("GET", CHAT), ("DELETE", "/health")]
)
async def test_what_is_not_there_is_said_in_the_usual_shape(
    tmp_path: Path, method: str, path: str
) -> None:
    async with serving(tmp_path) as service:
        status, _, body = await request(service.port, method, path)
    assert status in (404, 405)
    assert msgspec.json.decode(body)["error"]["message"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'"hello"',
        b'{"messages": null}',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"messages":[{"role":"user","content":' + b"[" * 50_000,
        b'{"model":"main","messages":[{"role":"user","content":"\\ud800"}]}',
    ],
)
async def test_hostile_bodies_are_bad_requests(tmp_path: Path, body: bytes) -> None:
    async with serving(tmp_path) as service:
        status, _, answer = await request(service.port, "POST", CHAT, body)
        assert status in (400, 403), answer
        assert (await request(service.port, "POST", CHAT, HELLO))[0] == 200


async def test_a_body_without_a_length_is_cut_at_the_limit(tmp_path: Path) -> None:
    options = ApiOptions(key=SERVICE_KEY, port=0, most_bytes=100_000)
    async with serving(tmp_path, options) as service:
        stream = await anyio.connect_tcp("127.0.0.1", service.port)
        async with stream:
            head = f"POST {CHAT} HTTP/1.1\r\nhost: localhost\r\n"
            head += f"authorization: Bearer {SERVICE_KEY}\r\n"
            await stream.send(f"{head}transfer-encoding: chunked\r\n\r\n".encode())
            chunk = b"ffff\r\n" + b"x" * 0xFFFF + b"\r\n"
            with anyio.fail_after(5), pytest.raises(anyio.BrokenResourceError):
                await send_times(stream, chunk, 1000)
        assert (await request(service.port, "POST", CHAT, HELLO))[0] == 200


async def send_times(stream: anyio.abc.ByteStream, data: bytes, times: int) -> None:
    for _ in range(times):
        await stream.send(data)


async def test_a_page_of_another_host_or_origin_is_refused(tmp_path: Path) -> None:
    async with serving(tmp_path) as service:
        for headers in (
            {"host": "evil.example"},
            {"host": "evil.example:8642"},
            {"host": ""},
            {"origin": "https://evil.example"},
            {"origin": "null"},
        ):
            status, _, _ = await request(service.port, "POST", CHAT, HELLO, **headers)
            assert status == 403, headers
        assert service.model.stats.calls == 0


async def test_a_page_that_was_allowed_may_call(tmp_path: Path) -> None:
    page = "https://chat.example"
    options = ApiOptions(key=SERVICE_KEY, port=0, cors_origins=(page,))
    async with serving(tmp_path, options) as service:
        status, headers, _ = await request(service.port, "OPTIONS", CHAT, origin=page)
        assert status == 204
        assert "Idempotency-Key" in headers["access-control-allow-headers"]
        status, headers, _ = await request(service.port, "POST", CHAT, HELLO, origin=page)
        streamed = HELLO.replace(b"{", b'{"stream":true,', 1)
        _, on_stream, _ = await request(service.port, "POST", CHAT, streamed, origin=page)
    assert status == 200
    assert headers["access-control-allow-origin"] == page
    assert on_stream["access-control-allow-origin"] == page


async def test_every_response_carries_the_id_of_its_request(tmp_path: Path) -> None:
    streamed = HELLO.replace(b"{", b'{"stream":true,', 1)
    async with serving(tmp_path) as service:
        for method, path, body in (
            ("GET", "/health", b""),
            ("GET", "/nothing", b""),
            ("POST", CHAT, b"{"),
            ("POST", CHAT, HELLO),
            ("POST", CHAT, streamed),
        ):
            _, headers, _ = await request(service.port, method, path, body, x_request_id="r-7")
            assert headers["x-request-id"] == "r-7", (path, body)


async def test_while_the_disk_is_full_503_and_then_service_resumes_alone(tmp_path: Path) -> None:
    full = True

    async def before(name: str) -> None:
        if full and name == "Intake.take":
            raise StoreUnavailable("disk full")

    def wrap(store: Store) -> Store:
        return TroubledStore(store, before)

    parts = msgspec.structs.replace(PARTS, wrap_store=wrap)
    async with serving(tmp_path, parts=parts) as service:
        status, headers, body = await request(service.port, "POST", CHAT, HELLO)
        assert status == 503
        assert headers["retry-after"] == "5"
        assert msgspec.json.decode(body)["error"]["code"] == "store_unavailable"
        full = False
        status, _, _ = await request(service.port, "POST", CHAT, HELLO)
        assert status == 200


async def test_a_draining_gateway_is_not_ready(tmp_path: Path) -> None:
    async with serving(tmp_path) as service:
        await service.gateway.drain(0)
        status, _, body = await request(service.port, "GET", "/ready")
    assert status == 503
    assert "shutting down" in msgspec.json.decode(body)["reason"]


def test_a_port_that_is_taken_says_what_to_do() -> None:
    with bind("127.0.0.1", 0) as taken:
        with pytest.raises(ConfigError, match="API_SERVER_PORT"):
            bind("127.0.0.1", taken.getsockname()[1])
