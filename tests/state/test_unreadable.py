"""A marker replaces a damaged row, and the history for the model stays consistent."""

import random
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from hermes.state import compactions, inbox, transcript
from hermes.state.codec import WrongChecksum
from hermes.state.compactions import Condensed
from hermes.state.transcript import History
from hermes.state.unreadable import LOST_MESSAGE, LOST_RESULT
from hermes.testing.rows import NOW, SOURCE, US, said, said_in, session, writer
from hermes.testing.stores import open_test_store
from hermes.types.identity import CallId
from hermes.types.messages import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from hermes.types.store import Store, Work

KEY = str(session())


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with open_test_store(tmp_path) as store:
        yield store


def write_turn(number: int, calls: int) -> Work[list[int]]:
    """Stores a question, a message with tool calls, the results of these calls, and an answer.
    Returns the numbers of the rows."""
    turn = writer(f"t{number}")
    asked = tuple(
        ToolCall(id=CallId(f"t{number}_0_{index}"), name="look", arguments="{}")
        for index in range(calls)
    )
    placed: list[tuple[int, int, Message]] = [
        (-1, 0, UserMessage(text=f"question {number}")),
        (0, 0, AssistantMessage(text=f"looking {number}", calls=asked)),
        *(
            (0, index, ToolMessage(call=call.id, text=f"seen {number}"))
            for index, call in enumerate(asked, 1)
        ),
        (1, 0, AssistantMessage(text=f"answer {number}")),
    ]
    rows = []
    for step, index, message in placed:
        rows.append((yield from transcript.append(turn, step, index, message, NOW)))
    return rows


def flip(row: int, at: int = 20) -> Work[None]:
    """Changes one letter of a message in a way that leaves the JSON valid."""
    rows = yield "select body from messages where id = ?", (row,)
    body = bytearray(rows[0][0])
    place = next(n for n in range(at, len(body)) if body[n : n + 1].isalpha())
    body[place] ^= 0x20
    yield "update messages set body = ? where id = ?", (bytes(body), row)


def check_pairs(messages: Sequence[Message]) -> None:
    """Checks that every call is followed by exactly one result, and that every result follows
    its call."""
    open_calls: list[CallId] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            open_calls.remove(message.call)
            continue
        assert open_calls == []
        if isinstance(message, AssistantMessage):
            open_calls = [call.id for call in message.calls]
    assert open_calls == []


async def test_a_flipped_letter_is_noticed_although_the_json_is_valid(store: Store) -> None:
    rows = await store.run(write_turn, 1, 0)
    await store.run(flip, rows[2], 30)
    assert await store.read(said_in, KEY, 0) == [
        UserMessage(text="question 1"),
        AssistantMessage(text="looking 1"),
        AssistantMessage(text=LOST_MESSAGE),
    ]
    with pytest.raises(WrongChecksum):
        await store.read(transcript.of_turn, "t1")


async def test_a_damaged_result_keeps_its_call(store: Store) -> None:
    rows = await store.run(write_turn, 1, 2)
    await store.run(flip, rows[2])
    found = await store.read(said_in, KEY, 0)
    check_pairs(found)
    assert found[2] == ToolMessage(call=CallId("t1_0_0"), text=LOST_RESULT, failed=True)
    assert found[3].text == "seen 1"


async def test_the_marker_of_a_damaged_message_replaces_its_results(store: Store) -> None:
    rows = await store.run(write_turn, 1, 2)
    await store.run(flip, rows[1])
    known = await store.read(transcript.history, KEY, History(generation=0))
    assert [one.text for one in known.messages] == ["question 1", LOST_MESSAGE, "answer 1"]
    assert known.spans == ((rows[0], rows[0]), (rows[1], rows[3]), (rows[4], rows[4]))


async def test_an_export_has_a_marker_and_everything_that_can_be_read(store: Store) -> None:
    rows = await store.run(write_turn, 1, 2)
    await store.run(flip, rows[1])
    await store.run(flip, rows[3])
    told = [entry.message for entry in await store.read(transcript.entries, KEY)]
    assert [one.text for one in told] == [
        "question 1",
        LOST_MESSAGE,
        "seen 1",
        LOST_RESULT,
        "answer 1",
    ]


