"""The tool `session_search` finds messages of earlier conversations."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from hermes.core.tools.session_search import HIGHEST, MOST_MESSAGES, session_search_tool
from hermes.state import transcript
from hermes.testing.rows import NOW, writer
from hermes.testing.stores import open_test_store
from hermes.testing.turns import a_turn, use
from hermes.types.errors import ToolFailed
from hermes.types.identity import PersonId
from hermes.types.messages import AssistantMessage, Message, UserMessage
from hermes.types.store import Store


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with open_test_store(tmp_path) as store:
        yield store


async def say(store: Store, *messages: Message, turn: str = "earlier") -> None:
    place = replace(writer(turn), person=PersonId("ann"))
    for step, message in enumerate(messages):
        await store.run(transcript.append, place, step, 0, message, NOW)


async def ask(store: Store, **arguments: object) -> str:
    return await use(session_search_tool(store), a_turn(person="ann"), arguments)


async def test_a_hit_contains_the_time_the_place_and_the_sender(store: Store) -> None:
    await say(store, UserMessage(text="A hotel\nin Oslo"), AssistantMessage(text="Booked."))
    found = await ask(store, query="oslo")
    assert found == "#1 2023-11-14 22:13 UTC, telegram:private:7, user: A hotel in Oslo"


async def test_messages_around_a_hit_can_be_read(store: Store) -> None:
    await say(store, UserMessage(text="A hotel in Oslo"), AssistantMessage(text="Booked. " * 300))
    first, second = (await ask(store, around=1)).splitlines()
    assert first.endswith("user: A hotel in Oslo")
    assert "assistant: Booked. Booked." in second
    assert second.endswith("…")
    assert await ask(store, around=9) == "There is no message #9 here."


async def test_a_search_does_not_find_the_current_request(store: Store) -> None:
    await say(store, UserMessage(text="What did I say about Oslo?"), turn="t")
    assert await ask(store, query="Oslo") == "Nothing was found. Try other words."


@pytest.mark.parametrize(("limit", "count"), [(-3, 1), (0, 1), (2, 2), (10_000, MOST_MESSAGES)])
async def test_the_number_of_hits_is_limited(store: Store, limit: int, count: int) -> None:
    await say(store, *(UserMessage(text=f"oslo {number}") for number in range(30)))
    assert len((await ask(store, query="oslo", limit=limit)).splitlines()) == count


@pytest.mark.parametrize("query", ['"', "a OR", "NOT (", "*", "NEAR(x", "x:y", "\0", "-- ^ '"])
async def test_a_search_that_finds_nothing_is_not_an_error(store: Store, query: str) -> None:
    await say(store, UserMessage(text="nothing of the kind"))
    assert await ask(store, query=query) == "Nothing was found. Try other words."


@pytest.mark.parametrize("query", ["", " \n"])
async def test_a_query_needs_words(store: Store, query: str) -> None:
    with pytest.raises(ToolFailed, match="'query'"):
        await ask(store, query=query)


async def test_an_unknown_message_number_is_reported(store: Store) -> None:
    with pytest.raises(ToolFailed, match="around"):
        await ask(store, around=10**20)
    assert await ask(store, around=HIGHEST) == f"There is no message #{HIGHEST} here."
