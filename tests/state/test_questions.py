"""A question ends in exactly one way, and the turn that waits for the question learns the
outcome."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from hermes.state import questions, turns
from hermes.testing.rows import NOW, turn_row
from hermes.testing.stores import open_test_store
from hermes.types.identity import CallId, TurnId
from hermes.types.messages import ToolCall
from hermes.types.turns import (
    Answered,
    Approved,
    Cancelled,
    Decision,
    Denied,
    Expired,
    Question,
    Undelivered,
)

CALL = CallId("t_0_0")
QUESTION = Question(call=CALL, kind="approval", prompt="Really?", detail="rm a", digest="d")
TURN = replace(turn_row("t"), state="suspended")


@pytest.mark.parametrize(
    ("state", "answer", "decision"),
    [
        ("approved", "Once", Approved(digest="d")),
        ("denied", "no", Denied(reason="no")),
        ("denied", None, Denied()),
        ("expired", None, Expired()),
        ("undelivered", None, Undelivered()),
        ("cancelled", None, Cancelled()),
        ("answered", "blue", Answered(text="blue")),
    ],
)
async def test_the_turn_gets_the_decision(
    tmp_path: Path, state: str, answer: str | None, decision: Decision
) -> None:
    async with open_test_store(tmp_path) as store:
        await store.run(turns.insert, TURN, "main", "7")
        await store.run(questions.ask, "q", TURN, "main", QUESTION, NOW)
        assert await store.read(questions.decisions, TURN.id) == {}
        assert await store.run(questions.decide, "q", state, answer, "me", NOW) == TURN.id
        assert await store.run(questions.decide, "q", "denied", None, "you", NOW) is None
        assert await store.read(questions.decisions, TURN.id) == {CALL: decision}


async def test_a_stopped_turn_cancels_only_its_unanswered_questions(tmp_path: Path) -> None:
    running = replace(TURN, state="running")
    async with open_test_store(tmp_path) as store:
        await store.run(turns.insert, running, "main", "7")
        for id in ("p", "q"):
            question = replace(QUESTION, call=CallId(id))
            await store.run(questions.ask, id, running, "main", question, NOW)
        await store.run(questions.decide, "p", "approved", "Once", "me", NOW)
        await store.run(turns.close, running.id, running.epoch, "stopped", NOW)
        assert await store.read(questions.decisions, running.id) == {
            CallId("p"): Approved(digest="d"),
            CallId("q"): Cancelled(),
        }


async def test_a_turn_can_wait_for_people_and_a_client(tmp_path: Path) -> None:
    async with open_test_store(tmp_path) as store:
        await store.run(turns.insert, TURN, "main", "7")
        call = ToolCall(id=CallId("c"), name="theirs", arguments="{}")
        await store.run(questions.ask_all, TURN, ["q"], [QUESTION], [call], NOW + 9, NOW)
        (asked,) = await store.read(questions.open_questions, TURN.id)
        assert (asked.id, asked.kind, asked.brief) == ("q", "approval", "rm a")
        assert await store.read(questions.open_client_calls, TURN.id) == [call.id]
        assert await store.read(questions.has_open_question, TurnId("t"))
