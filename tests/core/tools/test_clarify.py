"""The tool `clarify` asks the person a question, and the turn waits for the answer."""

import pytest

from hermes.core.tools.clarify import clarify_tool
from hermes.testing.turns import CALL, a_turn, use
from hermes.types.errors import ToolFailed
from hermes.types.tools import NeedsPerson
from hermes.types.turns import Answered, Approved, Decision, Denied, Expired, Question

CLARIFY = clarify_tool(600.0)
ASKED = {"question": "Which one?", "choices": ["the red one", "the blue one"]}


async def ask(decision: Decision | None, **arguments: object) -> str:
    decisions = {} if decision is None else {CALL: decision}
    return await use(CLARIFY, a_turn(decisions=decisions), {**ASKED, **arguments})


async def test_the_turn_waits_for_the_person() -> None:
    with pytest.raises(NeedsPerson) as raised:
        await ask(None)
    assert raised.value.question == Question(
        call=CALL,
        kind="question",
        prompt="Which one?",
        choices=("the red one", "the blue one"),
        expires_in=600.0,
    )


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("2", "the blue one"),
        (" 1. ", "the red one"),
        ("2)", "the blue one"),
        ("0", "0"),
        ("3", "3"),
        ("9" * 5000, "9" * 5000),
        ("²", "²"),
        ("", ""),
        ("the blue one", "the blue one"),
        ("neither, a green one", "neither, a green one"),
    ],
)
async def test_a_number_selects_a_choice_and_any_other_text_is_the_answer(
    said: str, meant: str
) -> None:
    assert await ask(Answered(text=said)) == meant


async def test_without_choices_a_number_is_the_answer() -> None:
    assert await ask(Answered(text="1"), choices=[]) == "1"


@pytest.mark.parametrize(
    ("decision", "told"),
    [
        (Expired(), "Nobody answered in time. Go on with your best judgement"),
        (Denied(), "The person does not answer. Go on"),
        (Denied(reason="busy"), "The person does not answer: busy. Go on"),
        (Approved(digest=""), "The person agrees."),
    ],
)
async def test_if_nobody_answers_the_model_is_told_how_to_continue(
    decision: Decision, told: str
) -> None:
    assert (await ask(decision)).startswith(told)


@pytest.mark.parametrize(
    "arguments",
    [{"question": ""}, {"question": "x" * 1001}, {"choices": list("abcde")}, {"choices": [""]}],
)
async def test_the_length_of_a_question_and_its_choices_is_limited(
    arguments: dict[str, object],
) -> None:
    with pytest.raises(ToolFailed, match="The arguments of clarify are not valid"):
        await ask(None, **arguments)
