"""The contract of every store for the list of conversations."""

from msgspec.structs import replace

from hermes.state import conversations, sessions, transcript, turns
from hermes.state.conversations import Summary
from hermes.testing.contracts import StoreFixture
from hermes.testing.conversations import SESSION, touch
from hermes.testing.rows import NOW, SOURCE, session, turn_row, writer
from hermes.types.messages import UserMessage
from hermes.types.store import Store, Work


class ConversationsContract(StoreFixture):
    """Each conversation of a session has a row of its own in the list, and can be resumed and
    deleted."""

    async def test_an_ended_conversation_keeps_its_row(self, store: Store) -> None:
        await store.run(say, "one", NOW)
        await store.run(sessions.begin_anew, SESSION, NOW + 1)
        assert [one.title for one in await store.read(conversations.listed)] == ["one"]
        await store.run(say, "two", NOW + 2)
        new, old = await store.read(conversations.listed)
        assert (new.title, new.current, new.number, new.id) == ("two", True, 1, "7")
        assert (old.title, old.current, old.number, old.id) == ("one", False, 2, "7.1")
        assert (new.messages, old.messages) == (1, 1)
        assert await store.read(conversations.numbered, 2) == [old]
        assert await store.read(conversations.numbered, 3) == []
        assert await store.read(conversations.listed, "cli") == []
        assert await store.read(conversations.latest, "telegram") == without_number(new)

    async def test_a_resumed_conversation_changes_places_with_the_current_one(
        self, store: Store
    ) -> None:
        await store.run(say, "one", NOW)
        await store.run(sessions.begin_anew, SESSION, NOW + 1)
        await store.run(say, "two", NOW + 2)
        _, old = await store.read(conversations.listed)
        await store.run(conversations.reopen, old)
        assert (await store.run(touch, NOW + 3)).generation == 0
        found = await store.read(conversations.listed)
        assert [(one.id, one.title) for one in found] == [("7", "one"), ("7.2", "two")]
        await store.run(sessions.begin_anew, SESSION, NOW + 4)
        assert (await store.run(touch, NOW + 5)).generation == 2, "no number is used twice"

    async def test_a_session_is_deleted_with_its_last_conversation(self, store: Store) -> None:
        await store.run(say, "one", NOW)
        await store.run(turns.insert, turn_row("t000"), "main", "7")
        await store.run(sessions.set_model, SESSION, "a/b")
        await store.run(sessions.begin_anew, SESSION, NOW + 1)
        await store.run(say, "two", NOW + 2)
        new, old = await store.read(conversations.listed)
        await store.run(conversations.delete, new)
        assert [one.title for one in await store.read(conversations.listed)] == ["one"]
        await store.run(conversations.delete, old)
        for table in ("sessions", "messages", "turns", "past_conversations", "session_models"):
            assert await store.read(count, table) == 0

    async def test_renaming_changes_one_conversation_only(self, store: Store) -> None:
        await store.run(say, "one", NOW)
        await store.run(sessions.begin_anew, SESSION, NOW + 1)
        await store.run(say, "two", NOW + 2)
        for one in await store.read(conversations.listed):
            await store.run(conversations.rename, one, f"{one.title}!")
        found = await store.read(conversations.listed)
        assert [one.title for one in found] == ["two!", "one!"]

    async def test_the_end_of_a_generated_name_selects_its_session(self, store: Store) -> None:
        name = "1a1e23f540b1f5a5ea051"
        made = replace(SOURCE, chat_id=name)
        await store.run(sessions.touch, session(name), made, None, "", NOW)
        for part in (name[:5], name[-8:], name[-6:]):
            (found,) = await store.read(conversations.resembling, part)
            assert (found.chat, found.id) == (name, name[-8:])
        assert await store.read(conversations.resembling, name[-5:]) == []

    async def test_a_chosen_model_is_kept_until_the_conversation_ends(self, store: Store) -> None:
        await store.run(sessions.set_model, SESSION, "a/b")
        await store.run(sessions.set_model, SESSION, "a/c")
        assert (await store.run(touch)).model == "a/c"
        found = await store.run(sessions.find, SESSION)
        assert found
        assert found.model == "a/c"
        await store.run(sessions.begin_anew, SESSION, NOW)
        assert (await store.run(touch)).model is None
        assert await store.run(sessions.model_of, SESSION) is None


def say(text: str, at: float) -> Work[None]:
    """Adds a message to the current conversation of the session."""
    row = yield from touch(at, text)
    place = writer(f"t{at}", generation=row.generation)
    yield from transcript.append(place, 0, 0, UserMessage(text=text), at)


def without_number(one: Summary) -> Summary:
    return replace(one, number=0)


def count(table: str) -> Work[int]:
    rows = yield f"select count(*) from {table}", ()  # noqa: S608
    number: int = rows[0][0]
    return number
