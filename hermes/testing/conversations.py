"""The tests that every store must pass, for transcripts, sessions, prompts and summaries."""

from collections.abc import Callable
from functools import partial

import msgspec
import pytest
from msgspec.structs import replace

from hermes.state import compactions, conversations, sessions, transcript, turns
from hermes.state.compactions import Condensed, Span
from hermes.state.search import search
from hermes.state.sessions import EndedConversation
from hermes.state.transcript import History, TranscriptWriter
from hermes.state.unreadable import LOST_MESSAGE
from hermes.testing.contracts import StoreFixture
from hermes.testing.rows import (
    EVERYBODY,
    NOW,
    SOURCE,
    append_unreadable,
    outcomes_of,
    said_in,
    session,
    turn_row,
    writer,
)
from hermes.types.identity import CallId
from hermes.types.messages import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from hermes.types.store import Store, Work
from hermes.types.turns import Prompt, PromptPart

SESSION = str(session())


def a_prompt(text: str) -> Prompt:
    return Prompt(fingerprint="f", parts=(PromptPart(name="identity", text=text),))


def touch(now: float = NOW, title: str = "") -> Work[sessions.SessionRow]:
    return sessions.touch(session(), SOURCE, None, title, now)


def talk(count: int) -> Work[list[int]]:
    """Stores `count` questions, each with an answer. Returns the numbers of all these rows."""
    numbers = []
    for n in range(count):
        question, answer = UserMessage(text=f"q{n}"), AssistantMessage(text=f"a{n}")
        numbers.append((yield from transcript.append(writer(f"t{n:03}"), -1, 0, question, NOW)))
        numbers.append((yield from transcript.append(writer(f"t{n:03}"), 0, 0, answer, NOW)))
    return numbers


def read(session_row: sessions.SessionRow) -> Work[History]:
    known = History(generation=session_row.generation, compaction=session_row.compaction)
    return transcript.history(SESSION, known)


def condense(span: Span, text: str, generation: int = 0) -> Work[None]:
    what = Condensed(session=SESSION, generation=generation, span=span)
    return compactions.compact(what, UserMessage(text=text), "t", NOW)


def texts(history: History) -> list[str]:
    return [message.text for message in history.messages]


