"""The last exchanges of a conversation (a person's message and its answer) can be found and
removed, on both databases."""

from pathlib import Path

from hermes.state import compactions, exchanges, sessions, transcript
from hermes.state.compactions import Condensed
from hermes.state.transcript import History
from hermes.testing.rows import NOW, SOURCE, session, writer
from hermes.testing.stores import open_test_store
from hermes.types.messages import AssistantMessage, UserMessage
from hermes.types.store import Store

KEY = str(session())


async def say(store: Store, turn: str) -> None:
    asked, answer = UserMessage(text=f"ask {turn}"), AssistantMessage(text=f"answer {turn}")
    await store.run(transcript.append, writer(turn), transcript.QUESTION_STEP, 0, asked, NOW)
    await store.run(transcript.append, writer(turn), 0, 0, answer, NOW)


async def last(store: Store, count: int = 9) -> list[str]:
    found = await store.run(exchanges.last_exchanges, KEY, 0, count)
    return [one.turn for one in found]


async def history(store: Store, known: History | None = None) -> History:
    row = await store.run(sessions.get, KEY)
    return await store.run(
        transcript.history, KEY, known or History(generation=0, compaction=row.compaction)
    )


async def test_removed_exchanges_are_not_in_the_history_and_later_ones_are(tmp_path: Path) -> None:
    async with open_test_store(tmp_path) as store:
        await store.run(sessions.touch, session(), SOURCE, None, "", NOW)
        for turn in ("a", "b", "c"):
            await say(store, turn)
        assert await last(store) == ["c", "b", "a"]
        assert await last(store, 1) == ["c"]
        second = (await store.run(exchanges.last_exchanges, KEY, 0, 2))[1]
        (asked,) = await store.run(exchanges.questions_of, second)
        assert asked.text == "ask b"
        await store.run(exchanges.remove_from, second, KEY, 0, NOW)
        known = await history(store)
        await say(store, "d")
        fresh, continued = await history(store), await history(store, known)
        assert await last(store) == ["d", "a"]
        assert [one.text for one in fresh.messages] == ["ask a", "answer a", "ask d", "answer d"]
        assert continued.messages == fresh.messages
        assert len(continued.spans) == 4


async def test_summarised_exchanges_stay_and_a_restore_brings_no_removed_exchange_back(
    tmp_path: Path,
) -> None:
    async with open_test_store(tmp_path) as store:
        await store.run(sessions.touch, session(), SOURCE, None, "", NOW)
        for turn in ("a", "b"):
            await say(store, turn)
        rows = await history(store)
        what = Condensed(session=KEY, generation=0, span=(rows.spans[0][0], rows.spans[1][1]))
        summary = UserMessage(text="summary", summary=True)
        await store.run(compactions.compact, what, summary, "a", NOW)
        (only,) = await store.run(exchanges.last_exchanges, KEY, 0, 9)
        assert only.turn == "b"
        await store.run(exchanges.remove_from, only, KEY, 0, NOW)
        assert [one.text for one in (await history(store)).messages] == ["summary"]
        assert await store.run(compactions.restore, KEY) == 1
        assert [one.text for one in (await history(store)).messages] == ["ask a", "answer a"]