async def test_a_model_accepts_the_history_after_any_damage(store: Store) -> None:
    chance = random.Random(11)
    rows: list[int] = []
    for number in range(12):
        rows += await store.run(write_turn, number, chance.randrange(4))
    whole = {one.text for one in await store.read(said_in, KEY, 0)}
    for _ in range(60):
        hit = chance.sample(rows, chance.randint(1, 12))
        for row in hit:
            await store.run(flip, row)
        found = await store.read(said_in, KEY, 0)
        check_pairs(found)
        assert {one.text for one in found} <= whole | {LOST_MESSAGE, LOST_RESULT}
        # The markers for damaged rows never replace a question or an answer that can be read. So
        # each damaged row removes at most one question or answer from the history.
        kept = [one for one in found if one.text.startswith(("question", "answer"))]
        assert len(kept) >= 24 - len(hit)
        for row in hit:
            await store.run(flip, row)
    assert {one.text for one in await store.read(said_in, KEY, 0)} == whole


async def test_open_calls_of_a_running_turn_stay_open(store: Store) -> None:
    rows = await store.run(write_turn, 1, 1)
    await store.run(flip, rows[0])
    call = ToolCall(id=CallId("t2_0_0"), name="look", arguments="{}")
    await store.run(
        transcript.append, writer("t2"), 0, 0, AssistantMessage(text="on it", calls=(call,)), NOW
    )
    found = await store.read(said_in, KEY, 0)
    assert found[-1] == AssistantMessage(text="on it", calls=(call,))


async def test_results_of_calls_in_an_earlier_turn_are_kept(store: Store) -> None:
    """The calls belong to one turn, and the client can send their results in a later turn."""
    call = ToolCall(id=CallId("t1_0_0"), name="look", arguments="{}")
    asked = AssistantMessage(calls=(call,))
    await store.run(transcript.append, writer("t1"), 0, 0, asked, NOW)
    known = await store.read(transcript.history, KEY, History(generation=0))
    result = ToolMessage(call=call.id, text="seen")
    await store.run(transcript.append, writer("t2"), -1, 0, result, NOW)
    damaged = await store.run(
        transcript.append, writer("t2"), 0, 0, AssistantMessage(text="thank you"), NOW
    )
    await store.run(flip, damaged)
    found = await store.read(transcript.history, KEY, known)
    assert found.messages == (asked, result, AssistantMessage(text=LOST_MESSAGE))


async def test_a_row_of_an_earlier_version_is_read_without_a_check(store: Store) -> None:
    rows = await store.run(write_turn, 1, 0)

    def forget_checksum() -> Work[None]:
        yield "update messages set crc = null where id = ?", (rows[2],)

    await store.run(forget_checksum)
    assert (await store.read(said_in, KEY, 0))[2] == AssistantMessage(text="answer 1")


async def test_a_damaged_summary_is_not_used_and_its_rows_are_read(store: Store) -> None:
    rows = await store.run(write_turn, 1, 1)
    what = Condensed(session=KEY, generation=0, span=(rows[0], rows[2]))
    await store.run(compactions.compact, what, UserMessage(text="summary"), "t1", NOW)

    def damage() -> Work[None]:
        ((body,),) = yield "select summary from compactions", ()
        damaged = body.replace(b"summary", b"Summary")
        yield "update compactions set summary = ?", (damaged,)

    condensed = await store.read(transcript.history, KEY, History(generation=0, compaction=1))
    assert [one.text for one in condensed.messages] == ["summary", "answer 1"]
    await store.run(damage)
    found = await store.read(transcript.history, KEY, History(generation=0, compaction=1))
    assert found.messages[0].text == "question 1"
    assert len(found.messages) == 4


async def test_a_damaged_message_of_the_inbox_is_not_answered(store: Store) -> None:
    await store.run(inbox.insert, "i", said("k"), session(), None, US)

    def damage() -> Work[None]:
        ((body,),) = yield "select event from inbox", ()
        yield "update inbox set event = ?", (body.replace(b"hi", b"ho"),)

    assert await store.read(inbox.first_pending, KEY, US) is not None
    await store.run(damage)
    waiting = await store.read(inbox.first_pending, KEY, US)
    assert waiting is not None
    assert waiting.event is None
    with pytest.raises(WrongChecksum):
        await store.read(inbox.event_of, "i")
    assert SOURCE.chat_id == waiting.chat_id
