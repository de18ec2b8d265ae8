"""Platforms deliver messages by webhook requests. These requests need no API key, but all other
middleware applies to them."""

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace
from starlette.types import ASGIApp

from hermes.entry.http.server import ApiOptions, build_app
from hermes.entry.http.webhooks import MOST_DELIVERIES
from hermes.testing.asgi import call, http_scope
from hermes.testing.platforms import ChatServer, PlainAdapter, Update, to_event
from hermes.testing.running import running, until
from hermes.testing.scripted import ScriptedModel, says
from hermes.types.errors import ConfigError
from hermes.types.identity import OWNER, Principal
from hermes.types.messages import Accepted, Receipt, Refused
from hermes.types.platforms import WebhookRequest, WebhookResponse, WebhookRoute
from hermes.types.protocols import Accept

PATH = "/webhooks/plain"
SECRET = "a-secret-of-the-platform"


async def receive(request: WebhookRequest, accept: Accept) -> WebhookResponse:
    if request.headers.get("x-secret") != SECRET:
        return WebhookResponse(status=403)
    update = Update(id=1, chat="1", user="7", text=request.body.decode())
    receipt = await accept(to_event(update, "plain"))
    assert isinstance(receipt, Accepted)
    return WebhookResponse(body=b"accepted")


class Delivered:
    """An API with a webhook, and the platform that shows the answers to the delivered messages."""

    def __init__(self, app: ASGIApp, server: ChatServer) -> None:
        self.app = app
        self.server = server


@pytest.fixture
async def delivered(tmp_path: Path) -> AsyncIterator[Delivered]:
    server, model = ChatServer(), ScriptedModel([says("hello")])
    async with running(tmp_path, [PlainAdapter(server)], model) as gateway:
        options = ApiOptions(key="0123456789abcdef", most_bytes=100)
        route = WebhookRoute(method="POST", path=PATH, handler=receive)
        yield Delivered(build_app(gateway, options, [route]), server)


async def test_a_delivered_message_is_answered_on_the_platform(delivered: Delivered) -> None:
    response = await call(delivered.app, http_scope("POST", PATH, x_secret=SECRET), [b"hi"])
    assert (response.status, response.body) == (200, b"accepted")
    await until(lambda: delivered.server.texts() == ["hello"])


async def test_a_request_is_refused_while_too_many_others_wait(tmp_path: Path) -> None:
    waiting, stored = 0, anyio.Event()

    async def wait(request: WebhookRequest, accept: Accept) -> WebhookResponse:
        nonlocal waiting
        waiting += 1
        await stored.wait()
        return WebhookResponse()

    async with running(tmp_path, [PlainAdapter(ChatServer())], ScriptedModel([])) as gateway:
        route = WebhookRoute(method="POST", path=PATH, handler=wait)
        app = build_app(gateway, ApiOptions(key="0123456789abcdef"), [route])
        async with anyio.create_task_group() as group:
            for _ in range(MOST_DELIVERIES):
                group.start_soon(call, app, http_scope("POST", PATH), [b"hi"])
            await until(lambda: waiting == MOST_DELIVERIES)
            refused = await call(app, http_scope("POST", PATH), [b"hi"])
            stored.set()
        accepted = await call(app, http_scope("POST", PATH), [b"hi"])
    assert (refused.status, refused.headers["retry-after"]) == (503, "1")
    assert (accepted.status, waiting) == (200, MOST_DELIVERIES + 1)


async def test_the_handler_verifies_its_requests_itself(delivered: Delivered) -> None:
    response = await call(delivered.app, http_scope("POST", PATH, x_secret="guess"), [b"hi"])
    assert response.status == 403


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("GET", {}, 405),
        ("POST", {"origin": "https://evil.example"}, 403),
        ("POST", {"content_length": "101"}, 413),
    ],
)
async def test_a_webhook_is_behind_the_other_middleware(
    delivered: Delivered, method: str, headers: dict[str, str], status: int
) -> None:
    scope = http_scope(method, PATH, x_secret=SECRET, **headers)
    assert (await call(delivered.app, scope, [b"hi"])).status == status


async def test_a_webhook_of_a_local_server_can_be_called_under_a_public_name(
    delivered: Delivered,
) -> None:
    scope = http_scope("POST", PATH, x_secret=SECRET, host="bot.example.org")
    assert (await call(delivered.app, scope, [b"hi"])).status == 200
    elsewhere = http_scope("GET", "/health", host="bot.example.org")
    assert (await call(delivered.app, elsewhere)).status == 403


@pytest.mark.parametrize(
    ("paths", "told"),
    [
        (["/webhooks/{name}"], "have no parameters"),
        (["webhooks"], "must begin with /"),
        (["/v1/models"], "in use already"),
        (["/v1/runs/run_1/events"], "in use already"),
        ([PATH, PATH], "in use already"),
    ],
)
async def test_a_webhook_has_a_path_of_its_own(tmp_path: Path, paths: list[str], told: str) -> None:
    routes = [WebhookRoute(method="POST", path=path, handler=receive) for path in paths]
    async with running(tmp_path, [], ScriptedModel([])) as gateway:
        with pytest.raises(ConfigError, match=told):
            build_app(gateway, ApiOptions(key="0123456789abcdef"), routes)


async def test_a_handler_can_not_claim_a_principal(tmp_path: Path) -> None:
    receipts: list[Receipt] = []

    async def claim(request: WebhookRequest, accept: Accept) -> WebhookResponse:
        event = to_event(Update(id=1, chat="1", user="7", text="hi"), "plain")
        principal = Principal(name="plain", person=OWNER)
        receipts.append(
            await accept(replace(event, origin=replace(event.origin, principal=principal)))
        )
        return WebhookResponse()

    async with running(tmp_path, [], ScriptedModel([])) as gateway:
        route = WebhookRoute(method="POST", path=PATH, handler=claim)
        app = build_app(gateway, ApiOptions(key="0123456789abcdef"), [route])
        await call(app, http_scope("POST", PATH), [b"hi"])
    assert receipts == [Refused(reason="not a valid event of a chat")]


async def test_a_webhook_opens_no_other_path(delivered: Delivered) -> None:
    response = await call(delivered.app, http_scope("POST", f"{PATH}/more"), [b"hi"])
    assert response.status == 401
