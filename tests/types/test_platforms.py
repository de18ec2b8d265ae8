"""The manifest and the webhook routes of a platform need no SDK and no web framework."""

from hermes.testing.adapters import Listener
from hermes.testing.platforms import ChatServer, FakeConfig, PlainAdapter, Update, to_event
from hermes.types.platforms import (
    Platform,
    WebhookHandler,
    WebhookRequest,
    WebhookResponse,
    WebhookRoute,
)
from hermes.types.protocols import Accept


def receiver(secret: str) -> WebhookHandler:
    async def receive(request: WebhookRequest, accept: Accept) -> WebhookResponse:
        if request.headers.get("x-secret") != secret:
            return WebhookResponse(status=403)
        update = Update(id=1, chat=request.query["chat"], user="7", text=request.body.decode())
        await accept(to_event(update, "push"))
        return WebhookResponse(body=b"ok")

    return receive


PUSH = Platform(
    name="push",
    config=FakeConfig,
    accounts=lambda config: ["push"],
    make=lambda account, config: PlainAdapter(ChatServer(), account),
    routes=lambda config: [
        WebhookRoute(method="POST", path="/push", handler=receiver(config.token))
    ],
)


async def test_a_route_verifies_a_request_accepts_its_message_and_responds() -> None:
    (route,) = PUSH.routes(FakeConfig(token="s3cret"))
    listener = Listener()
    query, body = {"chat": "1"}, b"hello"
    wrong = WebhookRequest(headers={"x-secret": "?"}, query=query, body=body)
    assert (await route.handler(wrong, listener.accept)).status == 403
    right = WebhookRequest(headers={"x-secret": "s3cret"}, query=query, body=body)
    assert await route.handler(right, listener.accept) == WebhookResponse(body=b"ok")
    assert listener.texts() == ["hello"]


def test_most_platforms_need_no_routes() -> None:
    plain = Platform(
        name="plain",
        config=FakeConfig,
        accounts=lambda config: [],
        make=lambda account, config: PlainAdapter(ChatServer()),
    )
    assert plain.routes(FakeConfig()) == ()
    assert (plain.extra, plain.quality) == ("", "bronze")
