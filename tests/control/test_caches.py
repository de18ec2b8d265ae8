"""The cache of histories returns the same messages as the store, and its size is limited."""

from pathlib import Path

from hermes.control.caches import CACHE_BYTES, CACHED_MESSAGES, HistoryCache
from hermes.state.transcript import History
from hermes.testing.platforms import ChatServer, PlainAdapter
from hermes.testing.running import running, until
from hermes.testing.scripted import ScriptedModel, says
from hermes.types.messages import Message, UserMessage


def history(count: int, size: int = 0) -> History:
    messages: tuple[Message, ...] = (UserMessage(text="x"),) * count
    return History(generation=0, messages=messages, size=size)


def test_a_short_history_is_not_cached() -> None:
    kept = HistoryCache()
    kept.keep("s", history(CACHED_MESSAGES - 1))
    assert kept.get("s") is None


def test_the_sessions_that_were_unused_longest_are_removed_first() -> None:
    kept = HistoryCache()
    for number in range(5):
        kept.keep(f"s{number}", history(CACHED_MESSAGES, CACHE_BYTES // 4))
    kept.keep("s1", history(CACHED_MESSAGES, CACHE_BYTES // 4))
    kept.keep("s5", history(CACHED_MESSAGES, CACHE_BYTES // 4))
    assert [number for number in range(6) if kept.get(f"s{number}")] == [1, 3, 4, 5]


async def test_a_cached_long_conversation_is_sent_completely_every_time(tmp_path: Path) -> None:
    turns = CACHED_MESSAGES
    model = ScriptedModel([says(f"answer {number}") for number in range(turns + 1)])
    server = ChatServer()
    async with running(tmp_path, [PlainAdapter(server)], model):
        for number in range(turns):
            server.says(f"question {number}")
            await until(lambda: server.texts()[-1:] == [f"answer {number}"])  # noqa: B023
        server.says("/new")
        await until(lambda: "A new conversation" in server.texts()[-1])
        server.says("afresh")
        await until(lambda: server.texts()[-1] == f"answer {turns}")
    for number, request in enumerate(model.requests[:turns]):
        said = [message.text for message in request.messages]
        expected = [f"{kind} {i}" for i in range(number) for kind in ("question", "answer")]
        assert said == [*expected, f"question {number}"]
    assert [m.text for m in model.requests[-1].messages] == ["afresh"]
