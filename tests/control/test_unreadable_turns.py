"""A turn or message that can't be read after a restart fails, and later messages are answered."""

import operator
from pathlib import Path

import anyio
import anyio.lowlevel
import msgspec
import pytest
from msgspec.structs import replace

from hermes.control.gateway import Gateway
from hermes.control.turn_transactions import GIVEN_UP
from hermes.core.tools.terminal import terminal_tools
from hermes.state import questions, transcript, turns
from hermes.state.unreadable import LOST_MESSAGE, LOST_RESULT
from hermes.testing.commands import lives, no_process_left
from hermes.testing.platforms import ChatServer, PlainAdapter
from hermes.testing.rows import append_unreadable, make_unreadable
from hermes.testing.running import QUIET, held, refused, rows, running, until, until_rows
from hermes.testing.scripted import ScriptedModel, calls, first_results, hangs, says
from hermes.testing.stores import open_test_store
from hermes.types.events import TurnFinished
from hermes.types.identity import OWNER, Principal, Source, TurnId
from hermes.types.messages import Accepted, Asked, MessageEvent, Origin, UserMessage


async def damage(gateway: Gateway, step: int) -> None:
    """Adds an unreadable message to the turn that the gateway runs."""
    ((id,),) = await rows(gateway._store, "select id from turns")
    row = await gateway._store.run(turns.get, id)
    assert row is not None
    await gateway._store.run(append_unreadable, row, step)
    with pytest.raises(msgspec.DecodeError):
        await gateway._store.run(transcript.of_turn, id)


async def nothing_is_open(gateway: Gateway) -> None:
    for query in (
        "select 1 from deliveries where state <> 'delivered'",
        "select 1 from inbox where state <> 'done'",
        "select 1 from turns where state in ('running', 'suspended')",
    ):
        await until_rows(gateway._store, query, operator.not_)


async def test_a_turn_that_can_not_be_read_is_closed_and_its_person_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = ChatServer()
    server.says("think")
    dying, living = ScriptedModel([hangs()]), ScriptedModel([says("and that"), says("fine")])
    async with running(tmp_path, [PlainAdapter(server)], dying) as gateway:
        await until(lambda: dying.requests)
        server.says("and this")
        await until(server.texts)
        await damage(gateway, step=0)
    async with running(tmp_path, [PlainAdapter(server)], living) as gateway:
        await until(lambda: server.texts()[1:] == [GIVEN_UP, "and that"])
        with anyio.fail_after(5):
            await nothing_is_open(gateway)
        closed = await rows(gateway._store, "select state, code, reason from turns order by id")
        assert closed == [("failed", "unreadable", GIVEN_UP), ("completed", "", "")]
    # The model gets the readable messages of the failed turn, and a marker instead of the
    # unreadable message.
    expected = ["think", LOST_MESSAGE, "and this"]
    assert [one.text for one in living.requests[0].messages] == expected
    assert refused(living.requests[0]) is None
    assert caplog.text.count("can't be resumed") == 1
    async with running(tmp_path, [PlainAdapter(server)], living):
        server.says("how are you?")
        await until(lambda: server.texts()[3:] == ["fine"])
    assert caplog.text.count("can't be resumed") == 1


async def test_a_suspended_turn_that_can_not_be_read_is_closed_and_its_person_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = ChatServer()
    model = ScriptedModel([calls(("ask", {})), says("here I am")])
    async with running(tmp_path, [PlainAdapter(server)], model) as gateway:
        server.says("paint it")
        await until(server.texts)
        await damage(gateway, step=1)
        ((question,),) = await rows(gateway._store, "select id from questions")
        async with open_test_store(tmp_path) as foreign:
            await foreign.run(questions.decide, question, "answered", "blue", "operator", 0.0)
            await until(lambda: server.texts()[1:] == [GIVEN_UP])
        with anyio.fail_after(5):
            await nothing_is_open(gateway)
        server.says("are you there?")
        await until(lambda: server.texts()[2:] == ["here I am"])
    expected = ["paint it", "", LOST_RESULT, LOST_MESSAGE, "are you there?"]
    assert [one.text for one in model.requests[1].messages] == expected
    assert refused(model.requests[1]) is None
    assert caplog.text.count("can't be resumed") == 1


async def test_a_turn_without_its_message_is_given_up_and_its_calls_have_results(
    tmp_path: Path,
) -> None:
    server = ChatServer()
    server.says("work")
    dying, living = ScriptedModel([calls(("slow", {}))]), ScriptedModel([says("fine")])
    async with running(tmp_path, [PlainAdapter(server)], dying) as gateway:
        await until_rows(gateway._store, "select steps from turns", [(1,)].__eq__)
        await rows(gateway._store, "delete from inbox")
    # A new platform is used here. The first platform would deliver the message again, and the
    # gateway would accept the message again, because the inbox row is deleted.
    server = ChatServer()
    async with running(tmp_path, [PlainAdapter(server)], living):
        await until(lambda: server.texts() == [GIVEN_UP])
        server.says("how are you?")
        await until(lambda: server.texts()[1:] == ["fine"])
    assert refused(living.requests[0]) is None
    assert first_results(living) == ["Not finished: the turn failed."]


