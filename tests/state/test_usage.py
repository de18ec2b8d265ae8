"""The usage of a conversation is the sum of its turns."""

from pathlib import Path

from hermes.state import transcript, turns
from hermes.state.usage import ConversationUsage, conversation_usage
from hermes.testing.rows import NOW, session, turn_row, writer
from hermes.testing.stores import open_test_store
from hermes.types.events import UsageReported
from hermes.types.messages import UserMessage
from hermes.types.store import Work

KEY = str(session())


def finished(turn: str, generation: int, usage: UsageReported) -> Work[None]:
    yield from turns.insert(turn_row(turn), "main", "7")
    asked = UserMessage(text="hi")
    yield from transcript.append(writer(turn, generation=generation), -1, 0, asked, NOW)
    yield from turns.close(turn_row(turn).id, 1, "completed", NOW, usage)


async def test_the_turns_of_one_conversation_are_added_up(tmp_path: Path) -> None:
    async with open_test_store(tmp_path) as store:
        nothing = UsageReported(prompt_tokens=0, completion_tokens=0)
        empty = ConversationUsage(turns=0, used=nothing)
        assert await store.read(conversation_usage, KEY, 0) == empty
        paid = UsageReported(prompt_tokens=10, completion_tokens=2, cached_tokens=4, cost=0.5)
        unknown = UsageReported(prompt_tokens=20, completion_tokens=3)
        await store.run(finished, "a", 0, paid)
        await store.run(finished, "b", 0, unknown)
        await store.run(finished, "c", 1, paid)
        total = UsageReported(prompt_tokens=30, completion_tokens=5, cached_tokens=4, cost=0.5)
        found = await store.read(conversation_usage, KEY, 0)
        assert found == ConversationUsage(turns=2, used=total)
        assert (await store.read(conversation_usage, KEY, 1)).used == paid
