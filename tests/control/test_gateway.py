"""The whole gateway gives one answer per message, despite repeats, restarts, drains and full
disks."""

from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from hermes.control import gateway as gateways
from hermes.testing.platforms import ChatServer, PlainAdapter, Update, to_event
from hermes.testing.running import DRAINING, QUIET, TroubledStore, held, rows, running, until
from hermes.testing.scripted import ScriptedModel, calls, hangs, says
from hermes.types.errors import IntakeClosed, StoreUnavailable
from hermes.types.identity import OWNER, Principal, TurnId
from hermes.types.messages import Accepted, Duplicate, MessageEvent, Origin, Refused, UserMessage


def event(number: int, text: str = "hi") -> MessageEvent:
    return to_event(Update(id=number, chat="1", user="7", text=text), "plain")


async def test_the_same_update_five_times_and_after_a_restart_is_answered_once(
    tmp_path: Path,
) -> None:
    server = ChatServer()
    number = server.says("hi")
    for _ in range(4):
        server.repeat(number)
    first = ScriptedModel([says("hello")])
    async with running(tmp_path, [PlainAdapter(server)], first, DRAINING):
        await until(server.texts)
    # The new adapter requests updates from the beginning, so the platform delivers every update
    # again.
    second = ScriptedModel([says("and again")])
    async with running(tmp_path, [PlainAdapter(server)], second, DRAINING) as gateway:
        server.says("more")
        await until(lambda: len(server.texts()) > 1)
        assert len(await rows(gateway._store, "select id from turns")) == 2
    assert server.texts() == ["hello", "and again"]
    assert len(first.requests) == len(second.requests) == 1


async def test_a_repeated_message_gets_the_turn_of_the_first(tmp_path: Path) -> None:
    async with running(tmp_path, [], ScriptedModel([hangs()])) as gateway:
        taken = await gateway.accept(event(1))
        again = await gateway.accept(event(1))
    assert isinstance(taken, Accepted)
    assert isinstance(again, Duplicate)
    assert (again.id, again.turn) == (taken.id, taken.turn)


async def test_a_run_of_the_api_is_not_a_turn_of_a_chat_with_the_same_account(
    tmp_path: Path,
) -> None:
    asked = replace(
        event(2),
        source=replace(event(2).source, platform="api", chat_id="2"),
        origin=Origin(trigger="api", principal=Principal(name="plain", person=OWNER)),
    )
    async with running(tmp_path, [], ScriptedModel([hangs(), hangs()])) as gateway:
        of_chat, of_api = await gateway.accept(event(1)), await gateway.accept(asked)
        assert isinstance(of_chat, Accepted)
        assert isinstance(of_api, Accepted)
        assert not await gateway.knows(TurnId(of_chat.turn or ""), "plain")
        assert await gateway.knows(TurnId(of_api.turn or ""), "plain")
        assert not await gateway.knows(TurnId(of_api.turn or ""), "other")


async def test_a_message_that_arrives_twice_at_the_same_moment_is_accepted_once(
    tmp_path: Path,
) -> None:
    receipts: list[object] = []
    async with running(tmp_path, [], ScriptedModel([says("hello")])) as gateway:

        async def accept() -> None:
            receipts.append(await gateway.accept(event(1)))

        async with anyio.create_task_group() as group:
            for _ in range(20):
                group.start_soon(accept)
    assert sum(isinstance(receipt, Accepted) for receipt in receipts) == 1


async def test_text_with_a_lone_surrogate_is_refused_and_does_not_block_the_account(
    tmp_path: Path,
) -> None:
    server = ChatServer()
    server.says("broken \ud83d")
    server.says("whole")
    async with running(tmp_path, [PlainAdapter(server)], ScriptedModel([says("hello")])) as gateway:
        await until(server.texts)
        assert isinstance(await gateway.accept(event(9, "\ud83d")), Refused)
        assert len(await rows(gateway._store, "select id from inbox")) == 1


async def test_each_session_is_a_conversation_of_its_own(tmp_path: Path) -> None:
    server = ChatServer()
    model = ScriptedModel([says("one"), says("two"), says("three")])
    async with running(tmp_path, [PlainAdapter(server)], model):
        server.says("a")
        await until(server.texts)
        server.says("b")
        await until(lambda: len(server.texts()) == 2)
        server.says("c", chat="2", user="8")
        await until(lambda: server.texts("2"))
    assert [message.text for message in model.requests[1].messages[:-1]] == ["a", "one"]
    assert model.requests[2].messages == (UserMessage(text="c"),)


async def test_a_drain_closes_the_intake_at_once_and_lets_turns_finish(tmp_path: Path) -> None:
    server, go = ChatServer(), anyio.Event()
    model = ScriptedModel([held(go, says("done"))])
    async with running(tmp_path, [PlainAdapter(server)], model) as gateway:
        server.says("work")
        await until(lambda: model.requests)
        async with anyio.create_task_group() as group:
            group.start_soon(gateway.drain, 5.0)
            await until(lambda: gateway.trouble)
            with pytest.raises(IntakeClosed):
                await gateway.accept(event(2))
            go.set()
        assert server.texts() == ["done"]


async def test_a_second_drain_does_not_wait_again_for_a_turn_that_can_not_be_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateways, "STOP_TURNS_SECONDS", 0.05)
    reached = anyio.Event()

    async def before(name: str) -> None:
        if name == "TurnTransactions.close":
            reached.set()
            raise StoreUnavailable("the files are lost")

    troubled = replace(QUIET, wrap_store=lambda store: TroubledStore(store, before))
    async with running(tmp_path, [], ScriptedModel([says("lost")]), troubled) as gateway:
        await gateway.accept(event(1))
        await reached.wait()
        await gateway.drain(0)
        assert gateway.busy
        with anyio.fail_after(10):
            await gateway.drain(3600)


async def test_turns_that_a_drain_cuts_off_are_resumed_by_the_next_start(tmp_path: Path) -> None:
    server = ChatServer()
    server.says("work")
    first = ScriptedModel([hangs()])
    async with running(tmp_path, [PlainAdapter(server)], first):
        await until(lambda: first.requests)
        server.says("and this")
        await until(server.texts)
    second = ScriptedModel([says("done"), says("that too")])
    async with running(tmp_path, [PlainAdapter(server)], second):
        await until(lambda: len(server.texts()) == 3)
    receipt, *answers = server.texts()
    assert receipt.startswith("Queued (1)")
    assert answers == ["done", "that too"]
    assert second.requests[0].messages == first.requests[0].messages


async def test_a_full_disk_delays_messages_but_loses_none(tmp_path: Path) -> None:
    server, full = ChatServer(), {"TurnCheckpoint.said": 1, "TurnCheckpoint.answered": 1}

    async def before(name: str) -> None:
        for wanted, left in full.items():
            if name.startswith(wanted) and left:
                full[wanted] -= 1
                raise StoreUnavailable("the disk is full")

    troubled = replace(QUIET, wrap_store=lambda store: TroubledStore(store, before))
    model = ScriptedModel([calls(("append", {"token": "x"})), says("done")])
    async with running(tmp_path, [PlainAdapter(server)], model, troubled):
        server.says("work")
        await until(server.texts)
    assert server.texts() == ["done"]
    assert (tmp_path / "workspace" / "appended").read_text() == "x\n"
    assert not any(full.values())
