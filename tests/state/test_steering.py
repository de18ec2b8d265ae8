"""A new message or an edit can change a running turn. The tests run on both databases."""

from pathlib import Path

from msgspec.structs import replace

from hermes.state import inbox, message_parts, steering, turns
from hermes.testing.rows import NOW, US, said, session, turn_row
from hermes.testing.running import rows
from hermes.testing.stores import open_test_store
from hermes.types.identity import TurnId
from hermes.types.messages import Said
from hermes.types.store import Store

KEY = str(session())
TURN = TurnId("t")


async def put(store: Store, id: str, state: str = "pending") -> None:
    event = replace(said(id), body=Said(text=id, message_id=f"m-{id}"))
    await store.run(inbox.insert, id, event, session(), None, US, state)


async def test_messages_enter_the_turn_that_they_are_aimed_at(tmp_path: Path) -> None:
    async with open_test_store(tmp_path) as store:
        await store.run(turns.insert, turn_row("t"), "main", "7")
        assert await store.run(steering.steered_turns, US) == []
        for id in ("a", "b", "c"):
            await put(store, id)
        await store.run(steering.aim, "a", TURN)
        await store.run(steering.aim, "b", TURN)
        await store.run(steering.aim, "c", TurnId("another"))
        await store.run(message_parts.wait, "b", "cut", NOW + 1)
        assert await store.run(steering.steered_turns, US) == [TURN]
        assert await store.run(steering.aimed_at, TURN, KEY, NOW) == ["a"]
        assert await store.run(steering.aimed_at, TURN, KEY, NOW + 1) == ["a", "b"]
        await store.run(steering.enter, "a", TURN)
        assert await store.run(steering.aimed_at, TURN, KEY, NOW) == []
        await store.run(inbox.finish, TURN)
        found = await rows(store, "select id, state, turn from inbox order by seq")
    assert found == [("a", "done", "t"), ("b", "pending", None), ("c", "pending", None)]


async def test_an_edit_finds_waiting_messages_and_the_message_of_the_open_turn(
    tmp_path: Path,
) -> None:
    async with open_test_store(tmp_path) as store:
        await put(store, "t", "bound")
        for id in ("part", "steers", "first", "second"):
            await put(store, id)
        await store.run(inbox.bind, "part", "t")
        await store.run(inbox.bind, "second", "first")
        await store.run(steering.enter, "steers", TURN)
        found = {
            id: await store.run(steering.edited, KEY, f"m-{id}", TURN)
            for id in ("t", "part", "steers", "first", "second", "unknown")
        }
        assert await store.run(steering.edited, KEY, "m-t", None) is None
    waiting = {id: one.waiting if one else None for id, one in found.items()}
    assert waiting == {
        "t": False,
        "part": False,
        "steers": None,
        "first": True,
        "second": True,
        "unknown": None,
    }


async def test_the_message_that_replaces_the_message_of_a_turn_is_answered_next(
    tmp_path: Path,
) -> None:
    async with open_test_store(tmp_path) as store:
        await put(store, "a")
        await put(store, "b")
        assert await store.run(steering.replacement_of, TURN, KEY) is None
        await store.run(steering.replace_turn, "b", TURN)
        assert await store.run(steering.replacement_of, TURN, KEY) == "b"
        first = await store.run(inbox.first_pending, KEY, US)
        assert first is not None
        assert (first.id, first.replaces) == ("b", TURN)