class TranscriptContract(StoreFixture):
    """Messages are kept in order, and a search finds only messages that the person who searches may
    read."""

    async def test_history_is_in_order_and_a_new_conversation_begins_empty(
        self, store: Store
    ) -> None:
        call = ToolCall(id=CallId("t1_0_0"), name="read_file", arguments="{}")
        said_: list[Message] = [
            UserMessage(text="hi", sender="Ada"),
            AssistantMessage(text="", calls=(call,), reasoning="hm"),
            ToolMessage(call=call.id, text="ok", failed=True),
            AssistantMessage(text="done"),
        ]
        assert (await store.run(sessions.touch, session(), SOURCE, None, "", NOW)).generation == 0
        for step, message in enumerate(said_):
            await store.run(transcript.append, writer("t1"), step - 1, 0, message, NOW)
        key = str(session())
        assert await store.read(said_in, key, 0) == said_
        await store.run(sessions.begin_anew, key, NOW)
        assert (await store.run(sessions.touch, session(), SOURCE, None, "", NOW)).generation == 1
        later = UserMessage(text="again")
        await store.run(transcript.append, writer("t2", generation=1), -1, 0, later, NOW)
        assert await store.read(said_in, key, 1) == [later]
        assert await store.read(said_in, key, 0) == said_

    async def test_the_messages_of_a_turn_are_ordered_by_their_place(self, store: Store) -> None:
        places = [(1, 0), (0, 2), (0, 0), (-1, 0), (0, 1)]
        for step, index in places:
            message = UserMessage(text=f"{step} {index}")
            await store.run(transcript.append, writer("t"), step, index, message, NOW)
        found = await store.read(transcript.of_turn, "t")
        assert found == [UserMessage(text=f"{step} {index}") for step, index in sorted(places)]

    async def test_a_message_that_is_appended_twice_is_stored_once(self, store: Store) -> None:
        for text in ("first", "second"):
            message = UserMessage(text=text)
            await store.run(transcript.append, writer("t"), 0, 0, message, NOW)
        assert await store.read(transcript.of_turn, "t") == [UserMessage(text="first")]
        assert await store.read(search, "second", EVERYBODY) == []

    async def test_a_marker_replaces_a_message_that_can_not_be_read(self, store: Store) -> None:
        call = ToolCall(id=CallId("t_0_0"), name="look", arguments="{}")
        asked, result = AssistantMessage(calls=(call,)), ToolMessage(call=call.id, text="seen")
        before, after = UserMessage(text="before"), UserMessage(text="after")
        await store.run(transcript.append, writer("t1"), -1, 0, before, NOW)
        await store.run(transcript.append, writer("t2"), -1, 0, UserMessage(text="go"), NOW)
        await store.run(transcript.append, writer("t2"), 0, 0, asked, NOW)
        await store.run(transcript.append, writer("t2"), 0, 1, result, NOW)
        await store.run(append_unreadable, turn_row("t2"), 1)
        await store.run(transcript.append, writer("t3"), -1, 0, after, NOW)
        with pytest.raises(msgspec.DecodeError):
            await store.read(transcript.of_turn, "t2")
        key = str(session())
        marker = UserMessage(text=LOST_MESSAGE)
        expected = [before, UserMessage(text="go"), asked, result, marker, after]
        assert await store.read(said_in, key, 0) == expected
        told = [entry.message for entry in await store.read(transcript.entries, key)]
        assert told == expected

    async def test_an_agent_does_not_find_messages_of_other_agents(self, store: Store) -> None:
        for agent, text in (("main", "The red fox jumps"), ("other", "A red herring")):
            said_ = UserMessage(text=text)
            await store.run(transcript.append, writer("t" + agent, agent), 0, 0, said_, NOW)
        (found,) = await store.read(search, "fox red", EVERYBODY)
        assert (found.session, found.role, found.text, found.at) == (
            str(session()),
            "user",
            "The red fox jumps",
            NOW,
        )
        assert await store.read(search, "herring", EVERYBODY) == []

    async def test_words_of_stateless_requests_and_of_rolled_back_transactions_are_never_found(
        self, store: Store
    ) -> None:
        def failing() -> Work[int]:
            yield from transcript.append(writer("t2"), 0, 0, UserMessage(text="secret two"), NOW)
            raise ValueError

        def append(writer: TranscriptWriter, text: str) -> Callable[[], Work[int]]:
            return partial(transcript.append, writer, 0, 0, UserMessage(text=text), NOW)

        first = append(writer("t1", transient=True), "secret one")
        await outcomes_of(store, [first, failing, append(writer("t3"), "secret three")])
        found = await store.read(search, "secret", EVERYBODY)
        assert [one.text for one in found] == ["secret three"]
        assert await store.read(said_in, str(session()), 0) == [UserMessage(text="secret three")]
        assert await store.read(transcript.of_turn, "t1") == [UserMessage(text="secret one")]

    @pytest.mark.parametrize(
        "query",
        ['"', '""', "a OR", "NOT", "*", "fox*", "NEAR(", "a:b", "(", "\0", "fox\0", "--", "'", "^"],
    )
    async def test_no_text_of_a_query_causes_an_error(self, store: Store, query: str) -> None:
        await store.run(transcript.append, writer("t"), 0, 0, UserMessage(text="a red fox"), NOW)
        assert len(await store.read(search, query, EVERYBODY)) <= 1


