"""A branch has copies of the messages and the summaries of a conversation."""

from pathlib import Path

from hermes.state import branches, compactions, conversations, sessions, transcript
from hermes.state.compactions import Condensed
from hermes.state.transcript import History
from hermes.testing.rows import NOW, SOURCE, session, writer
from hermes.testing.stores import open_test_store
from hermes.types.messages import AssistantMessage, Message, UserMessage
from hermes.types.store import Work

KEY = str(session())


def talk(count: int) -> Work[list[int]]:
    """Stores `count` turns with two messages each. Returns the row numbers of the messages."""
    numbers = []
    for turn in range(count):
        yield from sessions.touch(session(), SOURCE, None, f"q{turn}", NOW)
        asked, answered = UserMessage(text=f"q{turn}"), AssistantMessage(text=f"a{turn}")
        numbers.append((yield from transcript.append(writer(f"t{turn}"), -1, 0, asked, NOW)))
        numbers.append((yield from transcript.append(writer(f"t{turn}"), 0, 0, answered, NOW)))
    return numbers


def current_messages() -> Work[list[Message]]:
    """Returns the messages of the current conversation as the model sees them."""
    row = yield from sessions.get(KEY)
    known = History(generation=row.generation, compaction=row.compaction)
    return list((yield from transcript.history(KEY, known)).messages)


async def test_a_branch_has_the_messages_and_summaries_of_the_original(tmp_path: Path) -> None:
    async with open_test_store(tmp_path) as store:
        rows = await store.run(talk, 4)
        whole = Condensed(session=KEY, generation=0, span=(rows[2], rows[5]))
        summary = UserMessage(text="short", summary=True)
        await store.run(compactions.compact, whole, summary, "t3", NOW)
        before = await store.read(current_messages)
        assert [message.text for message in before] == ["q0", "a0", "short", "q3", "a3"]
        assert await store.run(branches.branch, KEY, "copy")
        assert await store.read(current_messages) == before
        copy = await store.read(conversations.current, KEY)
        assert copy is not None
        assert (copy.title, copy.generation, copy.messages) == ("copy", 1, 8)
        await store.run(compactions.restore, KEY)
        assert len(await store.read(current_messages)) == 8
        (original,) = await store.read(conversations.of_generation, KEY, 0)
        await store.run(conversations.reopen, original)
        assert await store.read(current_messages) == before, "the original keeps its summary"
        assert await store.run(branches.branch, KEY, "again")
        assert await store.read(current_messages) == before


async def test_an_empty_conversation_has_no_branch(tmp_path: Path) -> None:
    async with open_test_store(tmp_path) as store:
        assert not await store.run(branches.branch, KEY, "copy")
        await store.run(talk, 1)
        await store.run(sessions.begin_anew, KEY, NOW)
        assert not await store.run(branches.branch, KEY, "copy")
        assert (await store.read(sessions.get, KEY)).generation == 1
