"""A plain answer is the same, no matter whether its text is in memory or read from the store."""

import msgspec
import pytest

from hermes.streaming.outline import AnswerJson
from hermes.streaming.plain import LONG_ANSWER_CHARACTERS, PlainAnswer, around_answer
from hermes.streaming.sse import plain_completion
from hermes.streaming.wire import Completion
from hermes.types.events import (
    AgentEvent,
    QuestionAsked,
    SegmentDiscarded,
    SegmentEnded,
    TextDelta,
    TurnFinished,
)
from hermes.types.identity import CallId
from hermes.types.messages import ToolCall

PIECE = 'says "so"\n' * 1000
PIECES = LONG_ANSWER_CHARACTERS // len(PIECE) + 2
LONG: list[AgentEvent] = [TextDelta(text=PIECE)] * PIECES
COMPLETED = TurnFinished(outcome="completed")
CALL = ToolCall(id=CallId("t_0_0"), name="look", arguments="{}")
QUESTION = QuestionAsked(id="q", call=CallId("t_0_1"), kind="question", prompt="Which?")


def sent(events: list[AgentEvent], model: str = "main") -> tuple[Completion, bool]:
    """Returns the completion that a client gets for the events, and whether the answer counts as
    long."""
    answer = PlainAnswer()
    for seq, event in enumerate(events, 1):
        answer.feed(seq, event)
    completion = plain_completion("chatcmpl-1", model, 7, answer.view())
    if answer.is_long:
        before, after = around_answer(completion)
        text = AnswerJson(answer.segments())
        completion = b"".join(
            [
                before,
                *(text.feed(seq, event) for seq, event in enumerate(events[: answer.end], 1)),
                after,
            ]
        )
    return msgspec.json.decode(completion, type=Completion), answer.is_long


@pytest.mark.parametrize(
    ("events", "text"),
    [
        ([*LONG, COMPLETED], PIECE * PIECES),
        (
            [TextDelta(text="so:"), SegmentEnded(), *LONG, SegmentEnded(), COMPLETED],
            f"so:\n\n{PIECE * PIECES}",
        ),
        ([*LONG, SegmentDiscarded(from_seq=1), TextDelta(text="short"), COMPLETED], "short"),
        (
            [*LONG, SegmentEnded(), QUESTION, TurnFinished(outcome="suspended")],
            f"{PIECE * PIECES}\n\nWhich?\nReply with your answer (question q).",
        ),
        ([*LONG, COMPLETED, TextDelta(text="of a later request")], PIECE * PIECES),
    ],
)
def test_a_long_answer_is_sent_completely_without_keeping_it_in_memory(
    events: list[AgentEvent], text: str
) -> None:
    completion, long = sent(events)
    assert long
    assert completion.choices[0].message.content == text


def test_a_long_text_that_was_discarded_is_not_sent() -> None:
    completion, long = sent([*LONG, SegmentDiscarded(from_seq=1), COMPLETED])
    assert not long
    assert completion.choices[0].message.content == ""


def test_a_short_answer_is_kept_in_memory() -> None:
    completion, long = sent([TextDelta(text="hello"), COMPLETED])
    assert not long
    assert completion.choices[0].message.content == "hello"


def test_a_long_answer_keeps_its_calls_and_its_reason() -> None:
    end = TurnFinished(outcome="suspended", finish_reason="tool_calls", calls=(CALL,))
    completion, _ = sent([*LONG, end])
    choice = completion.choices[0]
    assert choice.finish_reason == "tool_calls"
    assert choice.message.tool_calls
    assert choice.message.content == PIECE * PIECES


def test_the_name_of_a_model_can_not_change_the_place_of_the_answer() -> None:
    name = '"content":"\x7fanswer\x7f'
    completion, _ = sent([*LONG, COMPLETED], name)
    assert completion.model == name
    assert completion.choices[0].message.content == PIECE * PIECES
