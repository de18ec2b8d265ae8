"""A streamed answer is collected from its events."""

import pytest

from hermes.core.models.answer import StreamedAnswer
from hermes.testing.upstream import choice_of
from hermes.types.errors import Disconnected
from hermes.types.events import (
    AgentEvent,
    ReasoningDelta,
    SegmentEnded,
    TextDelta,
    UsageReported,
)
from hermes.types.messages import Echo
from hermes.types.profile import ModelChoice, Price

CHOICE = choice_of("anthropic")


def started(choice: ModelChoice = CHOICE) -> tuple[StreamedAnswer, list[AgentEvent]]:
    events: list[AgentEvent] = []
    return StreamedAnswer(choice, events.append), events


def test_text_and_reasoning_are_emitted_as_separate_events() -> None:
    answer, events = started()
    answer.think("hm")
    answer.say("a")
    answer.say("b")
    answer.flush()
    answer.think("")
    answer.flush()
    assert events == [ReasoningDelta(text="hm"), TextDelta(text="ab")]


def test_an_answer_without_an_end_was_cut_off() -> None:
    answer, events = started()
    answer.say("a")
    with pytest.raises(Disconnected, match="broke off"):
        answer.message("t_1")
    assert events == []


def test_calls_get_our_own_ids_and_calls_without_a_name_are_dropped() -> None:
    answer, _ = started()
    answer.call()
    answer.call("look").arguments += ["{", "}"]
    answer.call("listen")
    answer.finished = True
    calls = answer.message("t_1").calls
    assert [(call.id, call.name, call.arguments) for call in calls] == [
        ("t_1_0", "look", "{}"),
        ("t_1_1", "listen", "{}"),
    ]


def test_visible_text_and_each_call_count_as_parts() -> None:
    answer, _ = started()
    answer.think("hm")
    answer.say("\n")
    assert answer.parts == 0
    answer.say("a")
    assert answer.parts == 1
    answer.flush()
    answer.think("hm")
    answer.say("b")
    answer.call("look")
    assert answer.parts == 2


def test_reasoning_for_the_next_request_is_kept_only_if_the_answer_calls_tools() -> None:
    answer, _ = started()
    answer.finished, answer.echo = True, b"[]"
    assert answer.message("t_1").echo is None
    answer.call("look")
    assert answer.message("t_1").echo == Echo(wire="anthropic", model=CHOICE.model, body="[]")


def test_usage_is_emitted_at_the_end_with_its_cost() -> None:
    priced = ModelChoice(
        provider="acme", model="m", base_url="", price=Price(input=1.0, output=2.0)
    )
    answer, events = started(priced)
    answer.finished = True
    answer.usage = UsageReported(prompt_tokens=1_000_000, completion_tokens=1_000_000)
    answer.message("t_1")
    assert events == [
        UsageReported(prompt_tokens=1_000_000, completion_tokens=1_000_000, cost=3.0),
        SegmentEnded(),
    ]
