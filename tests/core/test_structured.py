"""Structured output is checked against its schema. If the output is wrong, the model is called once
more. A reader gets the whole output or an error, but never a part of the output."""

import json

import pytest
from msgspec.structs import replace

from hermes.core.structured import format_problem, unfenced
from hermes.testing.running import refused
from hermes.testing.scripted import Answer, ScriptedModel, calls, fails, says
from hermes.testing.tools import TEST_TOOLS
from hermes.testing.turns import Notebook, a_turn, an_agent
from hermes.types.errors import Disconnected
from hermes.types.events import AgentEvent, SegmentEnded, TextDelta, ToolFinished
from hermes.types.messages import AssistantMessage, ResponseFormat, UserMessage
from hermes.types.turns import Completed, Failed, Outcome

SCHEMA = {
    "type": "object",
    "properties": {"age": {"type": "integer"}},
    "required": ["age"],
    "additionalProperties": False,
}
PERSON = ResponseFormat(kind="json_schema", schema=json.dumps(SCHEMA), name="person")
OBJECT = ResponseFormat(kind="json_object")


class Structured:
    """Runs an agent with scripted answers in a turn that requests structured output."""

    def __init__(self, *answers: Answer, wanted: ResponseFormat = PERSON) -> None:
        self.model = ScriptedModel(answers)
        self.wanted = wanted
        self.events: list[AgentEvent] = []
        self.notes = Notebook()

    async def outcome(self) -> Outcome:
        agent = an_agent(self.model, TEST_TOOLS)
        turn = replace(a_turn(), response_format=self.wanted)
        return await agent.run(turn, self.events.append, self.notes)

    @property
    def said(self) -> list[AgentEvent]:
        return [one for one in self.events if isinstance(one, TextDelta | SegmentEnded)]


async def test_an_answer_in_the_wanted_format_is_emitted_complete() -> None:
    turn = Structured(says('{"age": 7}'))
    assert await turn.outcome() == Completed(message=AssistantMessage(text='{"age": 7}'))
    assert turn.said == [TextDelta(text='{"age": 7}'), SegmentEnded()]
    assert turn.model.requests[0].response_format == PERSON
    assert not turn.model.requests[0].live, "a structured answer is not streamed"


@pytest.mark.parametrize(
    "text", ['```json\n{"age": 7}\n```', ' ```\n{"age": 7}```\n', '\n{"age": 7} ']
)
async def test_a_code_fence_around_the_json_is_removed(text: str) -> None:
    assert await Structured(says(text)).outcome() == Completed(
        message=AssistantMessage(text='{"age": 7}')
    )


async def test_the_format_applies_to_the_final_answer_and_not_to_tool_calls() -> None:
    turn = Structured(
        calls(("slow", {"seconds": 0}), text="Let me look."),
        calls(("slow", {"seconds": 0.0})),
        says('{"age": 7}'),
    )
    assert isinstance(await turn.outcome(), Completed)
    assert turn.said == [TextDelta(text='{"age": 7}'), SegmentEnded()]
    assert sum(isinstance(event, ToolFinished) for event in turn.events) == 2
    said = turn.notes.messages[0]
    assert isinstance(said, AssistantMessage)
    assert said.text == "Let me look.", "the model sees its own answer"


@pytest.mark.parametrize("wrong", ["He is seven.", '{"age": "seven"}', '{"age": 7', "", "[]"])
async def test_an_answer_in_the_wrong_format_is_repaired_once(wrong: str) -> None:
    turn = Structured(says(wrong), says('{"age": 7}'))
    assert await turn.outcome() == Completed(message=AssistantMessage(text='{"age": 7}'))
    assert turn.said == [TextDelta(text='{"age": 7}'), SegmentEnded()]
    first, second = turn.model.requests
    *_, told = second.messages
    assert isinstance(told, UserMessage)
    assert "does not have the required form" in told.text
    shown = (AssistantMessage(text=wrong),) if wrong else ()
    assert tuple(second.messages) == (*first.messages, *shown, told)
    assert refused(second) is None


@pytest.mark.parametrize("wanted", [PERSON, OBJECT], ids=["schema", "object"])
async def test_a_second_answer_in_the_wrong_format_is_an_error(wanted: ResponseFormat) -> None:
    turn = Structured(says("seven"), says('["seven"]'), wanted=wanted)
    outcome = await turn.outcome()
    assert isinstance(outcome, Failed)
    assert (outcome.code, outcome.status) == ("invalid_structured_output", 502)
    assert turn.said == []


async def test_a_tool_call_during_the_repair_is_an_error() -> None:
    turn = Structured(says("seven"), calls(("append", {"token": "t"})))
    outcome = await turn.outcome()
    assert isinstance(outcome, Failed)
    assert outcome.code == "invalid_structured_output"
    assert turn.notes.begun == []


@pytest.mark.parametrize("answers", [(), (says("seven"),)], ids=["at once", "after a repair"])
async def test_an_answer_that_was_cut_off_is_an_error(
    answers: tuple[Answer, ...],
) -> None:
    turn = Structured(*answers, says('{"age": 7', cut="length"))
    outcome = await turn.outcome()
    assert isinstance(outcome, Failed)
    assert (outcome.code, outcome.status) == ("output_truncated", 422)
    assert turn.said == []


async def test_the_error_for_a_refusal_quotes_the_model() -> None:
    turn = Structured(says("I can't help with that.", cut="content_filter"))
    outcome = await turn.outcome()
    assert isinstance(outcome, Failed)
    assert (outcome.code, outcome.status) == ("refused", 400)
    assert "I can't help with that." in outcome.reason
    assert turn.said == []


async def test_the_turn_fails_if_the_provider_fails_during_the_repair() -> None:
    turn = Structured(says("seven"), fails(Disconnected("away"), after='{"age"'))
    away = Failed(reason="away", code="disconnected", status=502, temporary=True)
    assert await turn.outcome() == away
    assert turn.said == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{}", ""),
        ('{"a": [1]}', ""),
        ("[]", "not a JSON object"),
        ("{", "not a JSON"),
        ("", "empty"),
    ],
)
def test_without_a_schema_any_object_is_accepted(text: str, problem: str) -> None:
    found = format_problem(OBJECT, text)
    assert problem in found
    assert bool(found) == bool(problem)


def test_only_a_code_fence_around_the_whole_answer_is_removed() -> None:
    assert unfenced("a\n```\n{}\n```") == "a\n```\n{}\n```"
    assert unfenced("```json\n{}\n```") == "{}"
