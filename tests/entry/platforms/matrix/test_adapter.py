"""The Matrix adapter fulfils the contract of all adapters. The tests run a real homeserver."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from hermes.entry.platforms.matrix.adapter import PAGE, MatrixAdapter
from hermes.entry.platforms.matrix.format import TEXT_LIMIT
from hermes.entry.platforms.matrix.manifest import MatrixAccount
from hermes.settings.sections import AccessSettings
from hermes.testing.adapters import (
    AdapterContract,
    FakePlatform,
    Listener,
    MemoryCursor,
    listening,
)
from hermes.testing.matrix import MatrixPlatform, matrix_platform, new_user
from hermes.testing.running import Conditions, held, running, until
from hermes.testing.samples import PNG
from hermes.testing.scripted import ScriptedModel, says
from hermes.text.markdown import parse
from hermes.types.errors import AuthFailed, Disconnected, RateLimited, Rejected
from hermes.types.identity import Target
from hermes.types.messages import (
    Accepted,
    Attachment,
    Content,
    Edited,
    Invited,
    MessageEvent,
    MessageRef,
    Receipt,
    Refused,
    Said,
    UserMessage,
)

PATIENCE = 20.0
"""Maximum number of seconds for which a test waits for an action of the adapter."""


class TestMatrix(AdapterContract):
    abilities = ("attachments", "deduplication", "typing")
    patience = PATIENCE

    @asynccontextmanager
    async def platform(self) -> AsyncIterator[FakePlatform]:
        async with matrix_platform() as platform:
            yield platform


class InvitedBy:
    """A listener that accepts invitations from one person only, and messages from everybody."""

    def __init__(self, person: str) -> None:
        self.heard: list[MessageEvent] = []
        self._person = person

    async def accept(self, event: MessageEvent) -> Receipt:
        self.heard.append(event)
        if isinstance(event.body, Invited) and event.source.user_id != self._person:
            return Refused(reason="not admitted")
        return Accepted(id=event.dedupe_key)

    @property
    def texts(self) -> list[str]:
        return [event.body.text for event in self.heard if isinstance(event.body, Said)]


@asynccontextmanager
async def hearing(
    platform: MatrixPlatform, listener: InvitedBy | Listener, cursor: MemoryCursor | None = None
) -> AsyncIterator[None]:
    """Runs the adapter until the block ends. Unlike `listening`, this function also accepts events
    from other rooms than `platform.room`."""
    adapter = MatrixAdapter("matrix", platform.credentials)
    async with anyio.create_task_group() as group:
        start = cursor or MemoryCursor(platform.start)
        group.start_soon(adapter.run, listener.accept, lambda: None, start)
        yield
        group.cancel_scope.cancel()


def heard(listener: Listener, text: str) -> bool:
    return text in listener.texts()


def plain(text: str) -> Content:
    return Content(text=MatrixAdapter.render(parse(text)))


async def test_all_messages_of_several_pages_are_reported_in_order_and_older_messages_are_not() -> (
    None
):
    count = 2 * PAGE + 10
    async with matrix_platform() as platform:
        platform.says("old")
        cursor = MemoryCursor(platform.bot.token_now())
        for number in range(count):
            platform.says(str(number))
        async with listening(platform, cursor=cursor) as listener:
            await until(lambda: len(listener.heard) >= count, PATIENCE)
            platform.says("last")
            await until(lambda: "last" in listener.texts(), PATIENCE)
    assert listener.texts() == [*map(str, range(count)), "last"]


async def test_at_the_first_connection_the_history_is_not_reported() -> None:
    async with matrix_platform() as platform:
        platform.says("old")
        cursor = MemoryCursor()
        async with listening(platform, cursor=cursor) as listener:
            await until(lambda: cursor.value, PATIENCE)
            platform.says("new")
            await until(lambda: listener.heard, PATIENCE)
    assert listener.texts() == ["new"]


async def test_an_adapter_is_connected_after_an_answer_of_the_homeserver() -> None:
    async with matrix_platform() as platform:
        await platform.adapter.send(platform.target, plain("hello"), "k1")
        platform.fail(Disconnected("the homeserver is down"))
        ready = anyio.Event()
        with pytest.raises(Disconnected):
            await platform.adapter.run(Listener().accept, ready.set, MemoryCursor())
        assert not ready.is_set()


async def test_the_token_is_saved_after_the_message_was_accepted() -> None:
    async with matrix_platform() as platform:
        cursor, saved = MemoryCursor(platform.start), list[str | None]()

        async def accept(event: MessageEvent) -> Receipt:
            saved.append(cursor.value)
            return Accepted(id=event.dedupe_key)

        async with anyio.create_task_group() as group:
            group.start_soon(platform.adapter.run, accept, lambda: None, cursor)
            platform.says("one")
            await until(lambda: cursor.value != platform.start, PATIENCE)
            group.cancel_scope.cancel()
    assert saved == [platform.start]


async def test_an_invitation_is_accepted_only_from_people_who_are_admitted() -> None:
    async with matrix_platform() as platform:
        stranger = new_user(platform.server, "eve")
        listener = InvitedBy(platform.person.id)
        refused = stranger.create_room(platform.bot)
        wanted = platform.person.create_room(platform.bot)
        platform.person.say(wanted, "before you came")
        async with hearing(platform, listener):
            await until(lambda: listener.texts, PATIENCE)
        members = platform.person.call("GET", "rooms", wanted, "joined_members")["joined"]
        assert platform.bot.id in members
        assert platform.bot.id not in stranger.call("GET", "rooms", refused, "joined_members")
        states = stranger.call("GET", "rooms", refused, "state", "m.room.member", platform.bot.id)
        assert states["membership"] == "invite"
    assert listener.texts == ["before you came"]
    asked = {one.source.user_id for one in listener.heard if isinstance(one.body, Invited)}
    assert asked == {stranger.id, platform.person.id}


async def test_messages_that_are_older_than_the_invitation_are_not_reported() -> None:
    async with matrix_platform() as platform:
        room = platform.person.create_room(preset="public_chat")
        platform.person.say(room, "long ago")
        platform.person.call("POST", "rooms", room, "invite", body={"user_id": platform.bot.id})
        platform.person.say(room, "welcome")
        listener = InvitedBy(platform.person.id)
        async with hearing(platform, listener):
            await until(lambda: listener.texts, PATIENCE)
    assert listener.texts == ["welcome"]


async def test_a_room_that_can_not_be_joined_does_not_block_the_others() -> None:
    async with matrix_platform() as platform:
        room = platform.person.create_room(platform.bot)
        platform.person.call("POST", "rooms", room, "kick", body={"user_id": platform.bot.id})
        gone = platform.person.create_room(platform.bot)
        listener = InvitedBy(platform.person.id)

        async def accept(event: MessageEvent) -> Receipt:
            if isinstance(event.body, Invited):
                kicked = {"user_id": platform.bot.id}
                platform.person.call("POST", "rooms", gone, "kick", body=kicked)
            return await listener.accept(event)

        async with anyio.create_task_group() as group:
            cursor = MemoryCursor(platform.start)
            group.start_soon(platform.adapter.run, accept, lambda: None, cursor)
            platform.says("hello")
            await until(lambda: listener.texts, PATIENCE)
            group.cancel_scope.cancel()
    assert listener.texts == ["hello"]


async def test_an_encrypted_room_is_told_once_that_it_can_not_be_read(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    async with matrix_platform() as platform:
        room, person = platform.person.create_room(platform.bot), platform.person
        platform.bot.join(room)
        person.set_state(room, "m.room.encryption", {"algorithm": "m.megolm.v1.aes-sha2"})
        secret = {"algorithm": "m.megolm.v1.aes-sha2", "ciphertext": "x", "session_id": "s"}
        cursor = MemoryCursor(platform.start)
        for number in range(2):
            listener = Listener()
            async with hearing(platform, listener, cursor):
                person.send(room, "m.room.encrypted", secret)
                person.say(room, "not encrypted")
                platform.says(f"plain {number}")
                await until(partial(heard, listener, f"plain {number}"), PATIENCE)
            assert "not encrypted" not in listener.texts()
        (notice,) = person.messages(room, platform.bot)
    assert notice["msgtype"] == "m.notice"
    assert "encrypted" in notice["body"]
    assert sum("is encrypted" in record.message for record in caplog.records) == 1


async def test_a_room_that_we_had_to_leave_does_not_block_the_others() -> None:
    async with matrix_platform() as platform:
        room, person = platform.person.create_room(platform.bot), platform.person
        platform.bot.join(room)
        start = MemoryCursor(platform.bot.token_now())
        person.say(room, "hello")
        person.call("POST", "rooms", room, "kick", body={"user_id": platform.bot.id})
        platform.says("hello here")
        listener = Listener()
        async with hearing(platform, listener, start):
            await until(lambda: "hello here" in listener.texts(), PATIENCE)


async def test_threads_and_edits_are_reported() -> None:
    async with matrix_platform() as platform:
        listener, person, room = Listener(), platform.person, platform.room
        root = person.say(room, "root")
        thread = {"rel_type": "m.thread", "event_id": root}
        said = person.say(room, "in the thread", **{"m.relates_to": thread})
        replacement = {"rel_type": "m.replace", "event_id": said}
        new = {"msgtype": "m.text", "body": "changed"}
        fields = {"m.relates_to": replacement, "m.new_content": new}
        person.say(room, "* changed", **fields)
        other = new_user(platform.server, "eve")
        person.call("POST", "rooms", room, "invite", body={"user_id": other.id})
        other.join(room)
        other.say(room, "* forged", **fields)
        person.say(room, "end", **{"m.relates_to": thread})
        async with hearing(platform, listener):
            await until(lambda: "end" in listener.texts(), PATIENCE)
    first, second, edit, last = listener.heard
    assert [one.source.thread_id for one in listener.heard] == [None, root, root, root]
    assert edit.body == Edited(message_id=said, text="changed")
    assert len({first.dedupe_key, second.dedupe_key, edit.dedupe_key, last.dedupe_key}) == 4
    assert last.origin.reply_to == Target(account="matrix", chat_id=room, thread_id=root)


async def test_in_a_room_of_three_members_only_some_messages_are_addressed_to_us() -> None:
    async with matrix_platform() as platform:
        person, other, room = platform.person, new_user(platform.server, "bob"), platform.room
        person.set_state(room, "m.room.name", {"name": "Team"})
        person.call("POST", "rooms", room, "invite", body={"user_id": other.id})
        platform.bot.call(
            "PUT", "profile", platform.bot.id, "displayname", body={"displayname": "Her Mes"}
        )
        other.join(room)
        ours = await platform.adapter.send(platform.target, plain("ours"), "k1")
        answered = {"m.in_reply_to": {"event_id": ours.id}}
        person.say(room, "hello all")
        person.say(room, "hey her mes, hello")
        person.say(room, "yes", **{"m.relates_to": answered})
        person.say(room, "you", **{"m.mentions": {"user_ids": [platform.bot.id]}})
        listener = Listener()
        async with hearing(platform, listener):
            await until(lambda: len(listener.heard) == 4, PATIENCE)
    assert [one.addressed for one in listener.heard] == [False, True, True, True]
    source = listener.heard[0].source
    assert (source.chat_kind, source.chat_name) == ("group", "Team")
    assert source.user_name == person.id.split(":")[0][1:]


async def test_a_room_that_the_account_marks_as_direct_is_direct() -> None:
    async with matrix_platform() as platform:
        person, other, room = platform.person, new_user(platform.server, "bob"), platform.room
        person.call("POST", "rooms", room, "invite", body={"user_id": other.id})
        other.join(room)
        direct = ("user", platform.bot.id, "account_data", "m.direct")
        platform.bot.call("PUT", *direct, body={person.id: [room]})
        async with listening(platform) as listener:
            platform.says("hello")
            await until(lambda: listener.heard, PATIENCE)
    assert listener.heard[0].source.chat_kind == "private"


async def test_only_accepted_messages_are_marked_as_read() -> None:
    async with matrix_platform() as platform:
        first, refused = platform.person.say(platform.room, "one"), "two"

        async def accept(event: MessageEvent) -> Receipt:
            assert isinstance(event.body, Said)
            if event.body.text == refused:
                return Refused(reason="not admitted")
            return Accepted(id=event.dedupe_key)

        cursor = MemoryCursor(platform.start)
        async with anyio.create_task_group() as group:
            group.start_soon(platform.adapter.run, accept, lambda: None, cursor)
            await until(lambda: cursor.value != platform.start, PATIENCE)
            before = cursor.value
            platform.says(refused)
            await until(lambda: cursor.value != before, PATIENCE)
            group.cancel_scope.cancel()
        rooms = platform.person.call("GET", "sync", timeout="0")["rooms"]["join"]
        ephemeral = rooms[platform.room]["ephemeral"]["events"]
    (receipts,) = (one["content"] for one in ephemeral if one["type"] == "m.receipt")
    read = [event for event, by in receipts.items() if platform.bot.id in by["m.read"]]
    assert read == [first]
    assert platform.proxy.requests["receipt"] == 1


async def test_a_received_file_can_be_fetched() -> None:
    async with matrix_platform() as platform:
        person = platform.person
        fields = {
            "msgtype": "m.image",
            "url": person.upload(PNG),
            "filename": "cat.png",
            "info": {"mimetype": "image/png", "size": len(PNG)},
        }
        person.say(platform.room, "look at this", **fields)
        async with listening(platform) as listener:
            await until(lambda: listener.heard, PATIENCE)
        body = listener.heard[0].body
        assert isinstance(body, Said)
        assert body.text == "look at this"
        (file,) = body.attachments
        assert (file.kind, file.name, file.media_type) == ("image", "cat.png", "image/png")
        assert await platform.adapter.fetch(file) == PNG
        for wrong in ("mxc://localhost/none", "mxc://../../../v3/sync", "https://x.y/z"):
            with pytest.raises(Rejected):
                await platform.adapter.fetch(replace(file, path=wrong))


async def test_a_message_has_a_plain_and_a_formatted_body() -> None:
    async with matrix_platform() as platform:
        await platform.adapter.send(platform.target, plain("a **b** < c"), "k1")
        await platform.adapter.send(platform.target, plain("plain"), "k2")
        rich, simple = platform.person.messages(platform.room, platform.bot)
    assert (rich["msgtype"], rich["body"]) == ("m.text", "a b < c")
    assert rich["format"] == "org.matrix.custom.html"
    assert rich["formatted_body"] == "a <strong>b</strong> &lt; c"
    assert "formatted_body" not in simple


async def test_an_answer_in_a_thread_stays_in_the_thread() -> None:
    async with matrix_platform() as platform:
        root = platform.person.say(platform.room, "root")
        target = replace(platform.target, thread_id=root)
        ref = await platform.adapter.send(target, plain("a"), "k1")
        await platform.adapter.edit(target, ref, plain("b"))
        events = {one["event_id"]: one for one in platform.person.events(platform.room)}
        relation = events[ref.id]["content"]["m.relates_to"]
        assert (relation["rel_type"], relation["event_id"]) == ("m.thread", root)
        assert platform.texts() == ["b"]


async def test_the_longest_text_can_also_be_edited() -> None:
    async with matrix_platform() as platform:
        text = "*" + "é" * (TEXT_LIMIT // 4 - 60) + "*"
        ref = await platform.adapter.send(platform.target, plain("draft"), "k1")
        assert TEXT_LIMIT - 200 < platform.adapter.measure(plain(text).text) <= TEXT_LIMIT
        await platform.adapter.edit(platform.target, ref, plain(text))
        assert platform.texts() == [text.strip("*")]
        await platform.adapter.edit(platform.target, ref, plain("draft"))
        await platform.adapter.edit(platform.target, ref, plain(text))
        assert platform.texts() == [text.strip("*")]


async def test_a_file_is_sent_with_its_caption(tmp_path: Path) -> None:
    path = tmp_path / "cat.png"
    path.write_bytes(PNG)
    async with matrix_platform() as platform:
        file = Attachment(kind="image", path=str(path), media_type="image/png")
        content = replace(plain("*my* cat"), attachments=(file,))
        await platform.adapter.send(platform.target, content, "k1")
        (sent,) = platform.person.messages(platform.room, platform.bot)
        assert (sent["msgtype"], sent["body"], sent["filename"]) == ("m.image", "my cat", "cat.png")
        assert sent["formatted_body"] == "<em>my</em> cat"
        assert sent["info"] == {"mimetype": "image/png", "size": len(PNG)}
        assert await platform.adapter.fetch(replace(file, path=sent["url"])) == PNG
        missing = replace(file, path=str(tmp_path / "no"))
        with pytest.raises(Rejected, match="can't be read"):
            await platform.adapter.send(
                platform.target, Content(text="", attachments=(missing,)), "k2"
            )


async def test_after_a_new_login_a_message_with_a_known_key_is_not_sent_again() -> None:
    async with matrix_platform() as platform:
        name = platform.bot.id.split(":")[0][1:]
        login = MatrixAccount(homeserver=platform.proxy.url, user=platform.bot.id, password=name)
        refs = list[MessageRef]()
        for _ in range(2):
            adapter = MatrixAdapter("matrix", login)
            refs.append(await adapter.send(platform.target, plain("hello"), "k1"))
        assert refs[0] == refs[1]
        assert platform.texts() == ["hello"]
        assert platform.proxy.requests["login"] == 2


async def test_an_expired_login_is_renewed() -> None:
    async with matrix_platform() as platform:
        name = platform.bot.id.split(":")[0][1:]
        login = MatrixAccount(homeserver=platform.proxy.url, user=name, password=name)
        adapter = MatrixAdapter("matrix", login)
        await adapter.send(platform.target, plain("one"), "k1")
        platform.bot.call("POST", "logout", "all", body={})
        with pytest.raises(Disconnected, match="the login has ended"):
            await adapter.send(platform.target, plain("two"), "k2")
        await adapter.send(platform.target, plain("two"), "k2")
        assert platform.texts() == ["one", "two"]


@pytest.mark.parametrize("credentials", [{"access_token": "wrong"}, {"password": "wrong"}])
async def test_wrong_credentials_are_reported(credentials: dict[str, str]) -> None:
    async with matrix_platform() as platform:
        account = MatrixAccount(homeserver=platform.proxy.url, user=platform.bot.id, **credentials)
        adapter = MatrixAdapter("matrix", account)
        with pytest.raises(AuthFailed) as caught:
            await adapter.run(Listener().accept, lambda: None, MemoryCursor())
        assert "wrong" not in str(caught.value)


async def test_a_rate_limit_of_the_homeserver_says_how_long_to_wait() -> None:
    async with matrix_platform() as platform:
        admin = platform.server.register(
            f"admin-of-{platform.bot.id[1:].split(':')[0]}", admin=True
        )
        limit = {"messages_per_second": 1, "burst_count": 1}
        path = f"/_synapse/admin/v1/users/{platform.bot.id}/override_ratelimit"
        platform.server.call("POST", path, limit, admin.token)
        target = platform.target

        async def chat() -> None:
            for number in range(20):
                await platform.adapter.send(target, plain("hello"), f"k{number}")

        with pytest.raises(RateLimited) as caught:
            await chat()
    assert caught.value.retry_after is not None
    assert 0 < caught.value.retry_after < 5


async def test_without_a_homeserver_a_call_fails_as_disconnected() -> None:
    account = MatrixAccount(homeserver="http://127.0.0.1:9", access_token="t")
    target = Target(account="matrix", chat_id="!r:localhost")
    with pytest.raises(Disconnected, match="ClientConnectorError"):
        await MatrixAdapter("matrix", account).send(target, plain("hello"), "k1")


async def test_a_message_is_answered_by_a_preview_that_grows_into_the_answer(
    tmp_path: Path,
) -> None:
    done = anyio.Event()
    model = ScriptedModel([held(done, says("The *whole* answer is 42."), "The *whole* answer is")])
    async with matrix_platform() as platform, running(tmp_path, [platform.adapter], model):
        await until(lambda: platform.proxy.requests["sync"] > 1, PATIENCE)
        platform.says("what is the answer?")
        await platform.until_texts(lambda texts: texts)
        done.set()
        await platform.until_texts(lambda texts: texts == ["The whole answer is 42."])
        (message,) = platform.person.messages(platform.room, platform.bot)
        assert message["formatted_body"] == "The <em>whole</em> answer is 42."
        assert platform.proxy.requests["typing"] > 0


async def test_fifty_messages_that_waited_while_the_gateway_was_down_are_answered_in_order(
    tmp_path: Path,
) -> None:
    count = 50
    async with matrix_platform() as platform:
        first = ScriptedModel([says("hello!")])
        async with running(tmp_path, [platform.adapter], first):
            await until(lambda: platform.proxy.requests["sync"] > 1, PATIENCE)
            platform.says("hello")
            await platform.until_texts(lambda texts: texts == ["hello!"])
        for number in range(count):
            platform.says(str(number))
        model = ScriptedModel([says(f"{number}!") for number in range(count)])
        async with running(tmp_path, [platform.adapter], model):
            await platform.until_texts(lambda texts: f"{count - 1}!" in texts, 90, most=5)
        answers = [text for text in platform.texts() if text.endswith("!")]
    assert answers == ["hello!", *(f"{number}!" for number in range(count))]
    asked = [request.messages[-1] for request in model.requests]
    assert [one.text for one in asked if isinstance(one, UserMessage)] == [
        str(number) for number in range(count)
    ]


async def test_a_long_answer_is_continued_in_the_next_message(tmp_path: Path) -> None:
    words = [f"word{number}" for number in range(8000)]
    model = ScriptedModel([says("**" + " ".join(words) + "**")])
    async with matrix_platform() as platform, running(tmp_path, [platform.adapter], model):
        await until(lambda: platform.proxy.requests["sync"] > 1, PATIENCE)
        platform.says("tell me everything")
        await platform.until_texts(lambda texts: " ".join(texts).split() == words)
        assert len(platform.texts()) > 1


async def test_a_photo_reaches_the_model(tmp_path: Path) -> None:
    model = ScriptedModel([says("A nice picture.")])
    async with matrix_platform() as platform, running(tmp_path, [platform.adapter], model):
        await until(lambda: platform.proxy.requests["sync"] > 1, PATIENCE)
        person = platform.person
        person.say(platform.room, "cat.png", msgtype="m.image", url=person.upload(PNG))
        await platform.until_texts(lambda texts: texts == ["A nice picture."])
    message = model.requests[0].messages[-1]
    assert isinstance(message, UserMessage)
    assert [(file.kind, file.name) for file in message.attachments] == [("image", "cat.png")]


async def test_the_gateway_decides_whose_invitations_are_accepted(tmp_path: Path) -> None:
    async with matrix_platform() as platform:
        stranger, person = new_user(platform.server, "eve"), platform.person
        access = AccessSettings(allowed_users=(person.id,))
        refused, wanted = stranger.create_room(platform.bot), person.create_room(platform.bot)
        model = ScriptedModel([says("hello!")])
        conditions = Conditions(access=access)
        async with running(tmp_path, [platform.adapter], model, conditions):
            await until(lambda: platform.proxy.requests["sync"] > 1, PATIENCE)
            person.say(wanted, "hello")
            await until(lambda: platform.proxy.sent, PATIENCE)
            joined = platform.bot.call("GET", "joined_rooms")["joined_rooms"]
    assert wanted in joined
    assert refused not in joined


async def test_a_stranger_who_invites_to_a_private_chat_is_offered_pairing(tmp_path: Path) -> None:
    async with matrix_platform() as platform:
        stranger = new_user(platform.server, "eve")
        group = stranger.create_room(platform.bot)
        chat = stranger.create_room(platform.bot, is_direct=True)
        conditions = Conditions(access=AccessSettings())
        async with running(tmp_path, [platform.adapter], ScriptedModel([]), conditions):
            stranger.say(chat, "hello")
            await until(lambda: platform.proxy.sent, PATIENCE)
            joined = platform.bot.call("GET", "joined_rooms")["joined_rooms"]
        (text,) = stranger.texts(chat, platform.bot)
    assert chat in joined
    assert group not in joined
    assert "hermes pairing approve matrix" in text


async def test_two_accounts_of_one_gateway_do_not_answer_each_other(tmp_path: Path) -> None:
    async with matrix_platform() as platform:
        second = new_user(platform.server, "second")
        account = replace(platform.credentials, access_token=second.token)
        other = MatrixAdapter("matrix.second", account)
        model = ScriptedModel([says("hello!")])
        async with running(tmp_path, [platform.adapter, other], model) as gateway:
            room = second.create_room(platform.bot)
            platform.bot.join(room)
            await until(lambda: ("matrix", second.id) in gateway.accounts._own_users, PATIENCE)
            second.say(room, "Is anybody here?")
            platform.says("hello")
            await until(lambda: platform.proxy.sent, PATIENCE)
        assert second.texts(room, platform.bot) == []
    assert len(model.requests) == 1