class SessionsContract(StoreFixture):
    """A session is found by its key, keeps its prompt, and can be ended only once."""

    async def test_a_session_remembers_when_it_was_used_before(self, store: Store) -> None:
        assert (await store.run(touch, NOW)).used_before is None
        assert (await store.run(touch, NOW + 5)).used_before == NOW
        assert (await store.run(touch, NOW + 9)).used_before == NOW + 5

    async def test_a_session_is_named_by_its_first_words(self, store: Store) -> None:
        await store.run(touch, title=" " * 10_000 + "How do I\n boil an egg? " + "x" * 80)
        await store.run(touch, title="something else")
        (found,) = await store.read(conversations.named, SESSION)
        assert found.title.startswith("How do I boil an egg? xxx")
        assert len(found.title) <= sessions.TITLE_CHARS

    async def test_sessions_are_found_by_key_name_and_beginning(self, store: Store) -> None:
        for chat in ("abc1", "abc2", "a_c", "%"):
            await store.run(
                sessions.touch, session(chat), replace(SOURCE, chat_id=chat), None, "", NOW
            )
        for name in ("abc1", str(session("abc1"))):
            (found,) = await store.read(conversations.named, name)
            assert found.chat == "abc1"
        assert await store.read(conversations.named, "ab") == []
        for name, chats in {"a_": ["a_c"], "%": ["%"], "nothing": []}.items():
            assert [one.chat for one in await store.read(conversations.resembling, name)] == chats
        assert len(await store.read(conversations.resembling, "ab")) == 2

    async def test_a_deleted_session_leaves_nothing_behind(self, store: Store) -> None:
        await store.run(touch)
        await store.run(talk, 2)
        await store.run(turns.insert, turn_row("t000"), "main", "7")
        await store.run(sessions.keep_prompt, SESSION, 0, a_prompt("hello"))
        await store.run(delete)
        await store.run(sessions.forget_prompts)
        for table in ("sessions", "messages", "turns", "prompts"):
            assert await store.read(_count, table) == 0

    async def test_an_ended_conversation_is_claimed_once(self, store: Store) -> None:
        await store.run(touch)
        await store.run(sessions.begin_anew, SESSION, NOW)
        await store.run(sessions.begin_anew, SESSION, NOW + 1)
        ended = [EndedConversation(session=SESSION, generation=n, ended_at=NOW + n) for n in (0, 1)]
        taken = [await store.run(sessions.take_ending, NOW, 60) for _ in range(3)]
        assert taken == [*ended, None]
        await store.run(sessions.forget_ending, ended[0])
        assert await store.run(sessions.take_ending, NOW + 61, 60) == ended[1]

    async def test_a_stored_prompt_comes_back_byte_for_byte(self, store: Store) -> None:
        prompt = a_prompt("naïve ☃\n\ntext")
        await store.run(touch)
        await store.run(sessions.keep_prompt, SESSION, 0, prompt)
        row = await store.run(touch)
        assert row.prompt is not None
        assert await store.read(sessions.prompt_of, row.prompt) == prompt

    async def test_a_new_conversation_and_a_summary_remove_the_prompt(self, store: Store) -> None:
        for generation, end in enumerate(
            (
                partial(sessions.begin_anew, SESSION, NOW),
                partial(condense, (1, 2), "s", generation=1),
            )
        ):
            await store.run(touch)
            await store.run(sessions.keep_prompt, SESSION, generation, a_prompt("hello"))
            assert (await store.run(touch)).prompt is not None
            await store.run(end)
            assert (await store.run(touch)).prompt is None

    async def test_prompts_that_nobody_uses_are_forgotten(self, store: Store) -> None:
        await store.run(touch)
        for text in ("old", "new"):
            await store.run(sessions.keep_prompt, SESSION, 0, a_prompt(text))
        await store.run(sessions.forget_prompts)
        row = await store.run(touch)
        assert await store.read(sessions.prompt_of, row.prompt or "") == a_prompt("new")
        assert await store.read(_count, "prompts") == 1

    async def test_late_writes_of_a_stopped_turn_do_not_reach_the_next_conversation(
        self, store: Store
    ) -> None:
        await store.run(touch)
        rows = await store.run(talk, 2)
        await store.run(sessions.begin_anew, SESSION, NOW)
        await store.run(sessions.keep_prompt, SESSION, 0, a_prompt("old"))
        await store.run(condense, (rows[0], rows[2]), "old")
        row = await store.run(touch)
        assert (row.generation, row.prompt, row.compaction) == (1, None, 0)
        assert texts(await store.read(read, row)) == []

    async def test_a_damaged_prompt_counts_as_missing(self, store: Store) -> None:
        await store.run(_write, "insert into prompts (hash, body) values ('h', 'broken')")
        assert await store.read(sessions.prompt_of, "h") is None

    async def test_a_session_that_is_created_again_after_its_deletion_is_a_new_session(
        self, store: Store
    ) -> None:
        first = await store.run(touch, NOW)
        await store.run(delete)
        assert (await store.run(touch, NOW + 1)).created_at != first.created_at

    async def test_the_ended_conversation_of_a_given_session_is_claimed(self, store: Store) -> None:
        await store.run(touch)
        await store.run(sessions.begin_anew, SESSION, NOW)
        assert await store.run(sessions.take_ending, NOW, 60, "another") is None
        assert await store.run(sessions.take_ending, NOW, 60, SESSION) is not None


