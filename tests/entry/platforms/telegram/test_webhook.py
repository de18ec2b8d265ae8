"""A webhook accepts only requests with the secret, and reports the same events as a poll."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import msgspec
import pytest

from hermes.entry.http.server import ApiOptions, build_app
from hermes.entry.platforms.telegram.adapter import TelegramAdapter
from hermes.entry.platforms.telegram.manifest import TelegramConfig
from hermes.entry.platforms.telegram.webhook import SECRET_HEADER, webhook_route
from hermes.testing.adapters import Listener
from hermes.testing.asgi import call, http_scope
from hermes.testing.running import held, running, until
from hermes.testing.samples import PNG
from hermes.testing.scripted import ScriptedModel, says
from hermes.testing.telegram import BotApiServer
from hermes.types.errors import Disconnected
from hermes.types.messages import Attachment, UserMessage
from hermes.types.platforms import WebhookRequest, WebhookRoute

TOKEN = "100:secret-token"
MESSAGE = {
    "message_id": 9,
    "date": 1,
    "chat": {"id": 7, "type": "private"},
    "from": {"id": 7, "is_bot": False, "first_name": "Ann"},
    "text": "hello",
}
UPDATE = {"update_id": 1, "message": MESSAGE}


def request(body: object, secret: str = "s3cret") -> WebhookRequest:
    return WebhookRequest(headers={SECRET_HEADER: secret}, query={}, body=msgspec.json.encode(body))


@asynccontextmanager
async def route() -> AsyncIterator[tuple[BotApiServer, WebhookRoute]]:
    async with BotApiServer().running() as server:
        server.add_bot(TOKEN, "our_bot")
        config = TelegramConfig(
            token=TOKEN,
            base_url=server.url,
            webhook_url="https://bot.example/hook",
            webhook_secret="s3cret",
        )
        yield server, webhook_route("telegram", config)


async def test_an_update_with_the_secret_is_reported() -> None:
    listener = Listener()
    async with route() as (_, found):
        response = await found.handler(request(UPDATE), listener.accept)
    assert (found.method, found.path, response.status) == ("POST", "/hook", 200)
    (event,) = listener.heard
    assert event.dedupe_key == "telegram:7:9"
    assert event.origin.bot == "our_bot"
    assert listener.texts() == ["hello"]


async def test_a_request_without_the_secret_is_refused() -> None:
    listener = Listener()
    async with route() as (_, found):
        for secret in ("", "wrong", "s3cre", "s3cret2", "é"):
            response = await found.handler(request(UPDATE, secret), listener.accept)
            assert response.status == 401
        bare = WebhookRequest(headers={}, query={}, body=msgspec.json.encode(UPDATE))
        assert (await found.handler(bare, listener.accept)).status == 401
    assert listener.heard == []


async def test_an_update_that_can_not_be_read_is_not_delivered_again() -> None:
    listener = Listener()
    async with route() as (_, found):
        response = await found.handler(request({"update_id": "x"}), listener.accept)
    assert (response.status, listener.heard) == (200, [])


async def test_an_update_that_was_not_accepted_is_not_acknowledged() -> None:
    listener = Listener()
    listener.refusing = True
    async with route() as (_, found):
        with pytest.raises(Disconnected):
            await found.handler(request(UPDATE), listener.accept)
        listener.refusing = False
        await found.handler(request(UPDATE), listener.accept)
    assert listener.texts() == ["hello"]


async def test_files_of_a_webhook_are_downloaded() -> None:
    async with route() as (server, found):
        server.files["f"] = b"content"
        assert found.fetch is not None
        assert await found.fetch(Attachment(kind="file", path="f")) == b"content"


async def test_a_photo_that_is_delivered_by_webhook_reaches_the_model(tmp_path: Path) -> None:
    photo = {**MESSAGE, "text": "", "caption": "look", "photo": [{"file_id": "p"}]}
    body = msgspec.json.encode({"update_id": 1, "message": photo})
    model = ScriptedModel([says("A picture.")])
    async with route() as (server, found):
        server.add_chat(7)
        server.files["p"] = PNG
        adapter = TelegramAdapter("telegram", TelegramConfig(token=TOKEN, base_url=server.url))
        async with running(tmp_path, [adapter], model) as gateway:
            app = build_app(gateway, ApiOptions(key="0123456789abcdef"), [found])
            scope = http_scope("POST", "/hook", x_telegram_bot_api_secret_token="s3cret")
            assert (await call(app, scope, [body])).status == 200
            await until(lambda: server.texts(7) == ["A picture."])
    message = model.requests[0].messages[-1]
    assert isinstance(message, UserMessage)
    assert [file.kind for file in message.attachments] == ["image"]


async def test_an_album_that_is_delivered_by_webhook_is_one_message(tmp_path: Path) -> None:
    group = {"id": -5, "type": "group", "title": "Team"}
    mention = [{"type": "mention", "offset": 0, "length": 8}]
    first = {"caption": "@our_bot look", "caption_entities": mention}
    model = ScriptedModel([held(anyio.Event(), says("never")), says("Two pictures.")])
    async with route() as (server, found):
        server.add_chat(-5, "group")
        server.files |= {"p1": PNG, "p2": PNG}
        adapter = TelegramAdapter("telegram", TelegramConfig(token=TOKEN, base_url=server.url))
        async with running(tmp_path, [adapter], model) as gateway:
            app = build_app(gateway, ApiOptions(key="0123456789abcdef"), [found])
            scope = http_scope("POST", "/hook", x_telegram_bot_api_secret_token="s3cret")
            plain = {**MESSAGE, "chat": group, "text": ""}
            work = {**plain, "message_id": 8, "text": "/queue work"}
            sent = [
                work,
                *(
                    {**plain, "message_id": 8 + n, "media_group_id": "a", "photo": [{"file_id": f}]}
                    for n, f in ((1, "p1"), (2, "p2"))
                ),
            ]
            sent[1] |= first
            for number, message in enumerate(sent, 1):
                body = msgspec.json.encode({"update_id": number, "message": message})
                assert (await call(app, scope, [body])).status == 200
            # The first turn runs until both pictures of the album have arrived. This command stops
            # it, so the test needs no pause.
            stop = {**plain, "message_id": 20, "text": "/stop"}
            body = msgspec.json.encode({"update_id": 9, "message": stop})
            await call(app, scope, [body])
            await until(lambda: "Two pictures." in server.texts(-5))
    last = model.requests[-1].messages[-1]
    assert isinstance(last, UserMessage)
    assert last.text == "@our_bot look"
    assert len(last.attachments) == 2