async def damage_waiting(gateway: Gateway, count: int) -> None:
    """Waits until `count` messages wait in the inbox, and makes the first of them unreadable."""
    query = "select id from inbox where state = 'pending' order by seq"
    waiting = await until_rows(gateway._store, query, lambda found: len(found) == count)
    await gateway._store.run(make_unreadable, waiting[0][0])


async def test_a_turn_is_closed_although_the_next_message_can_not_be_read(tmp_path: Path) -> None:
    server, go = ChatServer(), anyio.Event()
    model = ScriptedModel([held(go, says("one")), says("three")])
    async with running(tmp_path, [PlainAdapter(server)], model) as gateway:
        for text in ("first", "second", "third"):
            server.says(text)
        await until(lambda: len(server.texts()) == 2)
        await damage_waiting(gateway, 2)
        go.set()
        await until(lambda: server.texts()[2:] == ["one", GIVEN_UP, "three"])
        with anyio.fail_after(5):
            await nothing_is_open(gateway)
    assert [one.text for one in model.requests[1].messages] == ["first", "one", "third"]


async def test_a_message_that_can_not_be_read_does_not_hold_up_an_idle_session(
    tmp_path: Path,
) -> None:
    server = ChatServer()
    dying, living = ScriptedModel([hangs()]), ScriptedModel([says("three")])
    async with running(tmp_path, [PlainAdapter(server)], dying) as gateway:
        for text in ("first", "second", "third"):
            server.says(text)
        await until(lambda: len(server.texts()) == 2)
        await damage_waiting(gateway, 2)
        # Because of the damage, the next gateway closes the open turn when the gateway starts. So
        # the session is idle when the gateway reads the waiting message.
        await damage(gateway, step=0)
    async with running(tmp_path, [PlainAdapter(server)], living) as gateway:
        await until(lambda: server.texts()[2:] == [GIVEN_UP, GIVEN_UP, "three"])
        with anyio.fail_after(5):
            await nothing_is_open(gateway)


def requested(text: str) -> MessageEvent:
    """Returns an API request in the session `work`."""
    source = Source(
        platform="cli", account="cli", chat_kind="private", chat_id="work", user_id="ada"
    )
    return MessageEvent(
        dedupe_key=text,
        source=source,
        origin=Origin(trigger="api", principal=Principal(name="cli", person=OWNER)),
        received_at=0.0,
        body=Asked(messages=(UserMessage(text=text),), stateless=False, detached=True),
    )


async def test_readers_of_the_api_see_the_end_of_turns_that_were_given_up(tmp_path: Path) -> None:
    async with running(tmp_path, [], ScriptedModel([hangs()])) as gateway:
        receipts = [await gateway.accept(requested(text)) for text in ("first", "second")]
        await damage(gateway, step=0)
        await damage_waiting(gateway, 1)
    async with running(tmp_path, [], ScriptedModel([])) as gateway:
        for receipt in receipts:
            assert isinstance(receipt, Accepted)
            assert receipt.turn is not None
            with anyio.fail_after(5):
                *_, last = [one.event async for one in gateway.follow(TurnId(receipt.turn))]
            assert last == TurnFinished(outcome="failed", text=GIVEN_UP, code="unreadable")
        assert await rows(gateway._store, "select 1 from deliveries") == []


async def test_a_stateless_request_that_can_not_be_read_leaves_no_process(tmp_path: Path) -> None:
    background = {"command": "echo $$ > pid; exec sleep 600", "background": True}
    dying = ScriptedModel([calls(("terminal", background)), hangs()])
    body = Asked(messages=(UserMessage(text="hi"),), stateless=True, detached=True)
    commands = replace(QUIET, tools=terminal_tools(60.0, "none"))
    pid = tmp_path / "workspace" / "pid"
    with no_process_left():
        async with running(tmp_path, [], dying, commands) as gateway:
            await gateway.accept(replace(requested("hi"), body=body))
            await until(lambda: pid.exists() and pid.read_text())
            await until(lambda: len(dying.requests) == 2)
            await damage(gateway, step=5)
        assert lives(int(pid.read_text()))
        async with running(tmp_path, [], ScriptedModel([]), commands) as gateway:
            with anyio.fail_after(5):
                await nothing_is_open(gateway)
            assert await rows(gateway._store, "select code from turns") == [("unreadable",)]
            assert not lives(int(pid.read_text()))