class CompactionsContract(StoreFixture):
    """In a history, a summary replaces the rows that it summarises. If the summary is removed, the
    history contains these rows again."""

    async def test_a_summary_replaces_its_rows_and_they_can_be_restored(self, store: Store) -> None:
        await store.run(touch)
        rows = await store.run(talk, 5)
        before = texts(await store.read(read, await store.run(touch)))
        await store.run(condense, (rows[2], rows[6]), "summary")
        found = await store.read(read, await store.run(touch))
        assert texts(found) == [*before[:2], "summary", *before[7:]]
        assert found.spans[2] == (rows[2], rows[6])
        assert [one.message.text for one in await store.read(transcript.entries, SESSION)] == before
        assert await store.run(compactions.restore, SESSION) == 1
        assert texts(await store.read(read, await store.run(touch))) == before

    async def test_a_later_summary_replaces_an_earlier_one(self, store: Store) -> None:
        await store.run(touch)
        rows = await store.run(talk, 5)
        for span in ((rows[2], rows[3]), (rows[2], rows[7])):
            text = f"summary {span[1] - span[0]}"
            await store.run(condense, span, text)
        found = texts(await store.read(read, await store.run(touch)))
        assert found == ["q0", "a0", f"summary {rows[7] - rows[2]}", "q4", "a4"]
        assert await store.run(compactions.restore, SESSION) == 2

    async def test_messages_after_a_summary_follow_it_in_the_history(self, store: Store) -> None:
        await store.run(touch)
        rows = await store.run(talk, 2)
        await store.run(condense, (rows[0], rows[3]), "summary")
        known = await store.read(read, await store.run(touch))
        await store.run(transcript.append, writer("t9"), -1, 0, UserMessage(text="later"), NOW)
        assert texts(await store.read(transcript.history, SESSION, known)) == ["summary", "later"]

    async def test_results_that_came_out_of_order_are_read_in_order(self, store: Store) -> None:
        calls = tuple(
            ToolCall(id=CallId(f"t_0_{n}"), name="look", arguments="{}") for n in range(3)
        )
        asked = AssistantMessage(calls=calls)
        results: list[Message] = [ToolMessage(call=call.id, text=call.id) for call in calls]
        await store.run(touch)
        await store.run(transcript.append, writer("t"), -1, 0, UserMessage(text="go"), NOW)
        await store.run(transcript.append, writer("t"), 0, 0, asked, NOW)
        for index in (2, 0, 1):
            await store.run(transcript.append, writer("t"), 0, index + 1, results[index], NOW)
        found = await store.read(read, await store.run(touch))
        assert list(found.messages) == [UserMessage(text="go"), asked, *results]


def _write(sql: str) -> Work[None]:
    yield sql, ()


def _count(table: str) -> Work[int]:
    rows = yield f"select count(*) from {table}", ()  # noqa: S608
    count: int = rows[0][0]
    return count


def delete() -> Work[None]:
    """Deletes the current conversation of the session."""
    for one in (yield from conversations.named(SESSION)):
        yield from conversations.delete(one)
