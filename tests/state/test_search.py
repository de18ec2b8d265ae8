"""Search finds only messages that the audience may see."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from hermes.control.routing import DEFAULT_AGENT
from hermes.state import sessions, transcript
from hermes.state.audience import Person, Room
from hermes.state.search import FoundMessage, around, search
from hermes.testing.rows import EVERYBODY, NOW, SOURCE, writer
from hermes.testing.running import rows
from hermes.testing.stores import open_test_store
from hermes.types.identity import PersonId, SessionKey
from hermes.types.messages import AssistantMessage, Message, ToolMessage, UserMessage
from hermes.types.store import Store

ANN, BOB = PersonId("ann"), PersonId("bob")
PLACE = SessionKey(agent=DEFAULT_AGENT, platform="telegram", kind="group", chat="7")
GROUP = Room(agent=DEFAULT_AGENT, account="telegram", chat="7", sessions=str(PLACE))


def to(person: PersonId) -> Person:
    return Person(agent=DEFAULT_AGENT, person=person)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with open_test_store(tmp_path) as store:
        yield store


class Talk:
    """Writes messages into the transcript, each in a turn of its own."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._turns = 0

    async def say(
        self,
        message: Message | str,
        person: PersonId = ANN,
        key: SessionKey | None = None,
        *,
        account: str = "telegram",
        generation: int = 0,
    ) -> int:
        self._turns += 1
        place = replace(
            writer(f"t{self._turns}", generation=generation), person=person, account=account
        )
        if key:
            place = replace(place, session=key)
        said = UserMessage(text=message) if isinstance(message, str) else message
        return await self._store.run(transcript.append, place, 0, 0, said, NOW)


@pytest.fixture
def talk(store: Store) -> Talk:
    return Talk(store)


def texts(found: list[FoundMessage]) -> list[str]:
    return [one.text for one in found]


async def test_a_person_finds_their_own_messages_from_all_chats(store: Store, talk: Talk) -> None:
    await talk.say("fox at home")
    await talk.say("fox in the group", key=replace(PLACE, user="1"))
    await talk.say("fox on slack", key=replace(PLACE, platform="slack", kind="private"))
    await talk.say("fox of another", BOB)
    found = await store.read(search, "fox", to(ANN))
    assert set(texts(found)) == {"fox at home", "fox in the group", "fox on slack"}
    assert texts(await store.read(search, "fox", to(BOB))) == ["fox of another"]


async def test_a_shared_chat_finds_its_own_messages(store: Store, talk: Talk) -> None:
    await talk.say("fox in private, under the same id", key=replace(PLACE, kind="private"))
    await talk.say("fox of ann here", key=replace(PLACE, user="1"))
    await talk.say("fox of bob here", BOB, replace(PLACE, user="2", thread="9"))
    await talk.say("fox next door", key=replace(PLACE, chat="77", user="1"))
    await talk.say("fox elsewhere", key=replace(PLACE, user="1"), account="telegram.support")
    await talk.say("fox on slack", key=replace(PLACE, platform="slack", user="1"))
    found = await store.read(search, "fox", GROUP)
    assert set(texts(found)) == {"fox of ann here", "fox of bob here"}


async def test_messages_of_a_channel_without_single_people_are_found(
    store: Store, talk: Talk
) -> None:
    channel = replace(PLACE, kind="channel")
    await talk.say("fox in the channel", key=channel)
    room = replace(GROUP, sessions=str(channel))
    assert texts(await store.read(search, "fox", room)) == ["fox in the channel"]
    assert await store.read(search, "fox", GROUP) == []


async def test_messages_with_any_of_the_words_are_found_and_the_best_match_comes_first(
    store: Store, talk: Talk
) -> None:
    for number in range(5):
        await talk.say(f"the red house {number}")
    await talk.say("the red fox")
    found = await store.read(search, "red fox jumping", EVERYBODY, limit=3)
    assert len(found) == 3
    assert found[0].text == "the red fox"


async def test_the_excerpt_of_a_long_message_contains_the_match(store: Store, talk: Talk) -> None:
    await talk.say("filler " * 500 + "the needle is here" + " filler" * 500)
    (found,) = await store.read(search, "needle", to(ANN))
    assert "the needle is here" in found.text
    assert found.text.startswith("…")
    assert len(found.text) < 300


async def test_the_current_turn_and_the_current_conversation_can_be_left_out(
    store: Store, talk: Talk
) -> None:
    key = writer("").session
    await store.run(sessions.touch, key, SOURCE, ANN, "", NOW)
    await talk.say("fox of old")
    await store.run(sessions.begin_anew, str(key), NOW)
    await talk.say("fox of today", generation=1)
    await talk.say("fox of elsewhere", key=replace(PLACE, user="1"))
    found = await store.read(search, "fox", to(ANN), turn="t2")
    assert set(texts(found)) == {"fox of old", "fox of elsewhere"}
    found = await store.read(search, "fox", to(ANN), session=str(key))
    assert set(texts(found)) == {"fox of old", "fox of elsewhere"}


async def test_a_query_may_be_very_long(store: Store, talk: Talk) -> None:
    await talk.say("fox")
    query = "fox " + " ".join(f"word{number}" for number in range(5000))
    assert texts(await store.read(search, query, EVERYBODY)) == ["fox"]


async def test_the_messages_around_a_hit_can_be_read(store: Store, talk: Talk) -> None:
    numbers = [await talk.say(f"number {n}") for n in range(9)]
    await talk.say(AssistantMessage(text="an answer"))
    found = await store.read(around, numbers[4], to(ANN), span=2)
    assert texts(found) == [f"number {n}" for n in (2, 3, 4, 5, 6)]
    found = await store.read(around, numbers[8], to(ANN), span=2)
    assert texts(found) == ["number 6", "number 7", "number 8", "an answer"]


async def test_the_messages_around_a_hit_are_of_the_same_conversation_and_have_text(
    store: Store, talk: Talk
) -> None:
    await talk.say("of an older one")
    number = await talk.say("hit", generation=1)
    await talk.say(ToolMessage(call=writer("").turn, text="a result"), generation=1)  # type: ignore[arg-type]
    await talk.say("elsewhere", key=replace(PLACE, user="1"), generation=1)
    assert texts(await store.read(around, number, to(ANN))) == ["hit"]


async def test_messages_that_the_audience_may_not_see_are_left_out_around_a_hit(
    store: Store, talk: Talk
) -> None:
    channel = replace(PLACE, kind="channel")
    number = await talk.say("asks ann", key=channel)
    other = await talk.say("asks bob", BOB, channel)
    private = await talk.say("in private")
    assert texts(await store.read(around, number, to(ANN))) == ["asks ann"]
    assert texts(await store.read(around, other, to(ANN))) == ["asks ann"]
    assert await store.read(around, private, to(BOB)) == []
    assert await store.read(around, private, replace(GROUP, sessions=str(channel))) == []
    assert await store.read(around, 999, EVERYBODY) == []


async def test_a_very_long_message_is_found_by_its_beginning_and_stored_completely(
    store: Store, talk: Talk
) -> None:
    long = "beginning " + "word " * transcript.SEARCHED_CHARS + "ending"
    await talk.say(long)
    (found,) = await store.read(search, "beginning", to(ANN))
    assert found.text.startswith("beginning")
    assert await store.read(search, "ending", to(ANN)) == []
    ((session,),) = await rows(store, "select session from messages")
    (entry,) = await store.read(transcript.entries, session)
    assert entry.message == UserMessage(text=long)
