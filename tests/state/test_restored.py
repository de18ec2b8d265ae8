"""The open work of a restored snapshot is closed, and none of it runs again."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hermes.state import deliveries, inbox, transcript, turns
from hermes.state.restored import NOTICE, RESTORED, RestoredWork, close_open_work
from hermes.testing.rows import (
    CHAT,
    NOW,
    US,
    ask,
    hold_account,
    said,
    said_in,
    session,
    turn_row,
    writer,
)
from hermes.testing.stores import open_test_store
from hermes.types.events import TurnFinished
from hermes.types.identity import CallId, SessionKey, TurnId
from hermes.types.messages import AssistantMessage, Content, ToolCall, ToolMessage, UserMessage
from hermes.types.store import Row, Store, Work

TOLD = NOTICE.format(age="4 min")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with open_test_store(tmp_path) as store:
        yield store


def select(sql: str) -> Work[list[Row]]:
    return (yield sql, ())


def begin(id: str, key: SessionKey, state: str = "running") -> Work[None]:
    """Inserts a turn of a chat, with its message and the delivery of its answer."""
    yield from inbox.insert(id, said(id), key, None, US, "bound")
    yield from turns.insert(turn_row(id, str(key), state), "main", "7")
    yield from deliveries.owe(CHAT, None, "main", TurnId(id), NOW)


async def test_an_open_turn_fails_and_its_chat_and_its_readers_are_told(store: Store) -> None:
    await store.run(begin, "t1", session())
    done = await store.run(close_open_work, "4 min", NOW)
    assert done == RestoredWork(turns=1, waiting=0, deliveries=0)
    found = await store.read(turns.get, "t1")
    assert found is not None
    assert (found.state, found.code, found.reason) == ("failed", RESTORED, TOLD)
    delivery = await store.run(
        deliveries.take_next, "telegram", "7", await hold_account(store), NOW
    )
    assert delivery is not None
    assert delivery.content == Content(text=TOLD)
    # The notice was created after the restore, so it can't have been sent before.
    assert not delivery.doubtful
    page = await store.read(turns.events_page, TurnId("t1"), 1_999_999)
    (last,) = page.recorded
    assert last.event == TurnFinished(outcome="failed", text=TOLD, code=RESTORED)
    assert await store.read(select, "select id from inbox where state <> 'done'") == []


async def test_the_calls_of_an_open_turn_get_results(store: Store) -> None:
    await store.run(begin, "t1", session())
    call = ToolCall(id=CallId(f"{'0' * 21}_0_0"), name="pay", arguments="{}")
    asked = AssistantMessage(calls=(call,))
    await store.run(transcript.append, writer("t1"), -1, 0, UserMessage(text="pay"), NOW)
    await store.run(transcript.append, writer("t1"), 0, 0, asked, NOW)
    await store.run(close_open_work, "4 min", NOW)
    found = await store.read(said_in, str(session()), 0)
    assert found[2:] == [
        ToolMessage(call=call.id, text="Not finished: the turn failed.", failed=True)
    ]


async def test_a_suspended_turn_fails_and_its_chat_is_told(store: Store) -> None:
    await store.run(begin, "t", session(), "suspended")
    await store.run(deliveries.complete, TurnId("t"), Content(text="Really?"), NOW)
    await store.run(ask, "q", "t_0_0")
    done = await store.run(close_open_work, "4 min", NOW)
    assert done == RestoredWork(turns=1, waiting=0, deliveries=1)
    owed = await store.read(select, "select state, doubtful from deliveries order by seq")
    # The pairs are (state, doubtful). The first row is the question, which may already have been
    # sent. The second row is the notice, which is new.
    assert owed == [("ready", 1), ("ready", 0)]
    assert await store.read(turns.all_open) == []


async def test_a_waiting_message_is_given_up_and_its_chat_is_told(store: Store) -> None:
    await store.run(begin, "t1", session())
    await store.run(inbox.insert, "i2", said("k2"), session(), None, US)
    done = await store.run(close_open_work, "4 min", NOW)
    assert done == RestoredWork(turns=1, waiting=1, deliveries=0)
    assert await store.read(inbox.all_pending) == []
    owed = await store.read(select, "select state, doubtful from deliveries")
    assert owed == [("ready", 0)] * 2


async def test_pending_deliveries_are_marked_as_possible_repeats_and_others_are_not_changed(
    store: Store,
) -> None:
    lease = await hold_account(store)
    for text in ("delivered", "being sent", "ready"):
        await store.run(deliveries.owe, CHAT, Content(text=text), "main", None, NOW)
    first = await store.run(deliveries.take_next, "telegram", "7", lease, NOW)
    assert first is not None
    await store.run(deliveries.mark_delivered, first.id, 1, (), NOW)
    await store.run(deliveries.take_next, "telegram", "7", lease, NOW)
    done = await store.run(close_open_work, "4 min", NOW)
    assert done == RestoredWork(turns=0, waiting=0, deliveries=2)
    owed = await store.read(select, "select state, doubtful from deliveries order by seq")
    assert owed == [("delivered", 0), ("ready", 1), ("ready", 1)]


async def test_a_snapshot_without_open_work_is_not_changed(store: Store) -> None:
    done = await store.run(close_open_work, "4 min", NOW)
    assert done == RestoredWork(turns=0, waiting=0, deliveries=0)
