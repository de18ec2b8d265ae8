"""The local memory recalls earlier conversations."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from hermes.core.memory.local import RECALL_CHARS, RECALL_FRAME, WORDS, LocalMemory, keywords
from hermes.state import sessions, transcript
from hermes.testing.rows import NOW, SOURCE, session, writer
from hermes.testing.stores import open_test_store
from hermes.testing.turns import a_turn
from hermes.types.identity import PersonId
from hermes.types.messages import AssistantMessage, ToolMessage, UserMessage
from hermes.types.protocols import MemoryProvider
from hermes.types.store import Store
from hermes.types.turns import Turn

ANN = PersonId("ann")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with open_test_store(tmp_path) as store:
        yield store


async def say(store: Store, *texts: str, generation: int = 0, turn: str = "earlier") -> None:
    place = replace(writer(turn, generation=generation), person=ANN)
    for step, text in enumerate(texts):
        await store.run(transcript.append, place, step, 0, UserMessage(text=text), NOW)


def asking(text: str) -> Turn:
    """Returns a turn with this text, in another conversation of the same person."""
    return a_turn(UserMessage(text=text), person=ANN)


async def test_messages_that_match_the_new_message_are_recalled(store: Store) -> None:
    await say(store, "Our hotel in Oslo is the Grand", "The weather is fine")
    recalled = await LocalMemory(store).recall(asking("Which hotel was it in Oslo again?"))
    assert recalled.splitlines() == [
        RECALL_FRAME,
        "> #1 2023-11-14 22:13 UTC, telegram:private:7, user: Our hotel in Oslo is the Grand",
    ]


async def test_a_message_with_only_one_common_word_is_not_recalled(store: Store) -> None:
    await say(store, "Our hotel is the Grand")
    local = LocalMemory(store)
    assert await local.recall(asking("Write a novel about a hotel")) == ""
    assert "Grand" in await local.recall(asking("Hotel?"))


@pytest.mark.parametrize("text", ["", "ok", "so do it", "--- ???"])
async def test_a_message_without_words_recalls_nothing(store: Store, text: str) -> None:
    await say(store, "ok so do it --- ???")
    assert await LocalMemory(store).recall(asking(text)) == ""


async def test_the_conversation_itself_is_not_recalled(store: Store) -> None:
    await store.run(sessions.touch, session(), SOURCE, ANN, "", NOW)
    await say(store, "Our hotel in Oslo of old")
    await store.run(sessions.begin_anew, str(session()), NOW)
    await say(store, "Our hotel in Oslo of today", generation=1, turn="later")
    here = replace(asking("hotel in Oslo"), session=session())
    recalled = await LocalMemory(store).recall(here)
    assert "of old" in recalled
    assert "of today" not in recalled


async def test_a_resumed_turn_recalls_passages_for_its_last_request(store: Store) -> None:
    await say(store, "Our hotel in Oslo")
    asked = asking("hotel in Oslo")
    answered = (AssistantMessage(text="Let me see"), ToolMessage(call=asked.id, text="?"))  # type: ignore[arg-type]
    notes = UserMessage(text="They spoke of lighthouses and geometry", summary=True)
    turn = replace(asked, history=(*asked.history, notes, *answered))
    assert "Our hotel" in await LocalMemory(store).recall(turn)


async def test_the_length_of_the_recalled_text_is_limited(store: Store) -> None:
    await say(store, *(f"hotel Oslo {n} " + "x" * 5000 for n in range(20)))
    recalled = await LocalMemory(store).recall(asking("hotel Oslo"))
    assert len(recalled) <= RECALL_CHARS
    assert len(recalled.splitlines()) > 3


def test_the_longest_words_are_used_as_keywords() -> None:
    text = "please tell me about the refrigerator and the refrigerator's temperature"
    assert keywords(text)[:2] == ["refrigerator", "temperature"]
    assert "tell" in keywords(text)
    assert "the" not in keywords(text)
    assert len(keywords(" ".join(f"word{n}" for n in range(99)))) == WORDS


async def test_local_memory_is_a_memory_provider(store: Store) -> None:
    provider: MemoryProvider = LocalMemory(store)
    assert provider.name == "local"
    assert [tool.name for tool in provider.tools()] == ["session_search"]
    await provider.on_session_end(asking("x"))
