"""Deliveries arrive complete, in order and at the permitted pace. A repeated delivery is marked."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

import anyio
import pytest
from msgspec.structs import replace

from hermes.control.sending import REPEAT
from hermes.state import deliveries
from hermes.testing.platforms import (
    LIMIT,
    ChatServer,
    EditingAdapter,
    PlainAdapter,
    PlatformWire,
    failing,
)
from hermes.testing.rows import NOW
from hermes.testing.running import (
    DRAINING,
    QUIET,
    Conditions,
    WrappedStore,
    rows,
    running,
    until,
    until_rows,
)
from hermes.testing.scripted import ScriptedModel, says
from hermes.testing.stores import open_test_store
from hermes.types.delivery import Delivery
from hermes.types.errors import AuthFailed, Disconnected, RateLimited, Rejected
from hermes.types.identity import Target
from hermes.types.messages import Content
from hermes.types.store import Work

T = TypeVar("T")
P = ParamSpec("P")
ANSWER = "the whole answer of many words"


class LossyWire:
    """A connection to a platform on which every call succeeds, but the replies to the first
    `losses` calls of one kind are lost."""

    def __init__(self, server: ChatServer, kind: str, losses: int = 1) -> None:
        self._server = server
        self._kind = kind
        self.losses = losses
        self.hang = False
        self.lost = anyio.Event()
        self.updates, self.typing = server.updates, server.typing

    async def send(self, chat: str, content: Content, key: str) -> str:
        id = await self._server.send(chat, content, key)
        await self._lose("send")
        return id

    async def edit(self, id: str, content: Content) -> None:
        await self._server.edit(id, content)
        # Only the reply to the last edit, which shows the whole answer, is lost. The earlier edits
        # of the preview get their replies.
        if content.text == ANSWER:
            await self._lose("edit")

    async def _lose(self, kind: str) -> None:
        if kind != self._kind or not self.losses:
            return
        self.losses -= 1
        self.lost.set()
        if self.hang:
            await anyio.sleep_forever()
        raise Disconnected("the connection was cut")


def standing(server: ChatServer, text: str = ANSWER) -> int:
    """Returns the number of messages that have shown the complete answer at any time."""
    return sum(any(text in version for version in one.versions) for one in server.messages.values())


async def test_no_call_is_made_during_a_pause_of_the_platform(tmp_path: Path) -> None:
    server = ChatServer()
    server.trouble = failing(RateLimited("slow down", retry_after=0.4))
    async with running(tmp_path, [PlainAdapter(server)], ScriptedModel([says("one")])):
        server.says("a")
        server.says("/status")
        await until(lambda: len(server.texts()) == 2)
    first, second, *_ = [at for at, _, _ in server.calls]
    assert second - first >= 0.4


class LateStore(WrappedStore):
    """A slow store: if a delivery has to wait until some time, the store returns this delivery only
    after that time."""

    async def run(self, transaction: Callable[P, Work[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        result = await self.inner.run(transaction, *args, **kwargs)
        if isinstance(result, Delivery) and result.state == "ready":
            await until(lambda: time.time() > result.not_before)
        return result


async def test_a_delivery_whose_time_has_come_in_the_meantime_is_sent(tmp_path: Path) -> None:
    server = ChatServer()
    server.trouble = failing(Disconnected("cut"))
    late = replace(QUIET, wrap_store=LateStore)
    async with running(tmp_path, [PlainAdapter(server)], ScriptedModel([says("one")]), late):
        server.says("a")
        await until(server.texts)


async def test_a_pause_of_the_platform_also_applies_after_a_restart(tmp_path: Path) -> None:
    server = ChatServer()
    server.trouble = failing(RateLimited("slow down", retry_after=0.8))
    server.says("a")
    async with running(tmp_path, [PlainAdapter(server)], ScriptedModel([says("one")])) as gateway:
        await until(lambda: server.calls)
        await until_rows(gateway._store, "select 1 from freezes")
    async with running(tmp_path, [PlainAdapter(server)], ScriptedModel([])):
        await until(server.texts)
    first, second = [at for at, _, _ in server.calls]
    assert second - first >= 0.8
    assert server.texts() == ["one"]


async def test_an_interrupted_message_is_sent_again_and_marked_as_a_repeat(
    tmp_path: Path,
) -> None:
    server = ChatServer()
    wire = LossyWire(server, "send")
    async with running(tmp_path, [PlainAdapter(wire)], ScriptedModel([says(ANSWER)])):
        server.says("a")
        await until(lambda: len(server.texts()) == 2)
    assert server.texts() == [ANSWER, REPEAT + ANSWER]


@pytest.mark.parametrize("kind", ["send", "edit"])
async def test_an_interrupted_call_never_shows_the_answer_twice_if_messages_can_be_edited(
    tmp_path: Path, kind: str
) -> None:
    server = ChatServer()
    wire = LossyWire(server, kind)
    model = ScriptedModel([says(ANSWER), says("next")])
    async with running(tmp_path, [EditingAdapter(wire)], model) as gateway:
        server.says("a")
        await until(lambda: standing(server) and wire.lost.is_set())
        server.says("b")
        await until(lambda: "next" in server.texts(), within=8.0)
        states = await rows(gateway._store, "select state from deliveries order by seq")
        assert states[0] == ("delivered",)
    assert standing(server) == 1


@pytest.mark.parametrize(
    ("adapter", "shown"), [(PlainAdapter, [ANSWER, REPEAT + ANSWER]), (EditingAdapter, None)]
)
async def test_a_delivery_that_was_being_sent_during_a_crash_arrives(
    tmp_path: Path, adapter: Callable[[PlatformWire], PlainAdapter], shown: list[str] | None
) -> None:
    server = ChatServer()
    wire = LossyWire(server, "send" if shown else "edit")
    wire.hang = True
    server.says("a")
    async with running(tmp_path, [adapter(wire)], ScriptedModel([says(ANSWER)])) as gateway:
        await wire.lost.wait()
        assert await rows(gateway._store, "select state from deliveries") == [("sending",)]
    async with running(tmp_path, [adapter(server)], ScriptedModel([])) as gateway:
        delivered = [("delivered",)].__eq__
        await until_rows(gateway._store, "select state from deliveries", delivered)
    if shown:
        assert server.texts() == shown
    assert standing(server) == (2 if shown else 1)


async def test_a_refused_delivery_fails_and_does_not_block_other_deliveries(tmp_path: Path) -> None:
    server = ChatServer()
    server.trouble = failing(Rejected("blocked"))
    async with running(
        tmp_path, [PlainAdapter(server)], ScriptedModel([says("one"), says("two")])
    ) as gateway:
        server.says("a")
        await until(lambda: server.calls)
        server.says("b")
        await until(lambda: server.texts() == ["two"])
        states = await rows(gateway._store, "select state, error from deliveries order by seq")
        assert states[0] == ("dead", "blocked")


async def test_an_unreadable_delivery_fails_and_does_not_block_other_deliveries(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    chat = Target(account="plain", chat_id="1")
    async with open_test_store(tmp_path) as store:
        for text in ("unreadable", "readable"):
            await store.run(deliveries.owe, chat, Content(text=text), "main", None, NOW)
        await rows(store, "update deliveries set content = '{' where seq = 1")
    server = ChatServer()
    async with running(tmp_path, [PlainAdapter(server)], ScriptedModel([])) as gateway:
        await until(lambda: server.texts() == ["readable"])
        ((state, error),) = await rows(
            gateway._store, "select state, error from deliveries where seq = 1"
        )
    assert state == "dead"
    assert "can't be read" in error
    assert "can't be read" in caplog.text


async def test_a_chat_gets_its_messages_in_order_and_does_not_wait_for_other_chats(
    tmp_path: Path,
) -> None:
    server = ChatServer()
    limited = failing(RateLimited("slow down", retry_after=0.3))
    server.trouble = lambda kind, chat: limited(kind, chat) if chat == "1" else None
    model = ScriptedModel([])
    async with running(tmp_path, [PlainAdapter(server)], model):
        for text in ("/status", "/help", "/stop"):
            server.says(text)
        server.says("/status", chat="2")
        await until(lambda: server.texts("2"))
        assert server.texts() == []
        await until(lambda: len(server.texts()) == 3)
    assert [text[:5] for text in server.texts()] == ["Idle.", "Conve", "Nothi"]


@pytest.mark.parametrize("adapter", [PlainAdapter, EditingAdapter])
async def test_a_long_answer_is_sent_in_parts_that_fit(
    tmp_path: Path, adapter: Callable[[PlatformWire], PlainAdapter]
) -> None:
    server = ChatServer()
    long = " ".join(f"word{number}" for number in range(2500))
    async with running(tmp_path, [adapter(server)], ScriptedModel([says(long)]), DRAINING):
        server.says("a")
        await until(lambda: "word2499" in " ".join(server.texts()))
    assert len(server.texts()) > 2
    assert all(len(text) <= LIMIT for text in server.texts())
    assert " ".join(server.texts()).split() == long.split()


async def test_a_part_that_arrived_is_not_sent_again(tmp_path: Path) -> None:
    server = ChatServer()
    server.trouble = failing(None, Disconnected("cut"))
    long = " ".join(f"word{number}" for number in range(1000))
    async with running(tmp_path, [PlainAdapter(server)], ScriptedModel([says(long)]), DRAINING):
        server.says("a")
        await until(lambda: "word999" in " ".join(server.texts()))
    first, second = server.texts()
    assert second.startswith(REPEAT)
    assert f"{first} {second.removeprefix(REPEAT)}".split() == long.split()


async def test_an_account_that_may_not_send_keeps_its_deliveries(tmp_path: Path) -> None:
    server = ChatServer()
    server.trouble = lambda kind, chat: AuthFailed("the token was revoked")
    async with running(tmp_path, [PlainAdapter(server)], ScriptedModel([])) as gateway:
        server.says("/status")
        await until(lambda: server.calls)
        query = "select not_before from deliveries where state = 'ready'"
        ((not_before,),) = await until_rows(gateway._store, query)
        assert not_before > time.time() + 30


class SlowStore(WrappedStore):
    """A store that is so slow that the pause of a delivery is over when the store returns the
    delivery."""

    async def run(self, transaction: Callable[P, Work[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        result = await self.inner.run(transaction, *args, **kwargs)
        if isinstance(result, Delivery) and result.state == "ready":
            await anyio.sleep(max(result.not_before - time.time(), 0.0) + 0.01)
        return result


async def test_a_pause_that_is_already_over_does_not_stop_the_gateway(
    tmp_path: Path,
) -> None:
    server = ChatServer()
    server.trouble = failing(Disconnected("gone"))
    conditions = Conditions(wrap_store=SlowStore)
    adapters, model = [EditingAdapter(server)], ScriptedModel([says(ANSWER)])
    async with running(tmp_path, adapters, model, conditions):
        server.says("a")
        await until(lambda: server.texts() == [ANSWER], 10)


async def test_an_error_of_an_adapter_does_not_stop_the_gateway(tmp_path: Path) -> None:
    server = ChatServer()
    server.trouble = failing(KeyError("result"))
    async with running(tmp_path, [PlainAdapter(server)], ScriptedModel([])):
        server.says("/status")
        await until(lambda: server.texts() == [REPEAT + "Idle."])


async def test_an_answer_is_sent_as_a_new_message_if_its_preview_was_deleted(
    tmp_path: Path,
) -> None:
    server = ChatServer()
    deleted = failing(Rejected("there is no such message"))
    server.trouble = lambda kind, chat: deleted(kind, chat) if kind == "edit" else None
    async with running(tmp_path, [EditingAdapter(server)], ScriptedModel([says(ANSWER)])):
        server.says("a")
        await until(lambda: ANSWER in server.texts())
    assert len(server.texts()) == 2
    assert standing(server) == 1
