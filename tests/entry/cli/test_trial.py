"""A test call of a model reports the time and the cost of the answer."""

import anyio
import pytest

from hermes.entry.cli.trial import TRIAL_QUESTION, Trial
from hermes.testing.turns import CHOICE
from hermes.types.errors import Disconnected, Rejected
from hermes.types.events import ReasoningDelta, TextDelta, UsageReported
from hermes.types.messages import AssistantMessage
from hermes.types.profile import ModelChoice
from hermes.types.protocols import Emit

USAGE = UsageReported(prompt_tokens=12, completion_tokens=3, cost=0.5)


async def thinks_and_answers(choice: ModelChoice, text: str, emit: Emit) -> AssistantMessage:
    assert (choice, text) == (CHOICE, TRIAL_QUESTION)
    emit(ReasoningDelta(text="hm"))
    await anyio.sleep(0.01)
    emit(TextDelta(text="ready"))
    emit(USAGE)
    return AssistantMessage(text=" ready\n")


async def test_the_first_reasoning_text_counts_as_the_first_word() -> None:
    trial = Trial()
    await trial.run(thinks_and_answers, CHOICE)
    assert trial.text == "ready"
    assert 0 < trial.first < trial.first + 0.01 <= trial.total
    assert trial.usage == USAGE
    measured = trial.measured()
    assert (measured["answer"], measured["prompt_tokens"], measured["cost"]) == ("ready", 12, 0.5)


async def test_the_cost_of_an_answer_without_usage_is_unknown() -> None:
    async def answers(_choice: ModelChoice, _text: str, _emit: Emit) -> AssistantMessage:
        return AssistantMessage(text="ready")

    trial = Trial()
    await trial.run(answers, CHOICE)
    assert trial.measured()["cost"] is None


async def test_an_empty_answer_counts_as_no_answer() -> None:
    async def says_nothing(_choice: ModelChoice, _text: str, _emit: Emit) -> AssistantMessage:
        return AssistantMessage(text=" ")

    with pytest.raises(Rejected, match="m of p gave an empty answer"):
        await Trial().run(says_nothing, CHOICE)


async def test_waiting_for_a_silent_model_has_a_time_limit() -> None:
    async def hangs(_choice: ModelChoice, _text: str, _emit: Emit) -> AssistantMessage:
        await anyio.sleep_forever()
        raise AssertionError("unreachable")

    with pytest.raises(Disconnected, match=r"m of p did not answer within 0\.01 s"):
        await Trial(patience=0.01).run(hangs, CHOICE)
