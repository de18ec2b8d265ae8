"""A stranger is paired with a code that the stranger shows to the operator, or with a code that an
admin has given to the stranger."""

import logging
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from hermes.control import pairing
from hermes.control.gateway import Gateway
from hermes.control.pairing import PairingLocked, WrongCode, hash_code, new_code, parse_code
from hermes.settings.sections import AccessSettings
from hermes.testing.platforms import ChatServer, PlainAdapter, Update, to_event
from hermes.testing.running import QUIET, rows, running, until
from hermes.testing.scripted import ScriptedModel, says
from hermes.types.identity import OWNER, Principal
from hermes.types.messages import Accepted, Invited, MessageEvent, Refused, Said
from hermes.types.people import Role

STRANGERS = replace(QUIET, access=AccessSettings(admins=("plain:1",)))
CODE = re.compile(rf"\b[{pairing.ALPHABET}]{{8}}\b")


def message(text: str, user: str = "7", number: int = 1) -> MessageEvent:
    return to_event(Update(id=number, chat=user, user=user, text=text, name=f"N{user}"), "plain")


def codes_in(text: str) -> set[str]:
    found: list[str] = CODE.findall(text)
    return set(found)


def shown_code(server: ChatServer, chat: str) -> str:
    (code,) = codes_in(server.texts(chat)[-1])
    return code


@asynccontextmanager
async def gateway_with_chat(
    home: Path, *answers: str, access: AccessSettings = STRANGERS.access
) -> AsyncIterator[tuple[Gateway, ChatServer]]:
    server = ChatServer()
    adapter = PlainAdapter(server)
    model = ScriptedModel([says(text) for text in answers])
    async with running(home, [adapter], model, replace(STRANGERS, access=access)) as gateway:
        await until(lambda: adapter.connections)
        yield gateway, server


async def approve(gateway: Gateway, code: str, *, has_owner: bool = False) -> Role | None:
    await pairing.find_request(gateway._store, "plain", code)
    digest = hash_code("plain", code)
    return await gateway._store.run(
        pairing.approve, digest, "plain", time.time(), has_owner=has_owner
    )


def test_a_typed_code_is_recognised_in_any_form() -> None:
    code = new_code()
    assert parse_code(f" {code[:4].lower()}-{code[4:]} ") == code
    assert parse_code("hello") is None
    assert parse_code(code + "2") is None
    assert len({new_code() for _ in range(100)}) == 100
    assert hash_code("a", code) != hash_code("b", code)


async def test_a_stranger_gets_a_code_and_is_answered_after_approval(tmp_path: Path) -> None:
    async with gateway_with_chat(tmp_path, "Hello Ann.") as (gateway, server):
        server.says("hi", chat="7", name="Ann")
        await until(lambda: server.texts("7"))
        code = shown_code(server, "7")
        assert f"hermes pairing approve plain {code}" in server.texts("7")[0]
        request = await pairing.find_request(gateway._store, "plain", code.lower())
        assert request.described == "user 7 of plain, named “Ann”"
        assert await approve(gateway, code) is Role.OWNER
        gateway.notice_change()
        await until(lambda: server.texts("7")[-1] == pairing.WELCOME)
        server.says("hi again", chat="7", name="Ann")
        await until(lambda: server.texts("7")[-1] == "Hello Ann.")
        with pytest.raises(WrongCode):
            await pairing.find_request(gateway._store, "plain", code)


async def test_only_the_first_approved_user_becomes_an_owner(tmp_path: Path) -> None:
    async with gateway_with_chat(tmp_path) as (gateway, server):
        for user, has_owner, role in (
            ("5", True, Role.USER),
            ("6", False, Role.OWNER),
            ("7", False, Role.USER),
        ):
            server.says("hi", chat=user, user=user)
            await until(partial(server.texts, user))
            assert await approve(gateway, shown_code(server, user), has_owner=has_owner) is role


async def test_a_stranger_who_writes_often_gets_one_code(tmp_path: Path) -> None:
    async with gateway_with_chat(tmp_path) as (gateway, server):
        for number in range(20):
            assert isinstance(await gateway.accept(message("hi", number=number)), Refused)
        await until(lambda: server.texts("7"))
        assert len(server.texts("7")) == 1
        assert len(await rows(gateway._store, "select * from pairing_codes")) == 1
        for table in ("inbox", "sessions", "messages", "deliveries"):
            assert await rows(gateway._store, f"select * from {table}") == []


async def test_strangers_in_groups_and_ignored_strangers_get_no_reply(tmp_path: Path) -> None:
    listed = AccessSettings(allowed_users=("1",))
    async with gateway_with_chat(tmp_path, access=listed) as (gateway, server):
        await gateway.accept(message("hi"))
        await gateway.accept(message(new_code()))
        assert await rows(gateway._store, "select * from pairing_codes") == []
    async with gateway_with_chat(tmp_path) as (gateway, server):
        event = message("hi")
        group = replace(event, source=replace(event.source, chat_kind="group"))
        await gateway.accept(group)
        await gateway.accept(replace(event, addressed=False))
        await gateway.accept(replace(event, source=replace(event.source, is_bot=True)))
        assert await rows(gateway._store, "select * from pairing_codes") == []
        assert server.messages == {}


async def test_a_code_of_an_admin_pairs_the_first_stranger_who_sends_it(tmp_path: Path) -> None:
    async with gateway_with_chat(tmp_path, "Hello.") as (gateway, server):
        server.says("/pair", chat="1", user="1")
        await until(lambda: server.texts("1"))
        code = shown_code(server, "1")
        server.says(code.lower(), chat="7")
        await until(lambda: server.texts("7") == [pairing.WELCOME])
        server.says("hi", chat="7")
        await until(lambda: server.texts("7")[-1] == "Hello.")
        server.says(code, chat="8", user="8")
        await until(lambda: server.texts("8"))
        assert server.texts("8")[0].startswith("I don't know you yet.")
        ((by, role),) = await rows(gateway._store, "select granted_by, role from pairings")
        assert (by, role) == ("plain:1", "user")


