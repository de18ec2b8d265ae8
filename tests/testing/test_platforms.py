"""The fake platforms behave like real platforms."""

import pytest

from hermes.testing.platforms import ChatServer, EditingAdapter, fake_platform
from hermes.types.errors import Rejected
from hermes.types.messages import Attachment, Content

HELLO = Content(text="hello")


async def test_the_fake_server_refuses_the_same_messages_as_real_servers() -> None:
    server = ChatServer()
    message = await server.send("1", HELLO, "k1")
    for text in ("", " ", "x" * 5000):
        with pytest.raises(Rejected):
            await server.send("1", Content(text=text), "k2")
    with pytest.raises(Rejected, match="not modified"):
        await server.edit(message, HELLO)
    with pytest.raises(Rejected, match="no message"):
        await server.edit("m99", HELLO)


async def test_a_file_needs_no_text() -> None:
    server = ChatServer()
    file = Attachment(kind="file", path="/tmp/a.txt")
    await server.send("1", Content(text="", attachments=(file,)), "k1")
    assert server.messages["m1"].content.attachments == (file,)


async def test_a_server_that_deduplicates_shows_a_key_once() -> None:
    for deduplicates, shown in ((False, ["hello", "hello"]), (True, ["hello"])):
        server = ChatServer(deduplicates=deduplicates)
        for _ in range(2):
            await server.send("1", HELLO, "k1")
        assert server.texts() == shown
        assert server.keys == ["k1", "k1"]


async def test_our_own_messages_are_returned_as_updates() -> None:
    server = ChatServer()
    server.says("hi")
    await server.send("1", HELLO, "k1")
    batch = await server.updates("0")
    assert [(update.user, update.text) for update in batch.updates] == [
        ("7", "hi"),
        ("bot", "hello"),
    ]
    assert (batch.token, server.echoed) == ("2", 1)


def test_a_fake_platform_has_an_account_for_each_token() -> None:
    platform = fake_platform("chat", ChatServer(), EditingAdapter)
    assert platform.accounts(platform.config()) == []
    config = platform.config(token="a", accounts={"support": "b"})
    assert platform.accounts(config) == ["chat", "chat.support"]
    adapter = platform.make("chat.support", config)
    assert isinstance(adapter, EditingAdapter)
    assert adapter.account == "chat.support"
