"""Both databases reject the same text in the same way."""

from pathlib import Path

import pytest

from hermes.state import deliveries, questions, sessions, transcript, turns
from hermes.state.search import search
from hermes.state.storable import require_storable
from hermes.testing.rows import (
    EVERYBODY,
    NOW,
    SOURCE,
    names,
    put,
    said_in,
    session,
    turn_row,
    writer,
)
from hermes.testing.stores import open_test_store
from hermes.types.identity import CallId, TurnId
from hermes.types.messages import AssistantMessage
from hermes.types.turns import Question


@pytest.mark.parametrize("text", ["a\0b", "\0", "half \ud800"])
async def test_text_that_can_not_be_stored_is_refused(tmp_path: Path, text: str) -> None:
    async with open_test_store(tmp_path) as store:
        with pytest.raises(UnicodeEncodeError):
            await store.run(put, text)
        await store.run(put, "a")
        assert await store.read(names) == ["a"]
        assert store.trouble is None


async def test_messages_of_people_and_models_may_contain_nul(tmp_path: Path) -> None:
    said = AssistantMessage(text="nul \0 word")
    async with open_test_store(tmp_path) as store:
        await store.run(transcript.append, writer("t"), 0, 0, said, NOW)
        assert await store.read(said_in, str(session()), 0) == [said]
        (found,) = await store.read(search, "word", EVERYBODY)
        assert found.text == "nul \N{REPLACEMENT CHARACTER} word"
        await store.run(turns.insert, turn_row("t"), "main", "7")
        question = Question(call=CallId("c"), kind="question", prompt="a\0b?", expires_in=9.0)
        await store.run(questions.ask, "q", turn_row("t"), "main", question, NOW)
        reason = ("failed: \0", "code")
        await store.run(turns.close, TurnId("t"), 1, "failed", NOW, reason=reason)
        await store.run(sessions.touch, session(), SOURCE, None, "ti\0tle", NOW)
        await store.run(deliveries.mark_dead, "d", 0, "no\0", NOW)


def test_the_error_names_the_position_of_the_character() -> None:
    with pytest.raises(UnicodeEncodeError, match="position 1: NUL"):
        require_storable("a\0b")
    require_storable("plain")