async def test_only_the_codes_of_a_stranger_who_guesses_are_refused(tmp_path: Path) -> None:
    async with gateway_with_chat(tmp_path) as (gateway, server):
        for number in range(5):
            await gateway.accept(message(new_code(), number=number))
        server.says("/pair", chat="1", user="1")
        await until(lambda: server.texts("1"))
        code = shown_code(server, "1")
        await gateway.accept(message(code, number=6))
        assert await rows(gateway._store, "select * from pairings") == []
        await gateway.accept(message(code, user="8", number=7))
        assert await rows(gateway._store, "select user_id from pairings") == [("8",)]


@pytest.mark.parametrize(
    ("user", "kind", "reply"),
    [("2", "private", "Only an admin"), ("1", "group", "Everybody here")],
)
async def test_the_command_pair_is_refused_with_a_reason(
    tmp_path: Path, user: str, kind: str, reply: str
) -> None:
    access = AccessSettings(admins=("plain:1",), allow_all=True)
    async with gateway_with_chat(tmp_path, access=access) as (gateway, _):
        event = message("/pair", user=user)
        event = replace(event, source=replace(event.source, chat_kind=kind))
        receipt = await gateway.accept(event)
        assert isinstance(receipt, Accepted)
        assert receipt.failed
        assert receipt.reply
        assert receipt.reply.startswith(reply)


async def test_in_the_terminal_the_command_pair_needs_the_name_of_a_platform(
    tmp_path: Path,
) -> None:
    async with gateway_with_chat(tmp_path) as (gateway, _):
        event = message("/pair")
        origin = replace(event.origin, principal=Principal(name="cli", person=OWNER), reply_to=None)
        receipt = await gateway.accept(replace(event, origin=origin))
        assert isinstance(receipt, Accepted)
        assert receipt.failed
        named = replace(event, origin=origin, body=Said(text="/pair plain"), dedupe_key="2")
        receipt = await gateway.accept(named)
        assert isinstance(receipt, Accepted)
        (code,) = codes_in(receipt.reply or "")
        await gateway.accept(message(code, number=3))
        assert await rows(gateway._store, "select user_id from pairings") == [("7",)]


async def test_a_repeated_request_does_not_show_the_code_again(tmp_path: Path) -> None:
    async with gateway_with_chat(tmp_path) as (gateway, _):
        event = message("/pair plain", user="1")
        origin = replace(event.origin, principal=Principal(name="api", person=OWNER), reply_to=None)
        receipt = await gateway.accept(replace(event, origin=origin, fingerprint="f"))
        assert isinstance(receipt, Accepted)
        (code,) = codes_in(receipt.reply or "")
        kept = await rows(gateway._store, "select body from run_events")
        assert kept
        assert all(code.encode() not in bytes(body) for (body,) in kept)


async def test_an_invitation_to_a_private_chat_is_accepted_once_in_a_while(tmp_path: Path) -> None:
    async with gateway_with_chat(tmp_path) as (gateway, server):
        event = replace(message("x"), body=Invited())
        group = replace(event, source=replace(event.source, chat_kind="group"))
        assert isinstance(await gateway.accept(group), Refused)
        assert isinstance(await gateway.accept(event), Accepted)
        assert isinstance(await gateway.accept(event), Refused)
        assert isinstance(
            await gateway.accept(replace(message("x", "8"), body=Invited())), Accepted
        )
        assert server.messages == {}
    ignored = AccessSettings(unauthorized_dm_behavior="ignore")
    async with gateway_with_chat(tmp_path, access=ignored) as (gateway, _):
        assert isinstance(await gateway.accept(event), Refused)


async def test_a_stranger_with_an_invalid_name_is_refused(tmp_path: Path) -> None:
    async with gateway_with_chat(tmp_path) as (gateway, _):
        event = message("hi")
        odd = replace(event, source=replace(event.source, user_name="\ud800"))
        assert isinstance(await gateway.accept(odd), Refused)


@pytest.mark.slow
async def test_a_thousand_strangers_block_nobody_and_no_code_is_written_down(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Tries wrong codes, and the right code while codes are locked. Then lets 1,000 strangers ask
    for codes, and searches logs and files for the codes."""
    caplog.set_level(logging.DEBUG)
    async with gateway_with_chat(tmp_path, "Hello.") as (gateway, server):
        for number in range(1000):
            await gateway.accept(message("let me in", user=f"s{number}", number=number))
        await gateway.accept(message("It's me.", user="7", number=2000))
        await gateway.accept(message("/pair", user="1", number=2001))
        await until(lambda: len(server.messages) == 1002, within=30.0)
        codes = {code for one in server.messages.values() for code in codes_in(one.text)}
        assert len(codes) == 1002
        right = shown_code(server, "7")
        for _ in range(4):
            with pytest.raises(WrongCode):
                await pairing.find_request(gateway._store, "plain", new_code())
        for guess in (new_code(), right):
            with pytest.raises(PairingLocked):
                await pairing.find_request(gateway._store, "plain", guess)
        await rows(gateway._store, "update wrong_codes set since = since - 3600")
        assert await approve(gateway, right) is Role.OWNER
        gateway.notice_change()
        await until(lambda: server.texts("7")[-1] == pairing.WELCOME)
        server.says("hi", chat="7")
        await until(lambda: server.texts("7")[-1] == "Hello.")
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    written += caplog.text.encode()
    assert written
    assert [code for code in codes if code.encode() in written] == []
